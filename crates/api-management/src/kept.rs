//! What is only kept: stored, checked and shown, while nothing acts on it yet. Whole objects, or fields of
//! objects that do something otherwise.
//!
//! Each object says so itself, in a condition. States do not take it into account, so an object shows the state
//! that it would have with nothing left to do. Which types and fields these are, their tables say
//! ([`crate::table`]).

use serde_json::{Value, json};

use crate::condition::FALSE;
use crate::table::Place;
use crate::types;

/// Whether what the object asks for is acted on.
pub const EFFECTIVE: &str = "Effective";
/// Reason of [`EFFECTIVE`] being false.
pub const NOT_IMPLEMENTED: &str = "NotImplemented";
/// Its message, of a whole object.
pub const MESSAGE: &str = "The object is stored and checked, but this version does not act on it.";

/// Puts the condition on an object that does not have it. Idempotent.
pub fn mark(object: &mut Value) {
    say(object, MESSAGE);
}

/// A field that is only kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptField {
    pub name: &'static str,
    /// JSON pointer from the object's root.
    pointer: String,
}

/// Those of a kind.
pub fn fields(kind: &str) -> Vec<KeptField> {
    let rows = types::tables_of_kind(kind).into_iter().flat_map(|table| table.fields);
    let kept = rows.filter(|row| row.kept).filter_map(|row| match row.place {
        Place::Path(path) => {
            Some(KeptField { name: row.name, pointer: format!("/{}", path.replace('.', "/")) })
        }
        _ => None,
    });
    kept.collect()
}

/// Makes the condition name the fields of `kept` that the object has; without any, it goes. Idempotent.
pub fn mark_fields(object: &mut Value, kept: &[KeptField]) {
    let asks = |field: &&KeptField| object.pointer(&field.pointer).is_some_and(says_something);
    let names: Vec<&str> = kept.iter().filter(asks).map(|field| field.name).collect();
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
        let kept = fields("Project");
        let mut project = json!({"spec": {"displayName": "x", "resourceQuota": {"limit": {}}}});
        let plain = project.clone();
        mark_fields(&mut project, &kept);
        assert_eq!(project, plain);
        project["spec"]["resourceQuota"]["limit"]["pods"] = "10".into();
        project["spec"]["containerDefaultResourceLimit"] = json!({"limitsCpu": "1"});
        mark_fields(&mut project, &kept);
        let said = project["status"]["conditions"][0].clone();
        assert_eq!((&said["type"], &said["status"]), (&json!(EFFECTIVE), &json!("False")));
        let message = said["message"].as_str().unwrap();
        assert!(message.ends_with("containerDefaultResourceLimit, resourceQuota."), "{message}");
        project["spec"] = json!({});
        mark_fields(&mut project, &kept);
        assert_eq!(project["status"]["conditions"], json!([]));
    }
}
