//! Fetches discovery and schemas of one version from another server.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{Api, Published, Remote};
use crate::body::negotiate::AGGREGATED_MEDIA_TYPE;
use crate::fields::{items, str_of};
use crate::registry::Registry;

const REFERENCE: &str = "#/definitions/";

/// Fetches discovery and schemas. Schemas may be missing; without discovery the fetch fails.
/// `before` is the last result, whose OpenAPI v2 document is reused while it is unchanged.
///
/// # Errors
/// Why discovery failed.
pub(super) async fn fetch(
    registry: &Registry,
    api: &Api,
    remote: &Remote,
    before: &Published,
) -> Result<Published, String> {
    let resources = resources(registry, api, remote).await?;
    let v3_hash = v3_hash(registry, api, remote).await;
    let (v2, v2_tag) = match v2(registry, api, remote, &before.v2_tag).await {
        Schemas::Same => (before.v2.clone(), before.v2_tag.clone()),
        Schemas::New(document, tag) => (Some(document), tag),
        Schemas::None => (None, String::new()),
    };
    Ok(Published { is_current: true, resources, v3_hash, v2, v2_tag })
}

async fn resources(registry: &Registry, api: &Api, remote: &Remote) -> Result<Vec<Value>, String> {
    let accepted = format!("{AGGREGATED_MEDIA_TYPE},application/json");
    if let Ok((headers, all)) = get(registry, remote, "/apis", &accepted).await
        && text(&headers, &CONTENT_TYPE).contains("as=APIGroupDiscoveryList")
    {
        let group = items(&all["items"]).iter().find(|one| one["metadata"]["name"] == *api.group);
        let versions = group.map(|group| items(&group["versions"])).unwrap_or_default();
        if let Some(version) = versions.iter().find(|one| one["version"] == *api.version) {
            return Ok(items(&version["resources"]).to_vec());
        }
    }
    let (_, list) = get(registry, remote, &api.path(), "application/json").await?;
    Ok(resources_from_list(&list))
}

