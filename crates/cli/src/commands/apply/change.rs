//! The changes of an object. Fields that a document does not name stay; null removes a field.

use serde_json::{Map, Value};

use crate::error::{CliError, Failure};
use crate::types::Type;

/// The difference between the desired fields and the existing object.
#[derive(Debug, Default)]
pub struct FieldChanges {
    /// Whole values of the fields that differ.
    pub body: Map<String, Value>,
    /// Write-only fields, which can be set at creation only.
    pub left_out: Vec<String>,
}

impl FieldChanges {
    /// Whether the object already has all desired fields.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// The fields of `desired` that differ in `current`.
pub fn diff(
    kind: &Type,
    current: &Value,
    desired: &Map<String, Value>,
) -> Result<FieldChanges, CliError> {
    let mut change = FieldChanges::default();
    for (field, desired) in desired {
        let merged = merge(&current[field], desired);
        if same(&merged, &current[field]) {
            continue;
        }
        if kind.allows(field, "update") {
            change.body.insert(field.clone(), merged);
        } else if kind.allows(field, "writeOnly") {
            change.left_out.push(field.clone());
        } else if kind.allows(field, "create") {
            let text = format!("field \"{field}\" of {} cannot be changed any more", kind.id);
            return Err(CliError::new(Failure::Invalid, text)
                .hint("delete the object and apply again, or write the value that it has"));
        }
        // Fields that only the server sets are ignored.
    }
    Ok(change)
}

/// Merges `desired` into `current`: objects are merged, other values replaced.
fn merge(current: &Value, desired: &Value) -> Value {
    let Value::Object(desired) = desired else { return desired.clone() };
    let mut merged = current.as_object().cloned().unwrap_or_default();
    for (key, value) in desired {
        match value {
            Value::Null => {
                merged.remove(key);
            }
            value => {
                let below = merge(merged.get(key).unwrap_or(&Value::Null), value);
                merged.insert(key.clone(), below);
            }
        }
    }
    Value::Object(merged)
}

/// Whether two values are equal to the server: it omits empty values, and parses numbers from text.
fn same(left: &Value, right: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match (left, right) {
        (left, right) if is_empty(left) && is_empty(right) => true,
        (Value::Number(number), Value::String(text))
        | (Value::String(text), Value::Number(number)) => number.to_string() == *text,
        (Value::Object(left), Value::Object(right)) => {
            let none = Value::Null;
            let keys = left.keys().chain(right.keys());
            let of = |map: &Map<String, Value>, key| map.get(key).unwrap_or(&none).clone();
            keys.into_iter().all(|key| same(&of(left, key), &of(right, key)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (left, right) => left == right,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind() -> Type {
        Type::of_schema(&json!({
            "id": "thing", "links": {"collection": "/v3/things"},
            "resourceFields": {
                "name": {"type": "string", "create": true, "update": true},
                "labels": {"type": "map[string]", "create": true, "update": true},
                "quota": {"type": "quota", "create": true, "update": true},
                "size": {"type": "int", "create": true, "update": true},
                "clusterId": {"type": "reference[cluster]", "create": true, "update": false},
                "password": {"type": "password", "create": true, "update": false, "writeOnly": true},
                "state": {"type": "string", "create": false, "update": false},
            },
        }))
        .unwrap()
    }

    fn change(desired: Value) -> Result<FieldChanges, CliError> {
        let current = json!({
            "name": "n", "labels": {"other": "x", "own": "y"}, "clusterId": "c-1", "size": 3,
            "quota": {"limit": {"pods": "10", "secrets": "5"}}, "state": "active",
        });
        diff(&kind(), &current, desired.as_object().unwrap())
    }

    #[test]
    fn equal_fields_are_no_change() {
        for same in [
            json!({}),
            json!({"name": "n", "size": "3", "clusterId": "c-1"}),
            json!({"labels": {"own": "y"}}),
            json!({"quota": {"limit": {"pods": "10"}}}),
            json!({"labels": {"absent": null}}),
            json!({"state": "other"}),
        ] {
            assert!(change(same.clone()).unwrap().is_empty(), "{same}");
        }
    }

    #[test]
    fn changed_fields_are_sent_whole_with_values_of_others() {
        for (desired, sent) in [
            (json!({"name": "m", "size": 3}), json!({"name": "m"})),
            (json!({"labels": {"own": "z"}}), json!({"labels": {"other": "x", "own": "z"}})),
            (json!({"labels": {"own": null}}), json!({"labels": {"other": "x"}})),
            (
                json!({"quota": {"limit": {"pods": 20}}}),
                json!({"quota": {"limit": {"pods": 20, "secrets": "5"}}}),
            ),
        ] {
            assert_eq!(Value::Object(change(desired).unwrap().body), sent);
        }
    }

    #[test]
    fn immutable_fields_are_refused_and_secrets_are_left_out() {
        let error = change(json!({"clusterId": "c-2"})).unwrap_err();
        assert!(error.message.contains("clusterId"), "{}", error.message);
        let change = change(json!({"password": "p", "name": "m"})).unwrap();
        assert_eq!(change.left_out, ["password"]);
        assert_eq!(Value::Object(change.body), json!({"name": "m"}));
    }
}
