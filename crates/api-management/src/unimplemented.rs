//! Unimplemented kinds and fields: stored, validated and shown, but not acted on yet. Whole
//! objects, or fields of objects that are otherwise implemented.
//!
//! Each object reports this in a condition. States ignore the condition, so an object shows the
//! state that it would have with nothing left to do. The tables of the types declare which types
//! and fields are unimplemented ([`crate::table`]).

use serde_json::{Value, json};

use crate::condition::FALSE;
use crate::table::RowLocation;
use crate::types;

/// Condition type: whether the object has an effect.
pub const EFFECTIVE: &str = "Effective";
/// Reason of [`EFFECTIVE`] being false.
pub const NOT_IMPLEMENTED: &str = "NotImplemented";
/// Its message for a whole object.
pub const MESSAGE: &str = "The object is stored and checked, but this version does not act on it.";

/// Adds the condition to an object that does not have it. Idempotent.
pub fn mark(object: &mut Value) {
    say(object, MESSAGE);
}

/// A field that is stored and not acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnimplementedField {
    /// Name of the field in the view.
    pub name: &'static str,
    /// JSON pointer from the object's root.
    pointer: String,
}

/// The unimplemented fields of a kind.
pub fn fields(kind: &str) -> Vec<UnimplementedField> {
    let rows = types::tables_of_kind(kind).into_iter().flat_map(|table| table.fields);
    let found = rows.filter(|row| row.is_unimplemented).filter_map(|row| match row.location {
        RowLocation::Path(path) => Some(UnimplementedField {
            name: row.name,
            pointer: format!("/{}", path.replace('.', "/")),
        }),
        _ => None,
    });
    found.collect()
}

/// Makes the condition name the fields of `fields` that the object sets; without any, removes the
/// condition. Idempotent.
pub fn mark_fields(object: &mut Value, fields: &[UnimplementedField]) {
    let is_set =
        |field: &&UnimplementedField| object.pointer(&field.pointer).is_some_and(says_something);
    let names: Vec<&str> = fields.iter().filter(is_set).map(|field| field.name).collect();
    if names.is_empty() {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        if let Some(list) = conditions {
            list.retain(|condition| {
                condition["type"] != EFFECTIVE || condition["reason"] != NOT_IMPLEMENTED
            });
        }
        return;
    }
    let names = names.join(", ");
    say(
        object,
        &format!("This version stores and checks these fields, but does not act on them: {names}."),
    );
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => entries.values().any(says_something),
        _ => true,
    }
}

fn say(object: &mut Value, message: &str) {
    let Some(map) = object.as_object_mut() else { return };
    let status = map.entry("status").or_insert_with(|| json!({}));
    if status.is_null() {
        *status = json!({});
    }
    let Some(status) = status.as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    match list.iter_mut().find(|condition| condition["type"] == EFFECTIVE) {
        Some(said) if said["reason"] == NOT_IMPLEMENTED => said["message"] = message.into(),
        Some(_) => {}
        None => list.push(json!({
            "type": EFFECTIVE,
            "status": FALSE,
            "reason": NOT_IMPLEMENTED,
            "message": message,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_names_the_fields_that_it_has_and_nothing_acts_on() {
        let fields = fields("Project");
        let mut project = json!({"spec": {"displayName": "x", "enableProjectMonitoring": false}});
        let plain = project.clone();
        mark_fields(&mut project, &fields);
        assert_eq!(project, plain);
        project["spec"]["enableProjectMonitoring"] = true.into();
        mark_fields(&mut project, &fields);
        let said = project["status"]["conditions"][0].clone();
        assert_eq!((&said["type"], &said["status"]), (&json!(EFFECTIVE), &json!("False")));
        let message = said["message"].as_str().unwrap();
        assert!(message.ends_with("act on them: enableProjectMonitoring."), "{message}");
        project["spec"] = json!({});
        mark_fields(&mut project, &fields);
        assert_eq!(project["status"]["conditions"], json!([]));
    }
}
