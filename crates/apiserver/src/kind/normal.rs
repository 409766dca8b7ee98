//! The representation that an object has after Go decoded and encoded it: no nulls, no empty lists
//! and string maps, no zero values that `omitempty` omits, canonical quantities and times.
//!
//! This module knows field names, not types: a name means the same in all built-in kinds, except
//! for what kinds restore in their defaults.

use api_meta::{quantity, time};
use serde_json::Value;

use crate::fields::Object;

/// Maps from string to string.
const TEXT_MAPS: &[&str] = &[
    "annotations",
    "attachmentMetadata",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "stringData",
    "volumeAttributes",
];
/// Maps from string to quantity.
const QUANTITY_MAPS: &[&str] = &[
    "allocatable",
    "allocatedResources",
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "min",
    "overhead",
    "requests",
    "used",
];
/// Single quantities.
const QUANTITIES: &[&str] = &["averageValue", "divisor", "sizeLimit", "tolerance"];
/// Times to the second.
const TIMES: &[&str] = &[
    "completionTime",
    "deletionTimestamp",
    "expirationTimestamp",
    "finishedAt",
    "firstTimestamp",
    "lastHeartbeatTime",
    "lastPhaseTransitionTime",
    "lastProbeTime",
    "lastScaleTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "startedAt",
    "time",
    "timeAdded",
];
/// Omitted when false.
const FALSE_OMITTED: &[&str] = &[
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "unschedulable",
];
/// Omitted when zero.
const ZERO_OMITTED: &[&str] = &[
    "active",
    "availableReplicas",
    "failed",
    "fullyLabeledReplicas",
    "minReadySeconds",
    "numberAvailable",
    "numberUnavailable",
    "observedGeneration",
    "readyReplicas",
    "succeeded",
    "unavailableReplicas",
    "updatedNumberScheduled",
    "updatedReplicas",
];
/// Omitted when empty.
const EMPTY_OMITTED: &[&str] = &[
    "completedIndexes",
    "currentRevision",
    "effect",
    "externalName",
    "fsType",
    "generateName",
    "key",
    "loadBalancerIP",
    "medium",
    "hostIP",
    "nodeName",
    "nominatedNodeName",
    "operator",
    "podIP",
    "subPath",
    "subPathExpr",
    "targetVolumeAttributesClassName",
    "updateRevision",
    "value",
    "workingDir",
];

/// Normalizes an object in place, except for the top-level fields in `opaque`. Idempotent.
pub fn normalize(object: &mut Value, opaque: &[&str]) {
    let Some(object) = object.as_object_mut() else { return };
    object.retain(|field, value| opaque.contains(&field.as_str()) || normalize_field(field, value));
}

fn normalize_map(object: &mut Object) {
    object.retain(|field, value| normalize_field(field, value));
}

/// Normalizes the value of a field; `false` when the field is omitted.
fn normalize_field(field: &str, value: &mut Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value || !FALSE_OMITTED.contains(&field),
        Value::Number(number) if QUANTITIES.contains(&field) => {
            if let Some(text) = quantity::canonical(&Value::Number(number.clone())) {
                *value = Value::String(text);
            }
            true
        }
        Value::Number(number) => !(number.as_i64() == Some(0) && ZERO_OMITTED.contains(&field)),
        Value::String(text) if QUANTITIES.contains(&field) => {
            canonicalize(text);
            true
        }
        Value::String(text) if TIMES.contains(&field) => {
            if let Some(canonical) = time::canonical(text) {
                *text = canonical;
            }
            true
        }
        Value::String(text) => !(text.is_empty() && EMPTY_OMITTED.contains(&field)),
        Value::Array(items) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(normalize_map);
            !items.is_empty()
        }
        Value::Object(map) if TEXT_MAPS.contains(&field) => {
            fill_texts(map);
            !map.is_empty()
        }
        Value::Object(map) if QUANTITY_MAPS.contains(&field) => {
            for value in map.values_mut() {
                if let Some(text) = quantity::canonical(value) {
                    *value = Value::String(text);
                }
            }
            !map.is_empty()
        }
        Value::Object(map) => {
            normalize_map(map);
            true
        }
    }
}

/// In a map from string to string, null is the empty string.
fn fill_texts(map: &mut Object) {
    for value in map.values_mut().filter(|value| value.is_null()) {
        *value = Value::String(String::new());
    }
}

fn canonicalize(text: &mut String) {
    if let Ok(quantity) = text.parse::<quantity::Quantity>() {
        *text = quantity.to_string();
    }
}

/// [`quantity_problem`] of the spec, then of the status.
pub fn quantity_problem_of_both(object: &Value) -> Option<String> {
    ["spec", "status"].iter().find_map(|part| quantity_problem(&object[part]))
}

/// The problem of the first invalid quantity below `value`; `None` when all are valid.
pub fn quantity_problem(value: &Value) -> Option<String> {
    let problem = |value: &Value| {
        quantity::canonical(value).is_none().then(|| quantity::QuantityError.to_string())
    };
    match value {
        Value::Object(map) => map.iter().find_map(|(field, value)| {
            if QUANTITY_MAPS.contains(&field.as_str())
                && let Value::Object(map) = value
            {
                return map.values().find_map(problem);
            }
            if QUANTITIES.contains(&field.as_str()) {
                return problem(value);
            }
            if TEXT_MAPS.contains(&field.as_str()) { None } else { quantity_problem(value) }
        }),
        Value::Array(items) => items.iter().find_map(quantity_problem),
        _ => None,
    }
}
