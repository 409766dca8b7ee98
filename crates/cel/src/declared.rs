//! Declared types of an expression's inputs, with the sizes of their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::parser::RESERVED;
use crate::types::Type;

/// The declared type of an input, or of a part of one.
#[derive(Clone, Debug)]
pub struct Declared {
    pub kind: DeclaredKind,
    /// The largest number of elements, entries, characters or bytes of a value.
    pub size_max: u64,
    /// Bytes of the shortest JSON of such a value.
    pub json_min: u64,
    /// Whether null is a valid value.
    pub nullable: bool,
}

/// The kind of a declared type.
#[derive(Clone, Debug)]
pub enum DeclaredKind {
    /// Any value; its JSON determines the type.
    Dyn,
    /// A text or an integer (`x-kubernetes-int-or-string`).
    IntOrText,
    Bool,
    Int,
    Double,
    Text,
    /// A text in base64.
    Bytes,
    /// A text such as `2006-01-02`.
    Date,
    /// A text such as `2006-01-02T15:04:05Z`.
    DateTime,
    /// A text such as `1h30m`.
    Duration,
    List(Arc<Declared>, ListIdentity),
    /// A map from texts to values.
    Map(Arc<Declared>),
    Object(Arc<Object>),
    /// A value that is not JSON: of a library, or the result of another expression.
    Typed(Type),
}

/// What identifies the items of a list (`x-kubernetes-list-type`), which determines `==` and `+`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListIdentity {
    /// Their position: an atomic list.
    #[default]
    Position,
    /// Their value: the list is a set.
    Value,
    /// The values of these fields.
    Keys(Arc<[Box<str>]>),
}

/// An object with declared fields. Others are not visible.
#[derive(Debug)]
pub struct Object {
    /// The name in type errors.
    pub name: String,
    /// Fields by the name that expressions use, see [`escape`].
    pub fields: BTreeMap<Box<str>, DeclaredField>,
}

/// A declared field of an object.
#[derive(Clone, Debug)]
pub struct DeclaredField {
    /// The name in JSON.
    pub name: Box<str>,
    pub declared: Arc<Declared>,
}

impl Declared {
    /// A type of values that are not null. The sizes are in the units of the fields.
    pub fn new(kind: DeclaredKind, size_max: u64, json_min: u64) -> Self {
        Self { kind, size_max, json_min, nullable: false }
    }
    /// Any value, of any size.
    pub fn dynamic() -> Self {
        Self::new(DeclaredKind::Dyn, u64::MAX, 1)
    }
    /// The type for the type checker, without sizes.
    pub fn to_type(&self) -> Type {
        match &self.kind {
            DeclaredKind::Dyn | DeclaredKind::IntOrText => Type::Dyn,
            DeclaredKind::Bool => Type::Bool,
            DeclaredKind::Int => Type::Int,
            DeclaredKind::Double => Type::Double,
            DeclaredKind::Text => Type::Text,
            DeclaredKind::Bytes => Type::Bytes,
            DeclaredKind::Date | DeclaredKind::DateTime => Type::Timestamp,
            DeclaredKind::Duration => Type::Duration,
            DeclaredKind::List(item, _) => Type::list(item.to_type()),
            DeclaredKind::Map(value) => Type::map(Type::Text, value.to_type()),
            DeclaredKind::Object(object) => Type::Object(object.clone()),
            DeclaredKind::Typed(kind) => kind.clone(),
        }
    }
}

/// Keywords of the grammar, in addition to the reserved identifiers.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Whether a word is a keyword or reserved, so that it cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    KEYWORDS.contains(&word) || RESERVED.contains(&word)
}

/// The name by which an expression selects the JSON field `name`; `None` when it cannot be
/// selected.
///
/// Keywords and the characters `.`, `-`, `/` and `__` are escaped as `__if__`, `__dot__`,
/// `__dash__`, `__slash__`, `__underscores__`, like in Kubernetes.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (text, length) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[length..];
    }
    Some(out)
}
