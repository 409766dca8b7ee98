//! Node in the REST view: what the downstream node says, in the fields that clients know.

use std::sync::Arc;

use api_management::node::DRAINED;
use feature_kit::table;
use rest_view::state::{Summary, Transitioning};
use rest_view::{Action, Descriptor, Methods, Presentation, Resource};
use serde_json::{Map, Value, json};

use super::actions::is_cordoned;
use super::drain::condition;
use super::store::NodeStore;

/// The type `node`. `actions`: what its objects offer.
pub fn view(store: NodeStore, actions: impl IntoIterator<Item = Action>) -> Descriptor {
    let view = table::descriptor("node")
        .store(Arc::new(store))
        // Nodes join their cluster there; making machines is the node drivers' part.
        .methods(Methods { create: false, ..Methods::ALL })
        .formatter(format)
        .personal(&[]);
    actions.into_iter().fold(view, Descriptor::action)
}

fn format(context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let status = &stored["status"];
    let fields = &mut resource.fields;
    if fields.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        fields.insert("name".to_owned(), status["nodeName"].clone());
    }
    let conditions = conditions(status);
    let summary = summary(context, stored, &conditions);
    fields.insert("state".to_owned(), summary.state.into());
    fields.insert("transitioning".to_owned(), summary.transitioning.as_str().into());
    fields.insert("transitioningMessage".to_owned(), summary.message.into());
    fields.insert("conditions".to_owned(), conditions.into());
    if let Some(info) = info(&status["internalNodeStatus"]) {
        fields.insert("info".to_owned(), info);
    }
}

/// A drain that ended says something of a node only while nothing else is wrong with it.
fn summary(context: &Presentation<'_>, stored: &Value, conditions: &[Value]) -> Summary {
    let has_ended = |it: &&Value| it["type"] == DRAINED && it["status"] != "Unknown";
    let drain = conditions.iter().find(has_ended);
    let others: Vec<&Value> = conditions.iter().filter(|it| !has_ended(it)).collect();
    let object = json!({"metadata": stored["metadata"], "status": {"conditions": others}});
    let mut summary = rest_view::state::summarise(&object, context.now);
    if summary.state != "active" || !is_cordoned(stored) {
        return summary;
    }
    let is_drained = drain.is_some_and(|drain| drain["status"] == "True");
    summary.state = if is_drained { "drained" } else { "cordoned" }.to_owned();
    if let Some(drain) = drain
        && !is_drained
        && drain["reason"] != condition::STOPPED
    {
        summary.transitioning = Transitioning::Error;
        summary.message = drain["message"].as_str().unwrap_or_default().to_owned();
    }
    summary
}

/// Ours and the downstream node's, in one list.
fn conditions(status: &Value) -> Vec<Value> {
    let lists = [&status["conditions"], &status["internalNodeStatus"]["conditions"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut merged: Vec<Value> = Vec::new();
    for condition in all {
        // Where both have a type, the node's own word counts.
        merged.retain(|known| known["type"] != condition["type"]);
        merged.push(condition.clone());
    }
    merged
}

fn info(node: &Value) -> Option<Value> {
    let system = node["nodeInfo"].as_object()?;
    let text = |name: &str| system.get(name).cloned().unwrap_or_default();
    let capacity = |name: &str| node["capacity"][name].as_str().unwrap_or_default();
    let mut info = json!({
        "kubernetes": {
            "kubeletVersion": text("kubeletVersion"), "kubeProxyVersion": text("kubeProxyVersion"),
        },
        "os": {
            "dockerVersion": text("containerRuntimeVersion"),
            "kernelVersion": text("kernelVersion"), "operatingSystem": text("osImage"),
        },
    });
    let map = info.as_object_mut()?;
    insert_number(map, "cpu", "count", capacity("cpu").parse().ok());
    insert_number(map, "memory", "memTotalKiB", kibibytes(capacity("memory")));
    Some(info)
}

fn insert_number(map: &mut Map<String, Value>, part: &str, field: &str, number: Option<i64>) {
    if let Some(number) = number {
        map.insert(part.to_owned(), json!({ field: number }));
    }
}

/// Kubernetes writes a node's memory in whole units: `16384Ki`, `16Gi`, or bytes.
fn kibibytes(quantity: &str) -> Option<i64> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: i64 = digits.parse().ok()?;
    match &quantity[digits.len()..] {
        "Ki" => Some(number),
        "Mi" => number.checked_mul(1 << 10),
        "Gi" => number.checked_mul(1 << 20),
        "Ti" => number.checked_mul(1 << 30),
        "" => Some(number / 1024),
        _ => None,
    }
}
