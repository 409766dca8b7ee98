//! Every object of a cluster, to compare before and after.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Client;

/// Resources that change without requests, as `resource` or `resource.group`.
const RESTLESS: [&str; 4] =
    ["componentstatuses", "events", "events.events.k8s.io", "leases.coordination.k8s.io"];

/// Every object by `resource.group/namespace/name`, without fields that the server counts itself.
pub type Snapshot = BTreeMap<String, Value>;

/// Lists all resources. Events, Leases and node status are left out.
///
/// # Errors
/// A list is refused.
pub fn take(admin: &Client) -> Result<Snapshot> {
    let mut found = Snapshot::new();
    for version in versions(admin)? {
        let resources = admin.get(&version)?.success()?;
        for resource in items(&resources["resources"]) {
            let name = resource["name"].as_str().context("a resource without a name")?;
            let can_list = items(&resource["verbs"]).any(|verb| verb == "list");
            let group = group_of(&version);
            let full = if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") };
            if name.contains('/') || !can_list || RESTLESS.contains(&full.as_str()) {
                continue;
            }
            let list = admin.get(&format!("{version}/{name}"))?.success()?;
            for object in items(&list["items"]) {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or("-");
                let object_name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.insert(format!("{full}/{namespace}/{object_name}"), at_rest(&full, object));
            }
        }
    }
    Ok(found)
}

/// One line per object that was created, deleted or changed.
#[must_use]
pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, object) in after {
        match before.get(key) {
            None => lines.push(format!("new: {key}")),
            Some(earlier) if earlier != object => {
                lines.push(format!("changed: {key}: {earlier} -> {object}"));
            }
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    lines.extend(gone.map(|key| format!("gone: {key}")));
    lines
}

/// `/api/v1` and the preferred version of each group.
fn versions(admin: &Client) -> Result<Vec<String>> {
    let mut paths = vec!["/api/v1".to_owned()];
    let groups = admin.get("/apis")?.success()?;
    for group in items(&groups["groups"]) {
        let version = group["preferredVersion"]["groupVersion"].as_str();
        paths.push(format!("/apis/{}", version.context("a group without a version")?));
    }
    Ok(paths)
}

fn group_of(path: &str) -> &str {
    match path.strip_prefix("/apis/") {
        Some(rest) => rest.split('/').next().unwrap_or_default(),
        None => "",
    }
}

fn at_rest(resource: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    if resource == "nodes"
        && let Some(node) = object.as_object_mut()
    {
        node.remove("status");
    }
    object
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
