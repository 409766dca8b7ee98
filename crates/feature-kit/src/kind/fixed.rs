//! Fields that do not change once they have a value. Pure.

use api_meta::status::Cause;
use serde_json::Value;

const CHANGED: &str = "field is immutable; delete the object and create another";
const FILLED: &str = "field is immutable: only the server fills in what was left empty; delete the object and \
                      create another";

/// A refusal for each field that had a value and has another one, or none.
pub fn refuse_changed(fixed: &[String], object: &Value, old: &Value) -> Vec<Cause> {
    let with_value = fixed.iter().filter(|field| !is_empty(&old[field.as_str()]));
    differing(with_value, object, old, CHANGED)
}

/// A refusal for each field that had no value and has one.
pub fn refuse_filled(fixed: &[String], object: &Value, old: &Value) -> Vec<Cause> {
    let without = fixed.iter().filter(|field| is_empty(&old[field.as_str()]));
    let given = without.filter(|field| !is_empty(&object[field.as_str()]));
    differing(given, object, old, FILLED)
}

/// The fields that have no value yet.
pub fn open_fields<'a>(fixed: &'a [String], old: &'a Value) -> impl Iterator<Item = &'a str> {
    fixed.iter().map(String::as_str).filter(|field| is_empty(&old[*field]))
}

fn differing<'a>(
    fields: impl Iterator<Item = &'a String>,
    object: &Value,
    old: &Value,
    detail: &str,
) -> Vec<Cause> {
    let differ = fields.filter(|field| object[field.as_str()] != old[field.as_str()]);
    differ.map(|field| Cause::invalid(field.as_str(), &object[field.as_str()], detail)).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
