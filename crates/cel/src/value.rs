//! Values. JSON is read in place, and converted one step at a time.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use api_meta::quantity::Quantity;
use serde_json::Value as Json;

use crate::authorization::Authorization;
use crate::declared::{Declared, DeclaredKind, ListIdentity, Object};
use crate::format::NamedFormat;
use crate::library::semver::SemanticVersion;
use crate::library::url::Url;
use crate::message::MessageValue;
use crate::time::{Duration, Timestamp};
use crate::types::Type;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalFailure {
    /// An error that `&&` and `||` may absorb.
    Error(String),
    /// The cost limit was exceeded; nothing absorbs it.
    Cost,
    /// A failure of upstream's interpreter itself; nothing absorbs it either.
    Internal(String),
}

impl EvalFailure {
    /// Whether the evaluation as a whole ends.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Error(_))
    }
}

/// The result of an evaluation.
pub type EvalResult<'a> = Result<Value<'a>, EvalFailure>;

/// An error of the expression, with the text of cel-go.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T, EvalFailure> {
    Err(EvalFailure::Error(message.into()))
}

/// The error for values that an operator or function does not accept.
pub(crate) const NO_SUCH_OVERLOAD: &str = "no such overload";

pub(crate) fn no_such_overload<T>() -> Result<T, EvalFailure> {
    fail(NO_SUCH_OVERLOAD)
}

/// The result of an expression, or a part of one. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    Timestamp(Timestamp),
    Duration(Duration),
    Type(Rc<Type>),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Value<'a>>>),
    Quantity(Quantity),
    Url(Rc<Url>),
    Ip(IpAddr),
    /// An address and the bits of its network.
    Cidr(IpAddr, u8),
    Format(&'static NamedFormat),
    Semver(Rc<SemanticVersion>),
    /// An authorizer, a query, or a decision.
    Authorization(Rc<Authorization<'a>>),
    Message(Rc<MessageValue<'a>>),
    /// A value without a declared type, which can only be compared.
    Opaque(&'a Json),
}

/// A text, borrowed from an input or produced by the expression.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    Given(&'a str),
    Made(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Self::Given(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A list, borrowed from an input or produced by the expression.
#[derive(Clone, Debug)]
pub enum List<'a> {
    Given { items: &'a [Json], declared: &'a Declared, identity: &'a ListIdentity },
    Made(Rc<Vec<Value<'a>>>),
}

/// A map or object, borrowed from an input or produced by the expression.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// An object with declared fields.
    Object {
        fields: &'a serde_json::Map<String, Json>,
        object: &'a Object,
    },
    /// A map from texts to values of one type.
    Given {
        fields: &'a serde_json::Map<String, Json>,
        declared: &'a Declared,
    },
    Made(Rc<Made<'a>>),
    /// Fields that are computed at their first use.
    Computed(Rc<dyn Fields<'a> + 'a>),
}

/// An object whose fields are computed when they are used.
pub trait Fields<'a> {
    /// The names of all fields.
    fn names(&self) -> Vec<&'a str>;
    /// The value of a field; `None` when there is no such field.
    ///
    /// # Errors
    /// The computation of the field failed.
    fn field(&self, name: &str) -> Option<EvalResult<'a>>;
}

impl std::fmt::Debug for dyn Fields<'_> + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A map that an expression produced.
#[derive(Clone, Default)]
pub struct Made<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<MapKey, usize>,
}

/// Without the index, which is redundant and has no order.
impl fmt::Debug for Made<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.entries.iter().map(|(key, value)| (key, value))).finish()
    }
}

/// A value as the key of a map, or as a member of a set of constants. Equal numbers are the same
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MapKey {
    Bool(bool),
    Whole(i128),
    /// The bits of a double that is no whole number.
    Fraction(u64),
    Text(Box<str>),
    Null,
}

impl<'a> Made<'a> {
    /// Adds an entry; false when the key exists already. A value that cannot be a key is still
    /// added as an entry.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> bool {
        let Some(name) = key.key() else {
            self.entries.push((key, value));
            return true;
        };
        if self.index.contains_key(&name) {
            return false;
        }
        self.index.insert(name, self.entries.len());
        self.entries.push((key, value));
        true
    }
    pub(crate) fn entries(&self) -> &[(Value<'a>, Value<'a>)] {
        &self.entries
    }
    fn get(&self, key: &MapKey) -> Option<&Value<'a>> {
        self.index.get(key).map(|&at| &self.entries[at].1)
    }
}

