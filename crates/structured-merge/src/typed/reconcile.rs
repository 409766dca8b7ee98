//! Brings a set that was made under an older schema to the current one: a value that has become
//! atomic is owned as a whole by the managers that owned parts of it.
//!
//! Conversely, a member that has become granular stays a member; its parts get owners when they are
//! written.

use crate::element::PathElement;
use crate::schema::{ListKind, MapSchema, Scalar, Schema, TypeId};
use crate::set::FieldSet;

use super::TypeShape;

/// The set under the current schema; `None` when nothing changes.
pub fn reconcile(schema: &Schema, set: &FieldSet) -> Option<FieldSet> {
    let mut walk = Reconcile { schema, path: Vec::new(), atomic: FieldSet::new() };
    walk.value(schema.root(), Some(set), false);
    if walk.atomic.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&walk.atomic).union(&walk.atomic))
}

struct Reconcile<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    /// Paths that are atomic now and had parts in the set.
    atomic: FieldSet,
}

impl Reconcile<'_> {
    /// `whole`: the set owns the value at this path without any of its parts.
    fn value(&mut self, of: TypeId, set: Option<&FieldSet>, whole: bool) {
        match super::shape(self.schema.atom(of), None) {
            TypeShape::Scalar(_) | TypeShape::Nothing => {}
            TypeShape::Map(map) if self.is_deduced(map) => {}
            TypeShape::Map(map) if map.atomic => {
                if !whole && set.is_some() {
                    self.atomic.insert(&self.path);
                }
            }
            TypeShape::Map(map) => self.below(set, |element| match element {
                PathElement::Field(name) => map.field_type(name),
                _ => map.others,
            }),
            TypeShape::List(list) if list.kind == ListKind::Atomic => {
                if !whole {
                    self.atomic.insert(&self.path);
                }
            }
            TypeShape::List(list) => self.below(set, |_| Some(list.items)),
        }
    }

    /// Whether a map allows anything and names no field: it has no schema that could have changed.
    fn is_deduced(&self, map: &MapSchema) -> bool {
        map.fields.is_empty()
            && map.others.is_some_and(|of| {
                let scalar = self.schema.atom(of).scalar;
                of == TypeId::DEDUCED || of != TypeId::ATOMIC && scalar == Some(Scalar::Untyped)
            })
    }

    fn below(&mut self, set: Option<&FieldSet>, of: impl Fn(&PathElement) -> Option<TypeId>) {
        for (element, node) in set.into_iter().flat_map(|set| &set.nodes) {
            let Some(of) = of(element) else { continue };
            let below = Some(&node.below).filter(|below| !below.is_empty());
            self.path.push(element.clone());
            self.value(of, below, node.member && below.is_none());
            self.path.pop();
        }
    }
}
