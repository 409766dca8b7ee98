//! Taking fields and items out of a value.

use serde_json::{Map as JsonMap, Value};

use super::{Shape, item_element, shape};
use crate::element::PathElement;
use crate::schema::{List, ListKind, Map, Schema, TypeId};
use crate::set::FieldSet;

/// `value` without what is at the paths of `set`. A map or list of which nothing is left becomes
/// null, as does an atomic one that the set reaches into.
pub fn remove(schema: &Schema, of: TypeId, value: &Value, set: &FieldSet) -> Value {
    match (shape(schema.atom(of), Some(value)), value) {
        (Shape::Scalar(_), value) => value.clone(),
        (Shape::Map(map), Value::Object(fields)) if !map.atomic => {
            from_map(schema, map, fields, set)
        }
        (Shape::List(list), Value::Array(items)) if list.kind != ListKind::Atomic => {
            from_list(schema, list, items, set)
        }
        _ => Value::Null,
    }
}

fn from_map(schema: &Schema, map: &Map, fields: &JsonMap<String, Value>, set: &FieldSet) -> Value {
    let mut out = JsonMap::new();
    for (name, value) in fields {
        let element = PathElement::field(name);
        if set.is_member(&element) {
            continue;
        }
        let kept = match (set.below(&element), map.field_type(name)) {
            (Some(below), Some(of)) => remove(schema, of, value, below),
            _ => value.clone(),
        };
        out.insert(name.clone(), kept);
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

fn from_list(schema: &Schema, list: &List, items: &[Value], set: &FieldSet) -> Value {
    let kept: Vec<Value> = items
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
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}
