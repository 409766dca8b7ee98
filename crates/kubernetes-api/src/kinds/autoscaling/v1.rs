//! Version 1 of HorizontalPodAutoscaler: CPU utilization is a field, all other metrics are in
//! annotations. Objects are stored as version 2.

use apiserver::fields::{Object, child, ensure, map, preset};
use apiserver::kind::{Hooks, Kind};
use apiserver::strategy::{Operation, Write};
use serde_json::{Map, Value, json};

use super::annotations::{self, BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS};

const API_VERSION: &str = "autoscaling/v1";
const STORED_VERSION: &str = "autoscaling/v2";

/// The kind HorizontalPodAutoscaler in version 1, with the names and columns of the stored version.
pub fn kind() -> Kind {
    Kind {
        version: "v1",
        stored_version: Some("v2"),
        hooks: Hooks {
            // The annotations are rewritten from the fields that are stored of them.
            default: |object| {
                to_stored(object);
                to_served(object);
            },
            prepare,
            validate: |write, object, old| {
                super::validate(write, &stored(object), old.map(stored).as_ref())
            },
            cells: |object, now| super::row(&stored(object), now),
            on_read: Some(to_served),
            on_store: Some(to_stored),
            decode_problem: |_| None,
            ..super::stored_kind().hooks
        },
        ..super::stored_kind()
    }
}

/// A write of the spec does not change the annotations with fields of the status, and vice versa.
fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    if write.operation == Operation::Create {
        object["status"] = json!({"currentReplicas": 0, "desiredReplicas": 0});
    }
    let is_of_status = |name: &str| annotations::OF_STATUS.contains(&name);
    let is_foreign = |name: &str| match write.operation {
        Operation::UpdateStatus => !is_of_status(name),
        _ => is_of_status(name),
    };
    let foreign: Vec<&str> = annotations::ALL.into_iter().filter(|name| is_foreign(name)).collect();
    let old = old.map(|old| &old["metadata"]["annotations"]);
    with_annotations(object, |annotations| {
        for name in foreign {
            match old.and_then(|old| old.get(name)) {
                Some(value) => annotations.insert(name.to_owned(), value.clone()),
                None => annotations.remove(name),
            };
        }
    });
}

fn stored(object: &Value) -> Value {
    let mut object = object.clone();
    to_stored(&mut object);
    object
}

/// Changes the annotations. Removes the map when it is empty.
fn with_annotations<T>(object: &mut Value, change: impl FnOnce(&mut Object) -> T) -> Option<T> {
    let metadata = map(object).and_then(|object| ensure(object, "metadata"))?;
    let annotations = ensure(metadata, "annotations")?;
    let changed = change(annotations);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Some(changed)
}

/// Removes and returns the annotations with fields of another version.
fn take_annotations(object: &mut Value) -> Map<String, Value> {
    with_annotations(object, |annotations| {
        let taken = annotations::ALL.iter().filter_map(|name| annotations.remove_entry(*name));
        taken.collect()
    })
    .unwrap_or_default()
}

/// Removes the annotations with fields of another version.
pub fn drop_annotations(object: &mut Value) {
    if object["metadata"]["annotations"].is_object() {
        take_annotations(object);
    }
}

/// Converts from the stored version, in which every object has metrics.
fn to_served(object: &mut Value) {
    if !object["spec"]["metrics"].is_array() {
        return;
    }
    take_annotations(object);
    let mut found = Map::new();
    let Some(fields) = map(object) else { return };
    fields.insert("apiVersion".to_owned(), API_VERSION.into());
    if let Some(spec) = child(fields, "spec") {
        let metrics = spec.remove("metrics").unwrap_or_default();
        let metrics = metrics.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(first) = metrics.iter().find(|metric| is_utilization(metric)) {
            let percent = first["resource"]["target"]["averageUtilization"].clone();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        let mut others = metrics.iter().filter(|metric| !is_utilization(metric)).peekable();
        if others.peek().is_some() {
            found.insert(METRICS.to_owned(), annotations::write_metrics(others).into());
        }
        if let Some(behavior) = spec.remove("behavior").filter(|behavior| !behavior.is_null()) {
            found.insert(BEHAVIOR.to_owned(), annotations::write_behavior(&behavior).into());
        }
    }
    if let Some(status) = child(fields, "status") {
        preset(status, "currentReplicas", 0);
        if let Some(Value::Array(metrics)) = status.remove("currentMetrics")
            && !metrics.is_empty()
        {
            let percent = |metric: &Value| {
                let percent = &metric["resource"]["current"]["averageUtilization"];
                (is_cpu(metric) && !percent.is_null()).then(|| percent.clone())
            };
            if let Some(percent) = metrics.iter().rev().find_map(percent) {
                status.insert("currentCPUUtilizationPercentage".to_owned(), percent);
            }
            let text = annotations::write_current_metrics(&metrics);
            found.insert(CURRENT_METRICS.to_owned(), text.into());
        }
        if let Some(Value::Array(conditions)) = status.remove("conditions")
            && !conditions.is_empty()
        {
            found.insert(CONDITIONS.to_owned(), annotations::write_conditions(&conditions).into());
        }
    }
    if !found.is_empty() {
        with_annotations(object, |annotations| annotations.extend(found));
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

/// Whether version 1 has a field for the metric.
fn is_utilization(metric: &Value) -> bool {
    is_cpu(metric) && !metric["resource"]["target"]["averageUtilization"].is_null()
}

/// Converts to the stored version and sets its defaults, because the annotations need not contain
/// all fields.
pub fn to_stored(object: &mut Value) {
    if object["spec"]["metrics"].is_array() || object.get("metadata").is_none() {
        return;
    }
    let given = take_annotations(object);
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let Some(fields) = map(object) else { return };
    fields.insert("apiVersion".to_owned(), STORED_VERSION.into());
    if let Some(spec) = ensure(fields, "spec") {
        let others = text(METRICS).and_then(annotations::read_metrics);
        let mut metrics = others.unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage")
            && !percent.is_null()
        {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            let resource = json!({"name": "cpu", "target": target});
            metrics.push(json!({"type": "Resource", "resource": resource}));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = text(BEHAVIOR).and_then(annotations::read_behavior) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = ensure(fields, "status") {
        if status.get("currentReplicas").is_some_and(|count| *count == 0) {
            status.remove("currentReplicas");
        }
        let percent = status.remove("currentCPUUtilizationPercentage").unwrap_or_default();
        let measured = text(CURRENT_METRICS).and_then(annotations::read_current_metrics);
        let measured = measured.or_else(|| {
            let current = json!({"averageUtilization": percent});
            let resource = json!({"name": "cpu", "current": current});
            (!percent.is_null()).then(|| vec![json!({"type": "Resource", "resource": resource})])
        });
        if let Some(measured) = measured {
            status.insert("currentMetrics".to_owned(), measured.into());
        }
        if let Some(conditions) = text(CONDITIONS).and_then(annotations::read_conditions) {
            status.insert("conditions".to_owned(), conditions.into());
        }
    }
    super::default(object);
}
