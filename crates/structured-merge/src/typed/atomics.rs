//! The parts of a value that are owned as a whole.

use serde_json::Value;

use crate::element::PathElement;
use crate::schema::{ListKind, Schema, TypeId};

/// The paths of all atomic parts of `value`, parents before children.
pub fn atomics(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(schema, schema.root(), value, &mut String::new(), &mut found);
    found
}

/// Like upstream, skips fields that a map does not name.
fn find(schema: &Schema, of: TypeId, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let atom = schema.atom(of);
    let length = path.len();
    match (value, &atom.map, &atom.list) {
        (Value::Object(fields), Some(map), _) => {
            if map.atomic {
                found.push(path.clone());
            }
            for (name, value) in fields {
                let Some(&of) = map.fields.get(name) else { continue };
                path.push_str(&PathElement::field(name).to_string());
                find(schema, of, value, path, found);
                path.truncate(length);
            }
        }
        (Value::Array(items), _, Some(list)) => {
            if list.kind == ListKind::Atomic {
                found.push(path.clone());
            }
            for (index, item) in (0..).zip(items) {
                path.push_str(&PathElement::Index(index).to_string());
                find(schema, list.items, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
