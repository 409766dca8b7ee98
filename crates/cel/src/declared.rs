//! Types that come from outside an expression, with what is known of the sizes of their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::parser::RESERVED;
use crate::types::Type;

/// The type of a value that an expression is given.
#[derive(Clone, Debug)]
pub struct Declared {
    pub kind: DeclaredKind,
    /// Elements, entries, characters or bytes that a value can have at most.
    pub size_max: u64,
    /// Bytes of the shortest JSON of such a value.
    pub json_min: u64,
    pub nullable: bool,
}

#[derive(Clone, Debug)]
pub enum DeclaredKind {
    /// Anything; its JSON says what it is.
    Dyn,
    /// A text or an integer.
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
    /// Texts to values.
    Map(Arc<Declared>),
    Object(Arc<Object>),
    /// What does not come as JSON: a value of the libraries, or of another expression.
    Typed(Type),
}

/// What makes two items of a list the same, which decides what `==` and `+` mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListIdentity {
    /// Their place.
    #[default]
    Place,
    /// Their value: the list is a set.
    Value,
    /// These fields of theirs.
    Keys(Arc<[Box<str>]>),
}

/// An object with declared fields. Others are not visible.
#[derive(Debug)]
pub struct Object {
    /// What type errors call it.
    pub name: String,
    /// By the name that expressions use, see [`escape`].
    pub fields: BTreeMap<Box<str>, Field>,
}

#[derive(Clone, Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: Box<str>,
    pub declared: Arc<Declared>,
}

impl Declared {
    pub fn new(kind: DeclaredKind, size_max: u64, json_min: u64) -> Self {
        Self { kind, size_max, json_min, nullable: false }
    }
    /// Anything at all.
    pub fn dynamic() -> Self {
        Self::new(DeclaredKind::Dyn, u64::MAX, 1)
    }
    /// What the checker sees of it.
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

/// Words of the grammar beside the reserved identifiers.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Whether a word belongs to the grammar, so that nothing can have it as its name.
pub fn is_reserved(word: &str) -> bool {
    KEYWORDS.contains(&word) || RESERVED.contains(&word)
}

/// The name by which an expression reaches the JSON field `name`; `None` when there is no way.
///
/// Words of the grammar and the characters `.`, `-`, `/` and `__` are written `__if__`, `__dot__`,
/// `__dash__`, `__slash__`, `__underscores__`.
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
