//! Validation of a value against its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Duplicates, TypeShape, ValidationErrors, Walk, item_element, scalar_error, shape};
use crate::element::PathElement;
use crate::go_text;
use crate::schema::{ListKind, ListSchema, MapSchema, Schema, TypeId};

/// Checks that `value` fits the schema.
///
/// # Errors
/// Every value that does not fit, in the order of the walk.
pub fn validate(
    schema: &Schema,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let mut walk = Validation { schema, duplicates, walk: Walk::default() };
    walk.value(schema.root(), value);
    walk.walk.into_result()
}

struct Validation<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
    walk: Walk,
}

impl<'s> Validation<'s> {
    fn value(&mut self, of: TypeId, value: &Value) {
        match (shape(self.schema.atom(of), Some(value)), value) {
            (TypeShape::Scalar(scalar), value) => {
                if let Some(problem) = scalar_error(scalar, value) {
                    self.walk.push_error(problem);
                }
            }
            (_, Value::Null) => {}
            (TypeShape::Map(map), Value::Object(fields)) => {
                let fields = fields.iter();
                // Like upstream, the walk of a map ends at the first undeclared field.
                for (name, value) in fields {
                    if !self.field(map, name, value) {
                        break;
                    }
                }
            }
            (TypeShape::List(list), Value::Array(items)) => self.items(list, items),
            (TypeShape::Map(_), other) => self.push_type_mismatch("map", other),
            (TypeShape::List(_), other) => self.push_type_mismatch("list", other),
            (TypeShape::Nothing, _) => self.walk.push_error("schema error: invalid atom: inlined"),
        }
    }

    fn push_type_mismatch(&mut self, expected: &str, found: &Value) {
        self.walk.push_error(format!("expected {expected}, got &{{{}}}", go_text::plain(found)));
    }

    fn field(&mut self, map: &'s MapSchema, name: &str, value: &Value) -> bool {
        self.walk.path.push(PathElement::field(name));
        let declared = map.field_type(name);
        match declared {
            Some(of) => self.value(of, value),
            None => self.walk.push_error("field not declared in schema"),
        }
        self.walk.path.pop();
        declared.is_some()
    }

    fn items(&mut self, list: &'s ListSchema, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = if list.kind == ListKind::Atomic {
                PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))
            } else {
                match item_element(self.schema, list, item) {
                    Ok(element) => element,
                    Err(problem) => {
                        return self.walk.push_error(format!("element {at}: {problem}"));
                    }
                }
            };
            if list.kind != ListKind::Atomic {
                let new = seen.insert(element.clone());
                if !new && self.duplicates == Duplicates::Refuse {
                    self.walk.push_error(format!("duplicate entries for key {element}"));
                }
            }
            self.walk.path.push(element);
            self.value(list.items, item);
            self.walk.path.pop();
        }
    }
}
