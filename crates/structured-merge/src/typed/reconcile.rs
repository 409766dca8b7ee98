//! Bringing a set that was made under an older schema to the present one: what has become atomic
//! is owned as a whole by whoever owned a part of it.
//!
//! The other way round, a member that has become granular stays a member; the parts get owners as
//! they are written.

use crate::element::PathElement;
use crate::schema::{ListKind, Map, Scalar, Schema, TypeId};
use crate::set::FieldSet;

use super::Shape;

/// The set under the present schema; `None` when nothing changes.
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
    /// Paths that are one thing now and had parts in the set.
    atomic: FieldSet,
}

impl Reconcile<'_> {
    /// `whole`: the set owns the value at this path without any of its parts.
    fn value(&mut self, of: TypeId, set: Option<&FieldSet>, whole: bool) {
        match super::shape(self.schema.atom(of), None) {
            Shape::Scalar(_) | Shape::Nothing => {}
            Shape::Map(map) if self.is_deduced(map) => {}
            Shape::Map(map) if map.atomic => {
                if !whole && set.is_some() {
                    self.atomic.insert(&self.path);
                }
            }
            Shape::Map(map) => self.below(set, |element| match element {
                PathElement::Field(name) => map.field_type(name),
                _ => map.others,
            }),
            Shape::List(list) if list.kind == ListKind::Atomic => {
                if !whole {
                    self.atomic.insert(&self.path);
                }
            }
            Shape::List(list) => self.below(set, |_| Some(list.items)),
        }
    }

    /// A map of anything, named nowhere: there is no schema that could have changed.
    fn is_deduced(&self, map: &Map) -> bool {
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
