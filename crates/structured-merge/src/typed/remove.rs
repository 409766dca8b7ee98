//! Removes fields and items from a value.

use serde_json::{Map as JsonMap, Value};

use super::{TypeShape, item_element, shape};
use crate::element::PathElement;
use crate::schema::{ListKind, ListSchema, MapSchema, Schema, TypeId};
use crate::set::FieldSet;

/// `value` without the paths of `set`. A map or list becomes null when nothing of it is left; so
/// does an atomic one when the set contains a path below it.
pub fn remove(schema: &Schema, of: TypeId, value: &Value, set: &FieldSet) -> Value {
    match (shape(schema.atom(of), Some(value)), value) {
        (TypeShape::Scalar(_), value) => value.clone(),
        (TypeShape::Map(map), Value::Object(fields)) if !map.atomic => {
            from_map(schema, map, fields, set)
        }
        (TypeShape::List(list), Value::Array(items)) if list.kind != ListKind::Atomic => {
            from_list(schema, list, items, set)
        }
        _ => Value::Null,
    }
}

fn from_map(
    schema: &Schema,
    map: &MapSchema,
    fields: &JsonMap<String, Value>,
    set: &FieldSet,
) -> Value {
    let mut out = JsonMap::new();
    for (name, value) in fields {
        let element = PathElement::field(name);
        if set.is_member(&element) {
            continue;
        }
        let chosen = match (set.below(&element), map.field_type(name)) {
            (Some(below), Some(of)) => remove(schema, of, value, below),
            _ => value.clone(),
        };
        out.insert(name.clone(), chosen);
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

fn from_list(schema: &Schema, list: &ListSchema, items: &[Value], set: &FieldSet) -> Value {
    let chosen: Vec<Value> = items
        .iter()
        .filter_map(|item| {
            let Ok(element) = item_element(schema, list, item) else { return Some(item.clone()) };
            if set.is_member(&element) {
                return None;
            }
            Some(match set.below(&element) {
                Some(below) => remove(schema, list.items, item, below),
                None => item.clone(),
            })
        })
        .collect();
    if chosen.is_empty() { Value::Null } else { Value::Array(chosen) }
}
