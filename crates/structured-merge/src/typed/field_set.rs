//! The paths that a value states.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{TypeShape, item_element, shape};
use crate::element::PathElement;
use crate::schema::{ListKind, ListSchema, MapSchema, Schema, TypeId};
use crate::set::FieldSet;

/// The paths that a manager owns when it states `value`.
pub fn field_set(schema: &Schema, value: &Value) -> FieldSet {
    let mut walk = Collection { schema, path: Vec::new(), set: FieldSet::new() };
    walk.value(schema.root(), value);
    walk.set
}

struct Collection<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    set: FieldSet,
}

impl Collection<'_> {
    fn insert_here(&mut self) {
        self.set.insert(&self.path);
    }

    fn value(&mut self, of: TypeId, value: &Value) {
        match (shape(self.schema.atom(of), Some(value)), value) {
            (TypeShape::Scalar(_), _) => self.insert_here(),
            (TypeShape::Map(map), _) if map.atomic => self.insert_here(),
            (TypeShape::List(list), _) if list.kind == ListKind::Atomic => self.insert_here(),
            (TypeShape::Map(map), Value::Object(fields)) => {
                for (name, value) in fields {
                    self.field(map, name, value);
                }
            }
            (TypeShape::List(list), Value::Array(items)) => self.items(list, items),
            _ => {}
        }
    }

    fn field(&mut self, map: &MapSchema, name: &str, value: &Value) {
        self.path.push(PathElement::field(name));
        if let Some(of) = map.field_type(name) {
            self.value(of, value);
        }
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        if empty || !map.fields.contains_key(name) {
            self.insert_here();
        }
        self.path.pop();
    }

    /// Duplicate items are owned as one, by their identity alone.
    fn items(&mut self, list: &ListSchema, items: &[Value]) {
        let mut counts: BTreeMap<PathElement, usize> = BTreeMap::new();
        let elements: Vec<Option<PathElement>> =
            items.iter().map(|item| item_element(self.schema, list, item).ok()).collect();
        for element in elements.iter().flatten() {
            *counts.entry(element.clone()).or_default() += 1;
        }
        for (element, item) in elements.into_iter().zip(items) {
            let Some(element) = element else { continue };
            let single = counts.get(&element) == Some(&1);
            self.path.push(element);
            if single {
                self.value(list.items, item);
            }
            self.insert_here();
            self.path.pop();
        }
    }
}
