//! Types as merging sees them: what is one value, and what has parts with owners of their own.

use std::collections::BTreeMap;

use serde_json::Value;

/// A type within a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(usize);

impl TypeId {
    /// Any value whose parts are told from the value: maps are granular, lists are atomic.
    pub const DEDUCED: Self = Self(0);
    /// Any value, owned as a whole.
    pub const ATOMIC: Self = Self(1);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Numeric,
    String,
    Boolean,
    /// Any scalar.
    Untyped,
}

/// What a value of a type may be. More than one member is a choice by the value's form
/// (an int-or-string has a scalar only; [`TypeId::DEDUCED`] has all three).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Atom {
    pub scalar: Option<Scalar>,
    pub list: Option<List>,
    pub map: Option<Map>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    pub items: TypeId,
    pub kind: ListKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Owned as a whole.
    Atomic,
    /// Scalars, each owned by who put it there.
    Set,
    /// Maps told apart by these fields, each with owners of its own. Invariant: not empty.
    Keyed(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    pub fields: BTreeMap<String, TypeId>,
    /// Values that a missing key field of a list's item stands for.
    pub defaults: BTreeMap<String, Value>,
    /// Fields that the compiled form of a built-in kind always has, with the value they have
    /// unset: a struct is there, empty, before anybody sets it. See [`Schema::fill_zeros`].
    pub zeros: BTreeMap<String, Value>,
    /// The type of fields that are not named; `None` forbids them.
    pub others: Option<TypeId>,
    /// Owned as a whole.
    pub atomic: bool,
}

impl Map {
    pub(crate) fn field_type(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).copied().or(self.others)
    }
}

/// The types of one kind in one version. Built once, then shared; types may contain themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    atoms: Vec<Atom>,
    root: TypeId,
}

impl Schema {
    /// The schema of an object nothing is known about.
    pub fn deduced() -> Self {
        SchemaBuilder::default().build(TypeId::DEDUCED)
    }

    pub fn root(&self) -> TypeId {
        self.root
    }

    /// Adds what the compiled form of a built-in kind has unset. Nobody comes to own a struct for
    /// being the first to set one of its fields, because it was there before; so both states of
    /// a write to a built-in kind are compared in this form. Custom resources have no such form.
    pub fn fill_zeros(&self, object: &mut Value) {
        self.fill(self.root, object);
    }

    fn fill(&self, of: TypeId, value: &mut Value) {
        let atom = self.atom(of);
        match (value, &atom.map, &atom.list) {
            (Value::Object(fields), Some(map), _) => {
                for (name, zero) in &map.zeros {
                    if fields.get(name).is_none_or(Value::is_null) {
                        fields.insert(name.clone(), zero.clone());
                    }
                }
                for (name, value) in fields {
                    if let Some(of) = map.field_type(name) {
                        self.fill(of, value);
                    }
                }
            }
            (Value::Array(items), _, Some(list)) => {
                items.iter_mut().for_each(|item| self.fill(list.items, item));
            }
            _ => {}
        }
    }

    /// What a value of the type may be. The id must come from this schema's builder.
    pub fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id.0]
    }
}

/// Collects types. An id may be used before the type is defined, so that types can be recursive.
#[derive(Debug)]
pub struct SchemaBuilder {
    atoms: Vec<Atom>,
}

impl Default for SchemaBuilder {
    fn default() -> Self {
        let any = |others: TypeId, atomic: bool| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(List { items: TypeId::ATOMIC, kind: ListKind::Atomic }),
            map: Some(Map { others: Some(others), atomic, ..Map::default() }),
        };
        Self { atoms: vec![any(TypeId::DEDUCED, false), any(TypeId::ATOMIC, true)] }
    }
}

impl SchemaBuilder {
    /// An id whose type follows by [`SchemaBuilder::define`]; until then it is nothing at all.
    pub fn reserve(&mut self) -> TypeId {
        self.atoms.push(Atom::default());
        TypeId(self.atoms.len() - 1)
    }

    pub fn define(&mut self, id: TypeId, atom: Atom) {
        self.atoms[id.0] = atom;
    }

    pub fn add(&mut self, atom: Atom) -> TypeId {
        self.atoms.push(atom);
        TypeId(self.atoms.len() - 1)
    }

    pub fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.add(Atom { scalar: Some(scalar), ..Atom::default() })
    }

    pub fn list(&mut self, items: TypeId, kind: ListKind) -> TypeId {
        self.add(Atom { list: Some(List { items, kind }), ..Atom::default() })
    }

    pub fn map(&mut self, map: Map) -> TypeId {
        self.add(Atom { map: Some(map), ..Atom::default() })
    }

    pub fn build(self, root: TypeId) -> Schema {
        Schema { atoms: self.atoms, root }
    }
}