static DYNAMIC: Declared =
    Declared { kind: DeclaredKind::Dyn, size_max: u64::MAX, json_min: 1, nullable: true };

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List::Made(Rc::new(items)))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// Converts `json` to a value of the declared type.
    pub(crate) fn from_json(json: &'a Json, declared: &'a Declared) -> EvalResult<'a> {
        let invalid = |expected: &str| fail(format!("invalid data, expected {expected}"));
        Ok(match (&declared.kind, json) {
            (DeclaredKind::Dyn, _) => return Ok(Self::dynamic(json)),
            (DeclaredKind::Typed(_), _) => return invalid("a value that is no JSON"),
            (_, Json::Null) if declared.nullable => Self::Null,
            (_, Json::Null) => {
                return fail("invalid data, got null for schema with nullable=false");
            }
            (DeclaredKind::IntOrText, Json::Number(number)) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => {
                    return fail(
                        "invalid data, expected XIntOrString value to be either a string or integer",
                    );
                }
            },
            (DeclaredKind::IntOrText | DeclaredKind::Text, Json::String(text)) => {
                Self::Text(Text::Given(text))
            }
            (DeclaredKind::Bool, Json::Bool(value)) => Self::Bool(*value),
            (DeclaredKind::Int, Json::Number(number)) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => return invalid("int, got float64"),
            },
            (DeclaredKind::Double, Json::Number(number)) => {
                Self::Double(number.as_f64().unwrap_or(f64::NAN))
            }
            (DeclaredKind::Bytes, Json::String(text)) => {
                use base64::Engine as _;
                match base64::engine::general_purpose::STANDARD.decode(text) {
                    Ok(bytes) => Self::Bytes(bytes.into()),
                    Err(error) => {
                        return fail(format!("Invalid byte formatted string {text}: {error}"));
                    }
                }
            }
            (DeclaredKind::Date, Json::String(text)) => match Timestamp::parse_date(text) {
                Some(time) => Self::Timestamp(time),
                None => return fail(format!("Invalid date formatted string {text}")),
            },
            (DeclaredKind::DateTime, Json::String(text)) => match Timestamp::parse_schema(text) {
                Some(time) => Self::Timestamp(time),
                None => return fail(format!("Invalid date-time formatted string {text}")),
            },
            (DeclaredKind::Duration, Json::String(text)) => match Duration::parse_schema(text) {
                Some(duration) => Self::Duration(duration),
                None => return fail(format!("Invalid duration {text}")),
            },
            (DeclaredKind::List(declared, identity), Json::Array(items)) => {
                Self::List(List::Given { items, declared, identity })
            }
            (DeclaredKind::Map(declared), Json::Object(fields)) => {
                Self::Map(Map::Given { fields, declared })
            }
            (DeclaredKind::Object(object), Json::Object(fields)) => {
                Self::Map(Map::Object { fields, object })
            }
            (DeclaredKind::List(..), _) => {
                return invalid("an array for the provided schema with type=array");
            }
            (DeclaredKind::Map(_) | DeclaredKind::Object(_), _) => {
                return invalid("a map for the provided schema with type=object");
            }
            _ => return invalid("a value of the declared type"),
        })
    }

    /// Converts `json` without a declared type.
    pub fn dynamic(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Uint(value),
                _ => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Text::Given(text)),
            Json::Array(items) => Self::List(List::Given {
                items,
                declared: &DYNAMIC,
                identity: &ListIdentity::Position,
            }),
            Json::Object(fields) => Self::Map(Map::Given { fields, declared: &DYNAMIC }),
        }
    }

    /// The value as a key of a map; `None` when it cannot be one.
    pub(crate) fn key(&self) -> Option<MapKey> {
        /// Doubles without a fraction up to this size are exact integers.
        const WHOLE_MAX: f64 = 1e18;
        Some(match self {
            Self::Null => MapKey::Null,
            Self::Bool(value) => MapKey::Bool(*value),
            Self::Int(value) => MapKey::Whole(i128::from(*value)),
            Self::Uint(value) => MapKey::Whole(i128::from(*value)),
            Self::Double(value) if value.fract() == 0.0 && value.abs() <= WHOLE_MAX => {
                MapKey::Whole(*value as i128)
            }
            Self::Double(value) => MapKey::Fraction(value.to_bits()),
            Self::Text(text) => MapKey::Text((**text).into()),
            _ => return None,
        })
    }

    /// The type as `type(x)` returns it.
    pub(crate) fn to_type(&self) -> Type {
        use crate::types::Library;
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::Type(_) => Type::Type(std::sync::Arc::new(Type::Dyn)),
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Quantity(_) => Type::Library(Library::Quantity),
            Self::Url(_) => Type::Library(Library::Url),
            Self::Ip(_) => Type::Library(Library::Ip),
            Self::Cidr(..) => Type::Library(Library::Cidr),
            Self::Format(_) => Type::Library(Library::Format),
            Self::Semver(_) => Type::Library(Library::Semver),
            Self::Authorization(step) => Type::Library(match &**step {
                Authorization::Authorizer(_) => Library::Authorizer,
                Authorization::Path(..) => Library::PathCheck,
                Authorization::Group(..) => Library::GroupCheck,
                Authorization::Resource(..) => Library::ResourceCheck,
                Authorization::Decision(_) => Library::Decision,
            }),
            Self::Message(message) => Type::Message(message.name().into()),
            Self::Opaque(_) => Type::Dyn,
        }
    }

    /// The size that costs depend on: characters, bytes, elements or entries; 1 for a value without
    /// parts.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Ip(address) | Self::Cidr(address, _) => match (self, address) {
                (Self::Cidr(_, bits), _) => u64::from(bits.div_ceil(8)),
                (_, IpAddr::V4(_)) => 4,
                (_, IpAddr::V6(_)) => 16,
            },
            Self::Optional(Some(inner)) => inner.size(),
            _ => 1,
        }
    }
}

