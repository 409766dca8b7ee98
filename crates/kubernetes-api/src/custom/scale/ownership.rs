//! Applies a `Scale`: its one field is a field of the object behind it, and so are its owners.
//!
//! Like in kube-apiserver, owners of the count are presented as owners of `spec.replicas` of the
//! Scale, the configuration is applied to that, and the result is mapped back.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::apply_scale;
use serde_json::{Map, Value, json};

const API_VERSION: &str = "autoscaling/v1";
const PATH: [&str; 2] = ["spec", "replicas"];

/// The result of applying `config` to `scale`, the Scale of `object`, whose count is at `path`. The
/// result contains the owners of the Scale.
///
/// # Errors
/// 409 for conflicts, 400 when the configuration is not a Scale.
pub(super) fn apply(
    scale: &Value,
    object: &Value,
    path: &[String],
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, Status> {
    let mut scale = scale.clone();
    let entries = entries(object).iter().filter(|entry| owns(entry, object.api_version(), path));
    let scale_entries = entries.map(|entry| {
        let mut shown = entry.clone();
        shown["apiVersion"] = API_VERSION.into();
        shown["fieldsV1"] = fields(&PATH);
        shown
    });
    let scale_entries: Vec<Value> = scale_entries.collect();
    if !scale_entries.is_empty() {
        scale.set_meta("managedFields", scale_entries);
    }
    apply_scale(&scale, config, manager, force)
}

/// The ownership entries of `object`, when those of its Scale are `applied`.
pub(super) fn bring_back(object: &Value, path: &[String], applied: &Value) -> Value {
    let api_version = object.api_version();
    let mut rest: Vec<Value> = applied
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| owns(entry, API_VERSION, &PATH))
        .cloned()
        .collect();
    let mut merged = Vec::new();
    for entry in entries(object) {
        if !owns(entry, api_version, path) {
            merged.push(entry.clone());
        } else if let Some(at) = rest.iter().position(|one| identity(one) == identity(entry)) {
            rest.remove(at);
            merged.push(entry.clone());
        } else {
            let mut without = entry.clone();
            remove(&mut without["fieldsV1"], path);
            if without["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()) {
                merged.push(without);
            }
        }
    }
    for mut entry in rest {
        entry["apiVersion"] = api_version.into();
        entry["fieldsV1"] = fields(path);
        merged.push(entry);
    }
    // Entries of applies come first; the others stay in order.
    merged.sort_by_key(|entry| entry["operation"] != "Apply");
    Value::Array(merged)
}

fn entries(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What identifies the manager of an entry.
fn identity(entry: &Value) -> [&Value; 3] {
    [&entry["manager"], &entry["operation"], &entry["subresource"]]
}

fn owns<S: AsRef<str>>(entry: &Value, api_version: &str, path: &[S]) -> bool {
    let found = path
        .iter()
        .try_fold(&entry["fieldsV1"], |fields, name| fields.get(format!("f:{}", name.as_ref())));
    entry["apiVersion"] == api_version && found.is_some()
}

fn fields<S: AsRef<str>>(path: &[S]) -> Value {
    path.iter().rev().fold(json!({}), |below, name| {
        Value::Object(Map::from_iter([(format!("f:{}", name.as_ref()), below)]))
    })
}

/// Removes a leaf, and the parents that are then empty.
fn remove(fields: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(map) = fields.as_object_mut() else { return };
    let name = format!("f:{first}");
    if rest.is_empty() {
        map.remove(&name);
        return;
    }
    if let Some(below) = map.get_mut(&name) {
        remove(below, rest);
        if below.as_object().is_some_and(Map::is_empty) {
            map.remove(&name);
        }
    }
}
