//! What must change of an object. What a document does not name stays; null takes away.

use serde_json::{Map, Value};

use crate::error::{CliError, Failure};
use crate::types::Type;

/// The difference between what is wanted and what is there.
#[derive(Debug, Default)]
pub struct Change {
    /// Whole values of the fields that differ.
    pub body: Map<String, Value>,
    /// Secrets that only a new object takes.
    pub left_out: Vec<String>,
}

impl Change {
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// What of `wanted` is not so in `current`.
pub fn between(
    kind: &Type,
    current: &Value,
    wanted: &Map<String, Value>,
) -> Result<Change, CliError> {
    let mut change = Change::default();
    for (field, wanted) in wanted {
        let merged = merge(&current[field], wanted);
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
        // What the server alone decides is of no account.
    }
    Ok(change)
}

/// Objects are merged; anything else is replaced.
fn merge(current: &Value, wanted: &Value) -> Value {
    let Value::Object(wanted) = wanted else { return wanted.clone() };
    let mut merged = current.as_object().cloned().unwrap_or_default();
    for (key, value) in wanted {
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

/// Servers leave out what is empty, and read numbers from text.
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

    fn change(wanted: Value) -> Result<Change, CliError> {
        let current = json!({
            "name": "n", "labels": {"theirs": "x", "ours": "y"}, "clusterId": "c-1", "size": 3,
            "quota": {"limit": {"pods": "10", "secrets": "5"}}, "state": "active",
        });
        between(&kind(), &current, wanted.as_object().unwrap())
    }

    #[test]
    fn what_is_so_already_is_no_change() {
        for same in [
            json!({}),
            json!({"name": "n", "size": "3", "clusterId": "c-1"}),
            json!({"labels": {"ours": "y"}}),
            json!({"quota": {"limit": {"pods": "10"}}}),
            json!({"labels": {"gone": null}}),
            json!({"state": "other"}),
        ] {
            assert!(change(same.clone()).unwrap().is_empty(), "{same}");
        }
    }

    #[test]
    fn what_differs_is_sent_whole_with_what_others_wrote() {
        for (wanted, sent) in [
            (json!({"name": "m", "size": 3}), json!({"name": "m"})),
            (json!({"labels": {"ours": "z"}}), json!({"labels": {"theirs": "x", "ours": "z"}})),
            (json!({"labels": {"ours": null}}), json!({"labels": {"theirs": "x"}})),
            (
                json!({"quota": {"limit": {"pods": 20}}}),
                json!({"quota": {"limit": {"pods": 20, "secrets": "5"}}}),
            ),
        ] {
            assert_eq!(Value::Object(change(wanted).unwrap().body), sent);
        }
    }

    #[test]
    fn what_cannot_be_changed_is_refused_and_secrets_are_left_out() {
        let error = change(json!({"clusterId": "c-2"})).unwrap_err();
        assert!(error.message.contains("clusterId"), "{}", error.message);
        let change = change(json!({"password": "p", "name": "m"})).unwrap();
        assert_eq!(change.left_out, ["password"]);
        assert_eq!(Value::Object(change.body), json!({"name": "m"}));
    }
}
