//! Discovery: the documents that list the served resources. Pure functions of the catalog and of
//! the APIServices.
//!
//! [`legacy_document`] builds one document for each group and version, [`aggregated_document`] one
//! for all. [`Aggregated`] responses carry an ETag, because kubectl caches them on disk.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::aggregation::{AggregatedApi, ApiServiceTable, Priority};
use crate::catalog::{Catalog, compare_versions};
use crate::resource::{Backend, Resource, Subresource};

/// Everything that is served: by this server, and through it by aggregated servers.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    /// The resources of this server.
    pub catalog: &'a Catalog,
    pub table: &'a ApiServiceTable,
}

/// Why there is no document at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The path does not exist; the response is plain text.
    Path,
    /// The version of a group with built-in resources is unknown; the response is a Status.
    Version,
}

/// An aggregated discovery document.
#[derive(Clone, Debug)]
pub struct Aggregated {
    pub body: Bytes,
    /// The ETag, with its quotes.
    pub etag: String,
}

/// Builds the legacy document at `/api`, `/apis`, `/apis/<group>`, `/api/v1` or
/// `/apis/<group>/<version>`.
///
/// `host` is the address at which the client reached the server.
///
/// # Errors
/// There is no document at the path.
pub fn legacy_document(served: Served<'_>, path: &str, host: &str) -> Result<Value, Absent> {
    let catalog = served.catalog;
    let mut parts = path.trim_matches('/').split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("api"), None, ..) => Ok(json!({
            "kind": "APIVersions",
            "versions": catalog.versions(""),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
        })),
        (Some("api"), Some(version), None, _) => resource_list(catalog, "", version),
        (Some("apis"), None, ..) => {
            let groups: Vec<Value> =
                served.groups().into_iter().map(|name| group(served, name)).collect();
            Ok(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        (Some("apis"), Some(name), None, _) if served.is_group(name) => {
            let mut document = group(served, name);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            Ok(document)
        }
        (Some("apis"), Some(name), Some(version), None) if served.is_group(name) => {
            resource_list(catalog, name, version)
        }
        _ => Err(Absent::Path),
    }
}

/// Builds the aggregated document at `/api` (`core`) or `/apis`.
pub fn aggregated_document(served: Served<'_>, core: bool) -> Aggregated {
    let names = if core { vec![""] } else { served.groups() };
    let items: Vec<Value> = names
        .into_iter()
        .filter(|name| !core || served.catalog.has_group(name))
        .map(|name| aggregated_group(served, name))
        .collect();
    let mut document = json!({"metadata": {}, "items": items});
    let digest = Sha512::digest(document.to_string());
    document["kind"] = "APIGroupDiscoveryList".into();
    document["apiVersion"] = "apidiscovery.k8s.io/v2".into();
    Aggregated { body: format!("{document}\n").into(), etag: format!("\"{}\"", hex(&digest)) }
}

/// Builds the document at `/version`. `git_version` is `v1.36.3` or longer.
pub fn version(git_version: &str) -> Value {
    let (major, minor) = version_numbers(git_version);
    let before = minor.parse::<u32>().unwrap_or_default().saturating_sub(1).to_string();
    json!({
        "major": major, "minor": minor,
        "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": before,
        "gitVersion": git_version, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// The major and minor number of a version such as `v1.36.3+x`.
pub fn version_numbers(git_version: &str) -> (&str, &str) {
    let mut parts = git_version.trim_start_matches('v').split(['.', '-', '+']);
    (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"))
}

/// Builds the document at `/`, which lists every path.
pub fn paths(served: Served<'_>) -> Value {
    let mut paths: Vec<String> = ["/api", "/apis", "/apis/", "/healthz", "/livez", "/readyz"]
        .into_iter()
        .chain(["/openapi/v2", "/openapi/v3", "/version"])
        .map(str::to_owned)
        .collect();
    paths.extend(served.catalog.versions("").into_iter().map(|version| format!("/api/{version}")));
    for name in served.groups() {
        paths.push(format!("/apis/{name}"));
        let versions = served.versions(name).into_iter();
        paths.extend(versions.map(|version| format!("/apis/{name}/{version}")));
    }
    paths.sort();
    json!({"paths": paths})
}

/// Encodes bytes in upper-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl<'a> Served<'a> {
    fn is_group(self, name: &str) -> bool {
        !name.is_empty() && !self.versions(name).is_empty()
    }

    /// The named groups, most preferred first: by the highest priority of a version, then by name.
    fn groups(self) -> Vec<&'a str> {
        let aggregated_api = self.table.remotes().map(|(api, _)| api.group.as_str());
        let names: BTreeSet<&str> =
            self.catalog.groups().chain(aggregated_api).filter(|name| !name.is_empty()).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by_cached_key(|name| {
            let versions = self.versions(name).into_iter();
            Reverse(versions.map(|version| self.priority(name, version).group).max())
        });
        names
    }

    /// The versions of a group, most preferred first.
    fn versions(self, group: &str) -> Vec<&'a str> {
        let mut versions = self.catalog.versions(group);
        for (api, _) in self.table.remotes().filter(|(api, _)| api.group == group) {
            if !versions.contains(&api.version.as_str()) {
                versions.push(&api.version);
            }
        }
        versions.sort_by(|a, b| {
            let priority = |version: &str| self.priority(group, version).version;
            priority(b).cmp(&priority(a)).then_with(|| compare_versions(b, a))
        });
        versions
    }

    fn priority(self, group: &str, version: &str) -> Priority {
        self.table.priority(group, version)
    }

    fn aggregated_api(self, group: &str, version: &str) -> Option<&'a AggregatedApi> {
        self.table.aggregated_api(group, version)
    }
}

