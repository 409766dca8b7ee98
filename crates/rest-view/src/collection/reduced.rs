//! Resources for editing and for export as files: `_edit=true` and `_export=true`.

use serde_json::{Map, Value, json};

use crate::collection;
use crate::types::context::Context;
use crate::types::descriptor::{Descriptor, Resource};
use crate::types::field::{Field, FieldType};
use crate::types::registry::Registry;

/// Prefix of the name of a field that is not set. The description, the type, each in round
/// brackets, and the name follow. YAML shows such fields as comments.
const HINT: &str = "zzz#";
/// What an export leaves out beside fields.
const IDENTITY: [&str; 6] = ["id", "type", "baseType", "links", "actions", "actionLinks"];

/// The resource in the representation that the request selects.
pub(crate) fn to_json(context: &Context<'_>, descriptor: &Descriptor, resource: Resource) -> Value {
    let shown = match collection::to_json(context, descriptor, resource) {
        Value::Object(shown) => shown,
        other => return other,
    };
    let is_requested = |name: &str| context.query_value(name) == Some("true");
    let fields: Vec<&Field> = descriptor.fields.values().collect();
    let reduced = if is_requested("_export") {
        export(&fields, context.registry, &descriptor.version, shown)
    } else if is_requested("_edit") {
        edit(&fields, shown)
    } else {
        shown
    };
    reduced.into()
}

/// What is needed to create it again: no identity, nothing that a create ignores, no defaults.
fn export(
    fields: &[&Field],
    registry: &Registry,
    version: &str,
    mut shown: Map<String, Value>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for field in fields.iter().filter(|field| field.create && !IDENTITY.contains(&&*field.name)) {
        let Some(value) = shown.remove(&field.name) else { continue };
        let value = match (&field.kind, value) {
            (FieldType::Struct(id), Value::Object(inner)) => {
                match registry.struct_type(version, id) {
                    Some(kind) => {
                        let nested: Vec<&Field> = kind.fields.iter().collect();
                        export(&nested, registry, version, inner).into()
                    }
                    None => inner.into(),
                }
            }
            (_, value) => value,
        };
        let says_nothing = match &field.default {
            Some(default) => value.is_null() || value == *default,
            None => is_empty(&value),
        };
        if !says_nothing {
            out.insert(field.name.clone(), value);
        }
    }
    out
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

/// What an update accepts, and hints for the fields that are not set.
fn edit(fields: &[&Field], mut shown: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for name in IDENTITY.iter().chain(&["name"]) {
        if let Some(value) = shown.remove(*name) {
            out.insert((*name).to_owned(), value);
        }
    }
    for field in fields.iter().filter(|field| field.update && field.name != "name") {
        let set = shown.remove(&field.name).filter(|value| field.default.as_ref() != Some(value));
        match set {
            Some(value) => out.insert(field.name.clone(), value),
            None => out.insert(hint(field), field.default.clone().unwrap_or_else(|| zero(field))),
        };
    }
    out
}

fn hint(field: &Field) -> String {
    let description = field.description.as_ref().map(|text| format!("{text} ")).unwrap_or_default();
    format!("{HINT}({description})({}){}", field.kind, field.name)
}

fn zero(field: &Field) -> Value {
    match field.kind {
        FieldType::Boolean => json!(false),
        FieldType::Int | FieldType::Float => json!(0),
        FieldType::Array(_) => json!([]),
        FieldType::Map(_) => json!({}),
        FieldType::Json | FieldType::Struct(_) | FieldType::Reference(_) => Value::Null,
        _ => json!(""),
    }
}

/// The name of the field in the key of a hint.
pub(crate) fn hinted(key: &str) -> Option<&str> {
    key.strip_prefix(HINT)?.rsplit_once(')').map(|(_, name)| name)
}