impl<'a> List<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Given { items, .. } => items.len(),
            Self::Made(items) => items.len(),
        }
    }
    /// Whether [`Self::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(crate) fn get(&self, index: usize) -> Option<EvalResult<'a>> {
        match self {
            Self::Given { items, declared, .. } => {
                Some(Value::from_json(items.get(index)?, declared))
            }
            Self::Made(items) => items.get(index).cloned().map(Ok),
        }
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = EvalResult<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Map<'a> {
    /// The number of entries. All fields of an object count, declared or not.
    pub fn len(&self) -> usize {
        match self {
            Self::Object { fields, .. } | Self::Given { fields, .. } => fields.len(),
            Self::Made(made) => made.entries.len(),
            Self::Computed(fields) => fields.names().len(),
        }
    }
    /// Whether [`Self::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The value of the declared field `name`, under its escaped name.
    pub(crate) fn field(&self, name: &str) -> Option<EvalResult<'a>> {
        match self {
            Self::Object { fields, object } => {
                let field = object.fields.get(name)?;
                // A null is the same as an absent field.
                let json = fields.get(&*field.name).filter(|json| !json.is_null())?;
                Some(Value::from_json(json, &field.declared))
            }
            Self::Given { fields, declared } => Some(Value::from_json(fields.get(name)?, declared)),
            Self::Made(made) => made.get(&MapKey::Text(name.into())).cloned().map(Ok),
            Self::Computed(fields) => fields.field(name),
        }
    }
    /// The value of a key of any type.
    pub(crate) fn get(&self, key: &Value<'_>) -> Option<EvalResult<'a>> {
        match (self, key) {
            (Self::Made(made), key) => made.get(&key.key()?).cloned().map(Ok),
            (_, Value::Text(name)) => self.field(name),
            _ => None,
        }
    }
    /// The keys. Those of an object are the escaped names of its present declared fields.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Object { fields, object } => {
                let present =
                    object.fields.iter().filter(|(_, field)| fields.contains_key(&*field.name));
                present.map(|(name, _)| Value::Text(Text::Given(name))).collect()
            }
            Self::Given { fields, .. } => {
                fields.keys().map(|name| Value::Text(Text::Given(name))).collect()
            }
            Self::Made(made) => made.entries.iter().map(|(key, _)| key.clone()).collect(),
            Self::Computed(fields) => {
                fields.names().into_iter().map(|name| Value::Text(Text::Given(name))).collect()
            }
        }
    }
}