/// Converts an APIResourceList to the resources of aggregated discovery.
fn resources_from_list(list: &Value) -> Vec<Value> {
    let kind = |entry: &Value| {
        let field = |name: &str| str_of(&entry[name]);
        json!({"group": field("group"), "version": field("version"), "kind": field("kind")})
    };
    let entries = items(&list["resources"]);
    let mut resources = Vec::new();
    for entry in entries.iter().filter(|entry| !str_of(&entry["name"]).contains('/')) {
        let name = str_of(&entry["name"]);
        let mut resource = json!({
            "resource": name, "responseKind": kind(entry),
            "scope": if entry["namespaced"] == true { "Namespaced" } else { "Cluster" },
            "singularResource": str_of(&entry["singularName"]), "verbs": entry["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if !items(&entry[field]).is_empty() {
                resource[field] = entry[field].clone();
            }
        }
        let of_this = |entry: &&Value| {
            str_of(&entry["name"]).strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        };
        let subresources: Vec<Value> = entries
            .iter()
            .filter(of_this)
            .map(|entry| {
                let sub = &str_of(&entry["name"])[name.len() + 1..];
                json!({"subresource": sub, "responseKind": kind(entry), "verbs": entry["verbs"]})
            })
            .collect();
        if !subresources.is_empty() {
            resource["subresources"] = subresources.into();
        }
        resources.push(resource);
    }
    resources
}

/// The hash in the URL that the OpenAPI index lists: `/openapi/v3/apis/…?hash=…`.
async fn v3_hash(registry: &Registry, api: &Api, remote: &Remote) -> Option<String> {
    let (_, index) = get(registry, remote, "/openapi/v3", "application/json").await.ok()?;
    let address = index["paths"][api.path().trim_start_matches('/')]["serverRelativeURL"].as_str();
    Some(address?.split_once("hash=").map_or("", |(_, hash)| hash).to_owned())
}

enum Schemas {
    Same,
    /// The part of this version, and the `ETag` of the whole document.
    New(Bytes, String),
    None,
}

async fn v2(registry: &Registry, api: &Api, remote: &Remote, tag: &str) -> Schemas {
    let headers = [(ACCEPT, "application/json"), (IF_NONE_MATCH, tag)];
    let headers = if tag.is_empty() { &headers[..1] } else { &headers[..] };
    let Ok(response) = remote.request(registry, Method::GET, "/openapi/v2", headers).await else {
        return Schemas::None;
    };
    if response.status() == StatusCode::NOT_MODIFIED {
        return Schemas::Same;
    }
    let Ok(document) = serde_json::from_slice::<Value>(response.body()) else {
        return Schemas::None;
    };
    let tag = text(response.headers(), &ETAG);
    Schemas::New(extract_version(&document, &api.path()).to_string().into(), tag.to_owned())
}

/// Extracts the `paths` below `path` and the `definitions` that they refer to.
fn extract_version(document: &Value, path: &str) -> Value {
    let below = |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let all = document["paths"].as_object();
    let paths: Map<String, Value> = all
        .into_iter()
        .flatten()
        .filter(|(key, _)| below(key))
        .map(|(key, entry)| (key.clone(), entry.clone()))
        .collect();
    let paths = Value::Object(paths);
    let mut definitions = Map::new();
    let mut open = BTreeSet::new();
    references(&paths, &mut open);
    while let Some(name) = open.pop_first() {
        let found = &document["definitions"][&name];
        if definitions.contains_key(&name) || found.is_null() {
            continue;
        }
        references(found, &mut open);
        definitions.insert(name, found.clone());
    }
    json!({"paths": paths, "definitions": definitions})
}

/// Collects the names of the definitions that a part of a document refers to.
fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|at| at.strip_prefix(REFERENCE)).map(str::to_owned));
            map.values().for_each(|value| references(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

/// Merges the part of another server's document into this server's. A different definition of an
/// existing name gets a new name.
pub(crate) fn merge_v2(document: &mut Value, part: &Value) {
    let mut part = part.clone();
    let definitions = part["definitions"].take();
    let mut renamed = Vec::new();
    for (name, definition) in definitions.as_object().into_iter().flatten() {
        let existing = &document["definitions"][name];
        if !existing.is_null() && existing != definition {
            let free = (2..).map(|number| format!("{name}_v{number}"));
            let new = free.into_iter().find(|new| document["definitions"][new].is_null());
            renamed.extend(new.map(|new| (name.clone(), new)));
        }
    }
    let rename = |value: &mut Value| rename_references(value, &renamed);
    for (name, definition) in definitions.as_object().into_iter().flatten() {
        let mut definition = definition.clone();
        rename(&mut definition);
        let new = renamed.iter().find(|(old, _)| old == name).map_or(name, |(_, new)| new);
        document["definitions"][new] = definition;
    }
    rename(&mut part["paths"]);
    for (path, entry) in part["paths"].as_object().into_iter().flatten() {
        document["paths"][path] = entry.clone();
    }
}

fn rename_references(value: &mut Value, renamed: &[(String, String)]) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(at)) = map.get_mut("$ref") {
                let name = at.strip_prefix(REFERENCE).unwrap_or_default();
                if let Some((_, new)) = renamed.iter().find(|(old, _)| old == name) {
                    *at = format!("{REFERENCE}{new}");
                }
            }
            map.values_mut().for_each(|value| rename_references(value, renamed));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| rename_references(value, renamed)),
        _ => {}
    }
}

async fn get(
    registry: &Registry,
    remote: &Remote,
    path: &str,
    accept: &str,
) -> Result<(HeaderMap, Value), String> {
    let response = remote.request(registry, Method::GET, path, &[(ACCEPT, accept)]).await;
    let (parts, body) = response.map_err(|error| error.to_string())?.into_parts();
    if !parts.status.is_success() {
        return Err(format!("{path} returned {}", parts.status));
    }
    let value = serde_json::from_slice(&body).map_err(|error| format!("{path}: {error}"))?;
    Ok((parts.headers, value))
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
