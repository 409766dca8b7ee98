//! The fields of object metadata in custom resources.
//!
//! The schema of a custom resource need not declare its metadata: all kinds have these fields.
//! Their types are checked where objects are decoded.

use serde_json::Value;

const OBJECT_META: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
const OWNER_REFERENCE: [&str; 6] =
    ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];
const MANAGED_FIELDS: [&str; 7] =
    ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"];

fn nested_fields(field: &str) -> Option<&'static [&'static str]> {
    match field {
        "ownerReferences" => Some(&OWNER_REFERENCE),
        "managedFields" => Some(&MANAGED_FIELDS),
        _ => None,
    }
}

/// Removes fields that object metadata does not have.
pub(crate) fn prune(metadata: &mut Value) {
    let Some(fields) = metadata.as_object_mut() else {
        return;
    };
    fields.retain(|key, _| OBJECT_META.contains(&key.as_str()));
    for (key, value) in fields {
        let (Some(known), Some(list)) = (nested_fields(key), value.as_array_mut()) else {
            continue;
        };
        for entry in list.iter_mut().filter_map(Value::as_object_mut) {
            entry.retain(|key, _| known.contains(&key.as_str()));
        }
    }
}

/// Paths of fields that object metadata does not have.
pub(crate) fn unknown_fields(metadata: &Value, path: &str, out: &mut Vec<String>) {
    for (key, value) in metadata.as_object().into_iter().flatten() {
        if !OBJECT_META.contains(&key.as_str()) {
            out.push(format!("{path}.{key}"));
        }
        let (Some(known), Some(list)) = (nested_fields(key), value.as_array()) else {
            continue;
        };
        for (index, entry) in list.iter().enumerate() {
            let keys = entry.as_object().into_iter().flat_map(|fields| fields.keys());
            let unknown = keys.filter(|inner| !known.contains(&inner.as_str()));
            out.extend(unknown.map(|inner| format!("{path}.{key}[{index}].{inner}")));
        }
    }
}
