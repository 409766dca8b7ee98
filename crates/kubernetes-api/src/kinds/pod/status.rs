//! The parts of a pod's status that the server itself sets and retains.

use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use apiserver::kind::default_conditions;
use serde_json::{Value, json};

const CONTAINERS: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Sets the defaults of a pod's status, like kube-apiserver. Idempotent.
pub fn default(status: &mut Object) {
    default_conditions(status, &["lastProbeTime"]);
    for list in CONTAINERS {
        each(status, list, default_container);
    }
    // Older clients read only one address; it is the first of all.
    let address = text(status, "podIP").to_owned();
    let first = status.get("podIPs").map_or("", |list| str_of(&list[0]["ip"])).to_owned();
    if !address.is_empty() && first != address {
        status.insert("podIPs".to_owned(), json!([{"ip": address}]));
    } else if !first.is_empty() {
        status.insert("podIP".to_owned(), first.into());
    }
}

fn default_container(container: &mut Object) {
    for name in ["name", "image", "imageID"] {
        preset(container, name, "");
    }
    preset(container, "ready", false);
    preset(container, "restartCount", 0);
    for name in ["state", "lastState"] {
        let Some(state) = ensure(container, name) else { continue };
        if let Some(running) = child(state, "running") {
            preset(running, "startedAt", Value::Null);
        }
        if let Some(ended) = child(state, "terminated") {
            preset(ended, "exitCode", 0);
            preset(ended, "startedAt", Value::Null);
            preset(ended, "finishedAt", Value::Null);
        }
    }
    // The mounted version of an image is not reported yet.
    each(container, "volumeMounts", |mount| {
        mount.remove("volumeStatus");
    });
}

/// Restores the fields of a written status that old kubelets omit: QoS class, generations and
/// owners.
pub fn retain_old_fields(object: &mut Value, old: &Value) {
    let Some(object) = map(object) else { return };
    if let Some(metadata) = child(object, "metadata") {
        match &old["metadata"]["ownerReferences"] {
            Value::Null => metadata.remove("ownerReferences"),
            owners => metadata.insert("ownerReferences".to_owned(), owners.clone()),
        };
    }
    let Some(status) = child(object, "status") else { return };
    for field in ["qosClass", "observedGeneration"] {
        if !old["status"][field].is_null() {
            preset(status, field, old["status"][field].clone());
        }
    }
    let mut before: Vec<&Value> = items(&old["status"]["conditions"]).iter().collect();
    each(status, "conditions", |condition| {
        let same = before.iter().position(|one| Some(&one["type"]) == condition.get("type"));
        let generation = same.map(|at| &before.remove(at)["observedGeneration"]);
        if let Some(generation) = generation.filter(|generation| !generation.is_null()) {
            preset(condition, "observedGeneration", generation.clone());
        }
    });
}

/// Replaces the condition of the same type, or appends the condition.
pub fn set_condition(status: &mut Value, condition: Value) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
}
