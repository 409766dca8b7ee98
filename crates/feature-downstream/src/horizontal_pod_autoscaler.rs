//! Autoscalers. The view names the workload by its id and has metrics in one form for all kinds.

use rest_view::{ApiError, Mapper, Presentation};
use serde_json::{Map, Value, json};

pub const TYPE: &str = "horizontalPodAutoscaler";

/// What can be scaled: the first part of ids of workloads, kind, and group with version.
const SCALED: [(&str, &str, &str); 4] = [
    ("deployment", "Deployment", "apps/v1"),
    ("statefulset", "StatefulSet", "apps/v1"),
    ("replicaset", "ReplicaSet", "apps/v1"),
    ("replicationcontroller", "ReplicationController", "v1"),
];

/// Between the view's workload and metrics and those of Kubernetes.
pub struct Scaling;

impl Mapper for Scaling {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let (spec, target) = (&stored["spec"], &stored["spec"]["scaleTargetRef"]);
        if let (Some(kind), Some(name)) = (target["kind"].as_str(), target["name"].as_str()) {
            let namespace = stored["metadata"]["namespace"].as_str().unwrap_or_default();
            let id = format!("{}:{namespace}:{name}", kind.to_lowercase());
            fields.insert("workloadId".to_owned(), id.into());
        }
        let current = stored["status"]["currentMetrics"].as_array();
        if let Some(metrics) = spec["metrics"].as_array() {
            let shown = metrics.iter().map(|metric| {
                let mut shown = shown_metric(metric);
                let same = |found: &&Value| {
                    let found = shown_metric(found);
                    (&found["type"], &found["name"]) == (&shown["type"], &shown["name"])
                };
                if let Some(found) = current.into_iter().flatten().find(same) {
                    let values = &found[source(found)]["current"];
                    shown["current"] = renamed(values, "averageUtilization", "utilization");
                }
                shown
            });
            let shown = shown.collect();
            fields.insert("metrics".to_owned(), shown);
        }
    }

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        if let Some(target) = input.get("workloadId").and_then(Value::as_str).and_then(scaled) {
            stored["spec"]["scaleTargetRef"] = target;
        }
        match input.get("metrics") {
            None => {}
            Some(metrics) => {
                let metrics = metrics.as_array().into_iter().flatten();
                stored["spec"]["metrics"] = metrics.map(stored_metric).collect();
            }
        }
    }
}

/// Name of the field that holds a metric of its type: `Pods` are in `pods`.
fn source(metric: &Value) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut letters = kind.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

fn renamed(values: &Value, from: &str, to: &str) -> Value {
    let mut values = values.clone();
    if let Some(found) = values.as_object_mut().and_then(|values| values.remove(from)) {
        values[to] = found;
    }
    values
}

fn shown_metric(metric: &Value) -> Value {
    let inside = &metric[source(metric)];
    let named = if inside["metric"].is_object() { &inside["metric"] } else { inside };
    let mut out = json!({"type": metric["type"], "name": named["name"]});
    let target = renamed(&inside["target"], "averageUtilization", "utilization");
    let parts = [
        ("target", &target),
        ("selector", &named["selector"]),
        ("describedObject", &inside["describedObject"]),
    ];
    for (name, part) in parts {
        if !part.is_null() {
            out[name] = part.clone();
        }
    }
    if metric["type"] == "ContainerResource" {
        out["containerResource"] = inside.clone();
    }
    out
}

fn stored_metric(metric: &Value) -> Value {
    let mut target = json!({"type": metric["target"]["type"]});
    // Defaults fill in the others.
    let (from, to) = match metric["target"]["type"].as_str() {
        Some("Utilization") => ("utilization", "averageUtilization"),
        Some("AverageValue") => ("averageValue", "averageValue"),
        _ => ("value", "value"),
    };
    target[to] = metric["target"][from].clone();
    let mut inside = json!({ "target": target });
    if metric["type"] == "Resource" {
        inside["name"] = metric["name"].clone();
    } else {
        inside["metric"] = json!({"name": metric["name"]});
        if metric["selector"].is_object() {
            inside["metric"]["selector"] = metric["selector"].clone();
        }
    }
    if metric["describedObject"].is_object() {
        inside["describedObject"] = metric["describedObject"].clone();
    }
    let mut out = json!({"type": metric["type"]});
    out[source(metric)] = inside;
    out
}

/// What the id of a workload names.
fn scaled(id: &str) -> Option<Value> {
    let parts: Vec<&str> = id.split(':').collect();
    let [word, _, name] = parts.as_slice() else { return None };
    let (_, kind, api_version) = SCALED.iter().find(|(known, ..)| known == word)?;
    Some(json!({"kind": kind, "name": name, "apiVersion": api_version}))
}

/// The workload is one that can be scaled, in the autoscaler's own namespace.
///
/// # Errors
/// 422, naming the field.
pub fn check(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(id) = input.get("workloadId").and_then(Value::as_str) else { return Ok(()) };
    let home = match stored {
        Some(stored) => &stored["metadata"]["namespace"],
        None => input.get("namespaceId").unwrap_or(&Value::Null),
    };
    let is_home = id.split(':').nth(1) == home.as_str();
    if scaled(id).is_some() && is_home {
        return Ok(());
    }
    let text = format!(
        "\"{id}\" is no workload of the same namespace that can be scaled; give its id, as in \
         deployment:<namespace>:<name>"
    );
    Err(ApiError::invalid_field("InvalidReference", "workloadId", text))
}
