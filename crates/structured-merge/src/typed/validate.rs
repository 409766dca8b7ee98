//! Whether a value fits its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Duplicates, Problems, Shape, Walk, item_element, scalar_problem, shape};
use crate::element::PathElement;
use crate::go_text;
use crate::schema::{List, ListKind, Map, Schema, TypeId};

pub fn validate(schema: &Schema, value: &Value, duplicates: Duplicates) -> Result<(), Problems> {
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
            (Shape::Scalar(scalar), value) => {
                if let Some(problem) = scalar_problem(scalar, value) {
                    self.walk.problem(problem);
                }
            }
            (_, Value::Null) => {}
            (Shape::Map(map), Value::Object(fields)) => {
                let fields = fields.iter();
                // Like the original, the first undeclared field ends the walk of its map.
                for (name, value) in fields {
                    if !self.field(map, name, value) {
                        break;
                    }
                }
            }
            (Shape::List(list), Value::Array(items)) => self.items(list, items),
            (Shape::Map(_), other) => self.unexpected("map", other),
            (Shape::List(_), other) => self.unexpected("list", other),
            (Shape::Nothing, _) => self.walk.problem("schema error: invalid atom: inlined"),
        }
    }

    fn unexpected(&mut self, wanted: &str, found: &Value) {
        self.walk.problem(format!("expected {wanted}, got &{{{}}}", go_text::plain(found)));
    }

    fn field(&mut self, map: &'s Map, name: &str, value: &Value) -> bool {
        self.walk.path.push(PathElement::field(name));
        let declared = map.field_type(name);
        match declared {
            Some(of) => self.value(of, value),
            None => self.walk.problem("field not declared in schema"),
        }
        self.walk.path.pop();
        declared.is_some()
    }

    fn items(&mut self, list: &'s List, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = if list.kind == ListKind::Atomic {
                PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))
            } else {
                match item_element(self.schema, list, item) {
                    Ok(element) => element,
                    Err(problem) => return self.walk.problem(format!("element {at}: {problem}")),
                }
            };
            if list.kind != ListKind::Atomic {
                let new = seen.insert(element.clone());
                if !new && self.duplicates == Duplicates::Refuse {
                    self.walk.problem(format!("duplicate entries for key {element}"));
                }
            }
            self.walk.path.push(element);
            self.value(list.items, item);
            self.walk.path.pop();
        }
    }
}