fn group(served: Served<'_>, name: &str) -> Value {
    let entry =
        |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions = served.versions(name);
    json!({
        "name": name,
        "versions": versions.iter().map(|version| entry(version)).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(|version| entry(version)),
    })
}

fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Result<Value, Absent> {
    if !catalog.has_version(group, version) {
        let built_in = catalog.all().any(|resource| resource.group == group && !resource.custom);
        return Err(if built_in { Absent::Version } else { Absent::Path });
    }
    let mut entries = Vec::new();
    for resource in catalog.resources(group, version) {
        entries.push(legacy_resource(resource));
        let subresources = sorted_subresources(resource);
        entries.extend(subresources.into_iter().map(|sub| legacy_subresource(resource, sub)));
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut document = json!({
        "kind": "APIResourceList", "groupVersion": group_version, "resources": entries,
    });
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Ok(document)
}

/// The verbs of a resource. Creates and updates of a terminating kind are omitted, although updates
/// still work, like in Kubernetes.
fn verbs(resource: &Resource) -> Vec<&'static str> {
    let writes = ["create", "patch", "update"];
    let verbs = resource.verbs.iter().copied();
    match resource.strategy.is_ending() {
        true => verbs.filter(|verb| !writes.contains(verb)).collect(),
        false => verbs.collect(),
    }
}

fn legacy_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs(resource),
    });
    let map = entry.as_object_mut().expect("made an object above");
    insert_names(resource, map);
    if matches!(resource.backend, Backend::Stored { .. }) {
        map.insert("storageVersionHash".to_owned(), storage_version_hash(resource).into());
    }
    entry
}

fn insert_names(resource: &Resource, map: &mut Map<String, Value>) {
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !list.is_empty() {
            map.insert(key.to_owned(), list.clone().into());
        }
    }
}

/// A hash of the version in which objects are stored; storage migrators watch it.
fn storage_version_hash(resource: &Resource) -> String {
    let version = resource.strategy.storage_version().unwrap_or(&resource.version);
    let name = format!("{}/{version}/{}", resource.group, resource.kind);
    STANDARD.encode(&Sha256::digest(name)[..8])
}

fn sorted_subresources(resource: &Resource) -> Vec<&Subresource> {
    let mut subresources: Vec<&Subresource> = resource.subresources.iter().collect();
    if !resource.custom {
        subresources.sort_by_key(|sub| sub.name);
    }
    subresources
}

fn legacy_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": sub.verbs,
    });
    if let Some((group, version, kind)) = sub.gvk {
        entry["kind"] = kind.into();
        if (group, version) != (resource.group.as_str(), resource.version.as_str()) {
            entry["group"] = group.into();
            entry["version"] = version.into();
        }
    }
    entry
}

fn aggregated_group(served: Served<'_>, name: &str) -> Value {
    let versions: Vec<Value> = served
        .versions(name)
        .into_iter()
        .map(|version| match served.aggregated_api(name, version) {
            Some(aggregated_api) => aggregated_api_version(version, aggregated_api),
            None => {
                let resources = served.catalog.resources(name, version);
                let resources: Vec<Value> = resources.map(|r| aggregated_resource(r)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            }
        })
        .collect();
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    json!({"metadata": metadata, "versions": versions})
}

/// The version of an aggregated server, from its last response. It is stale while the server is
/// unavailable.
fn aggregated_api_version(version: &str, aggregated_api: &AggregatedApi) -> Value {
    let published = &aggregated_api.published;
    let freshness = if published.is_current { "Current" } else { "Stale" };
    match published.resources.is_empty() {
        true => json!({"version": version, "freshness": freshness}),
        false => json!({
            "version": version, "resources": published.resources, "freshness": freshness,
        }),
    }
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Built-in kinds omit what the enclosing document says; custom ones repeat it.
    let (group, version) = match resource.custom {
        true => (resource.group.as_str(), resource.version.as_str()),
        false => ("", ""),
    };
    let own = json!({"group": group, "version": version, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": verbs(resource),
    });
    insert_names(resource, entry.as_object_mut().expect("made an object above"));
    let subresources: Vec<Value> = sorted_subresources(resource)
        .into_iter()
        .map(|sub| {
            let kind = match sub.gvk {
                Some((group, version, kind)) => {
                    json!({"group": group, "version": version, "kind": kind})
                }
                None => own.clone(),
            };
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
