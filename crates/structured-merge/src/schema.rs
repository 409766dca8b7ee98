//! Types for merging: which values are owned as a whole, and which have parts with their own
//! owners.

use std::collections::BTreeMap;

use serde_json::Value;

/// A type within a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(usize);

impl TypeId {
    /// Any value whose type is deduced from the value: maps are granular, lists are atomic.
    pub const DEDUCED: Self = Self(0);
    /// Any value, owned as a whole.
    pub const ATOMIC: Self = Self(1);
}

/// The type of a scalar value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Numeric,
    String,
    Boolean,
    /// Any scalar.
    Untyped,
}

/// The values that a type allows. With more than one member, the JSON type of the value selects one
/// (an int-or-string has a scalar only; [`TypeId::DEDUCED`] has all three).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Atom {
    pub scalar: Option<Scalar>,
    pub list: Option<ListSchema>,
    pub map: Option<MapSchema>,
}

/// The type of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSchema {
    pub items: TypeId,
    pub kind: ListKind,
}

/// How the items of a list are identified and owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Owned as a whole.
    Atomic,
    /// Scalars without duplicates. Each is owned by the managers that set it.
    Set,
    /// Maps identified by these key fields; each item has its own owners. Invariant: not empty.
    Keyed(Vec<String>),
}

/// The type of a map or struct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapSchema {
    pub fields: BTreeMap<String, TypeId>,
    /// Default values of the map's fields that are keys of an associative list.
    pub defaults: BTreeMap<String, Value>,
    /// Fields that the Go struct of a built-in kind always has, with their zero value: a nested
    /// struct is present, empty, before any client sets it. See [`Schema::fill_zeros`].
    pub zeros: BTreeMap<String, Value>,
    /// The type of fields that `fields` does not name. With `None` they are not allowed.
    pub others: Option<TypeId>,
    /// Owned as a whole.
    pub atomic: bool,
}

impl MapSchema {
    pub(crate) fn field_type(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).copied().or(self.others)
    }
}

/// The types of one kind in one version. Built once, then shared. Types may be recursive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    atoms: Vec<Atom>,
    root: TypeId,
}

impl Schema {
    /// The schema of an object whose type is unknown.
    pub fn deduced() -> Self {
        SchemaBuilder::default().build(TypeId::DEDUCED)
    }

    /// The type of the object itself.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// Adds the zero values that the Go struct of a built-in kind has for unset fields. A manager
    /// does not come to own a struct by being the first to set one of its fields, because the
    /// struct was there before. Therefore both states of a write to a built-in kind are compared
    /// with zero values. Custom resources have no Go struct: do not call this for them.
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

    /// The values that a type allows.
    ///
    /// The id must come from this schema's builder; another one panics or returns an unrelated
    /// type.
    pub fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id.0]
    }
}

/// Builds a [`Schema`] type by type. An id may be used before its type is defined, so that types
/// can be recursive.
#[derive(Debug)]
pub struct SchemaBuilder {
    atoms: Vec<Atom>,
}

impl Default for SchemaBuilder {
    fn default() -> Self {
        let any = |others: TypeId, atomic: bool| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(ListSchema { items: TypeId::ATOMIC, kind: ListKind::Atomic }),
            map: Some(MapSchema { others: Some(others), atomic, ..MapSchema::default() }),
        };
        Self { atoms: vec![any(TypeId::DEDUCED, false), any(TypeId::ATOMIC, true)] }
    }
}

impl SchemaBuilder {
    /// Returns an id whose type is defined later with [`SchemaBuilder::define`]. Until then the
    /// type allows no value.
    pub fn reserve(&mut self) -> TypeId {
        self.atoms.push(Atom::default());
        TypeId(self.atoms.len() - 1)
    }

    /// Sets the type of an id that [`SchemaBuilder::reserve`] returned. Replaces an earlier
    /// definition.
    pub fn define(&mut self, id: TypeId, atom: Atom) {
        self.atoms[id.0] = atom;
    }

    /// Adds a type and returns its id.
    pub fn add(&mut self, atom: Atom) -> TypeId {
        self.atoms.push(atom);
        TypeId(self.atoms.len() - 1)
    }

    /// Adds a type that allows one type of scalar, and returns its id.
    pub fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.add(Atom { scalar: Some(scalar), ..Atom::default() })
    }

    /// Adds a type that allows lists only, and returns its id.
    pub fn list(&mut self, items: TypeId, kind: ListKind) -> TypeId {
        self.add(Atom { list: Some(ListSchema { items, kind }), ..Atom::default() })
    }

    /// Adds a type that allows maps only, and returns its id.
    pub fn map(&mut self, map: MapSchema) -> TypeId {
        self.add(Atom { map: Some(map), ..Atom::default() })
    }

    /// Finishes the schema. `root` is the type of the object itself.
    pub fn build(self, root: TypeId) -> Schema {
        Schema { atoms: self.atoms, root }
    }
}
