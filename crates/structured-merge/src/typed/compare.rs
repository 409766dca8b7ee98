//! The differences between two values of one type.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{TypeShape, ValidationErrors, Walk, item_element, scalar_error, shape};
use crate::element::PathElement;
use crate::schema::{ListKind, ListSchema, MapSchema, Schema, TypeId};
use crate::set::FieldSet;
use crate::value;

/// The paths that differ between an old and a new value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether the values do not differ.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Removes the paths that are at or below a path of `ignored`.
    #[must_use]
    pub fn excluding(self, ignored: Option<&FieldSet>) -> Self {
        let Some(ignored) = ignored else { return self };
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }
}

/// The differences from `old` to `new`.
///
/// # Errors
/// A scalar fits its type on neither side, or an item of an associative list has no identity.
pub fn compare(schema: &Schema, old: &Value, new: &Value) -> Result<Comparison, ValidationErrors> {
    let mut walk = Compare { schema, walk: Walk::default(), found: Comparison::default() };
    walk.value(schema.root(), Some(old), Some(new));
    walk.walk.into_result()?;
    Ok(walk.found)
}

struct Compare<'s> {
    schema: &'s Schema,
    walk: Walk,
    found: Comparison,
}

impl<'s> Compare<'s> {
    fn value(&mut self, of: TypeId, old: Option<&Value>, new: Option<&Value>) {
        let atom = self.schema.atom(of);
        let (old_shape, new_shape) = (shape(atom, old), shape(atom, new));
        let leaf = match (old, new) {
            (_, None) => self.compare_shape(old_shape, old, new),
            (None, _) => self.compare_shape(new_shape, old, new),
            _ if old_shape == new_shape => self.compare_shape(new_shape, old, new),
            _ => {
                self.compare_shape(old_shape, old, new);
                self.compare_shape(new_shape, old, new)
            }
        };
        if !leaf && (old.is_none() || new.is_none()) {
            self.record_whole(old, new);
        }
    }

    /// Records a difference of the whole value at the current path.
    fn record_whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let path = &self.walk.path;
        match (old, new) {
            (None, _) => self.found.added.insert(path),
            (_, None) => self.found.removed.insert(path),
            (Some(old), Some(new)) if !value::equal(old, new) => self.found.modified.insert(path),
            _ => {}
        }
    }

    /// Returns whether the value was compared as a whole.
    fn compare_shape(
        &mut self,
        shape: TypeShape<'s>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> bool {
        let leaf = match shape {
            TypeShape::Scalar(scalar) => {
                let problem = |value: Option<&Value>| scalar_error(scalar, value?);
                if let (Some(old), Some(new)) = (problem(old), problem(new)) {
                    self.walk.push_error(format!("lhs: {old}"));
                    self.walk.push_error(format!("rhs: {new}"));
                    return false;
                }
                true
            }
            TypeShape::Map(map) => {
                let (old, new) = (entries(old), entries(new));
                let leaf = map.atomic || is_empty(old) && is_empty(new);
                if !leaf {
                    self.fields(map, old, new);
                }
                leaf
            }
            TypeShape::List(list) => {
                let (old, new) = (items(old), items(new));
                let leaf = list.kind == ListKind::Atomic || old.is_empty() && new.is_empty();
                if !leaf {
                    self.items(list, old, new);
                }
                leaf
            }
            TypeShape::Nothing => {
                self.walk.push_error("schema error: invalid atom: inlined");
                return false;
            }
        };
        if leaf {
            self.record_whole(old, new);
        }
        leaf
    }

    fn fields(&mut self, map: &MapSchema, old: Option<&Entries>, new: Option<&Entries>) {
        let names: BTreeSet<&String> =
            old.into_iter().chain(new).flat_map(serde_json::Map::keys).collect();
        for name in names {
            let Some(of) = map.field_type(name) else { continue };
            self.walk.path.push(PathElement::field(name));
            let get = |entries: Option<&'_ Entries>| entries.and_then(|all| all.get(name)).cloned();
            let (old, new) = (get(old), get(new));
            self.value(of, old.as_ref(), new.as_ref());
            self.walk.path.pop();
        }
    }

    /// Compares items by identity. Duplicates on one side are compared as one value.
    fn items(&mut self, list: &ListSchema, old: &[Value], new: &[Value]) {
        let (old, new) = (self.by_element(list, old), self.by_element(list, new));
        let elements: BTreeSet<&PathElement> = old.keys().chain(new.keys()).collect();
        for element in elements {
            let none = Vec::new();
            let (old, new) = (old.get(element).unwrap_or(&none), new.get(element).unwrap_or(&none));
            self.walk.path.push(element.clone());
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.value(list.items, old.first().copied(), new.first().copied());
                }
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len()
                        && old.iter().zip(new).all(|(old, new)| value::equal(old, new));
                    if !same {
                        self.found.modified.insert(&self.walk.path);
                    }
                }
                ([_, _, ..], rest) => {
                    if let Some(single) = rest.first() {
                        self.value(list.items, None, Some(single));
                    }
                    self.found.removed.insert(&self.walk.path);
                }
                (rest, _) => {
                    if let Some(single) = rest.first() {
                        self.value(list.items, Some(single), None);
                    }
                    self.found.added.insert(&self.walk.path);
                }
            }
            self.walk.path.pop();
        }
    }

    fn by_element<'v>(
        &mut self,
        list: &ListSchema,
        items: &'v [Value],
    ) -> BTreeMap<PathElement, Vec<&'v Value>> {
        let mut out: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            match item_element(self.schema, list, item) {
                Ok(element) => out.entry(element).or_default().push(item),
                Err(problem) => self.walk.push_error(format!("element {at}: {problem}")),
            }
        }
        out
    }
}

/// The entries of a JSON object.
pub type Entries = serde_json::Map<String, Value>;

/// The entries of a value; `None` when it is absent or no object.
pub fn entries(value: Option<&Value>) -> Option<&Entries> {
    value.and_then(Value::as_object)
}

/// The items of a value; empty when it is absent or no list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether there are no entries, or no object.
pub fn is_empty(entries: Option<&Entries>) -> bool {
    entries.is_none_or(serde_json::Map::is_empty)
}
