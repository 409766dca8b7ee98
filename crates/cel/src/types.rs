//! Types of expressions.

use std::fmt;
use std::sync::Arc;

use crate::declared::Object;

/// A type, as the checker knows it.
#[derive(Clone, Debug)]
pub enum Type {
    /// Any type; checked during evaluation.
    Dyn,
    /// The type of a part with a reported error; compatible with every type.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    /// The type of a type.
    Type(Arc<Type>),
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Optional(Arc<Type>),
    /// An object with declared fields.
    Object(Arc<Object>),
    /// A type of the Kubernetes libraries.
    Library(Library),
    /// A message by its name, see [`message`](crate::message).
    Message(Arc<str>),
    /// A type variable. Never part of a checked expression.
    Variable(u32),
}

/// Types that Kubernetes adds to the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Quantity,
    Url,
    Ip,
    Cidr,
    Format,
    Semver,
    /// The authorizer. Values of this type and the next four exist only where an
    /// [`crate::authorization::Authority`] is given, but every expression may name their functions.
    Authorizer,
    PathCheck,
    GroupCheck,
    ResourceCheck,
    Decision,
}

impl Library {
    /// The name in type errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quantity => "kubernetes.Quantity",
            Self::Url => "kubernetes.URL",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Format => "kubernetes.NamedFormat",
            Self::Semver => "kubernetes.Semver",
            Self::Authorizer => "kubernetes.authorization.Authorizer",
            Self::PathCheck => "kubernetes.authorization.PathCheck",
            Self::GroupCheck => "kubernetes.authorization.GroupCheck",
            Self::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Self::Decision => "kubernetes.authorization.Decision",
        }
    }
}

impl Type {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }
    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }
    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }
    /// The name without parameters, as `type(x)` returns it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dyn | Self::Variable(_) => "dyn",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Object(object) => &object.name,
            Self::Library(library) => library.name(),
            Self::Message(name) => name,
        }
    }
    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }
    /// The type parameters.
    pub(crate) fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => vec![inner],
            Self::Map(inner) => vec![&inner.0, &inner.1],
            _ => Vec::new(),
        }
    }
    /// The same type with other parameters.
    pub(crate) fn with_parameters(&self, change: &mut dyn FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(inner) => Self::list(change(inner)),
            Self::Optional(inner) => Self::optional(change(inner)),
            Self::Type(inner) => Self::Type(Arc::new(change(inner))),
            Self::Map(inner) => Self::map(change(&inner.0), change(&inner.1)),
            other => other.clone(),
        }
    }
    /// Whether the outermost types are the same, without their parameters.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Library(a), Self::Library(b)) => a == b,
            (Self::Message(a), Self::Message(b)) => a == b,
            (Self::Variable(a), Self::Variable(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        self.same_kind(other) && self.parameters() == other.parameters()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::Type(inner) => return write!(f, "type({inner})"),
            Self::List(inner) => return write!(f, "list({inner})"),
            Self::Map(inner) => return write!(f, "map({}, {})", inner.0, inner.1),
            Self::Optional(inner) => return write!(f, "optional_type({inner})"),
            other => other.name(),
        })
    }
}
