//! Values. JSON is looked at where it stands, and converted one step at a time.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use api_meta::quantity::Quantity;
use serde_json::Value as Json;

use crate::authorization::Authorization;
use crate::declared::{Declared, DeclaredKind, ListIdentity, Object};
use crate::format::Format;
use crate::library::semver::Version;
use crate::library::url::Url;
use crate::message::Message;
use crate::time::{Duration, Timestamp};
use crate::types::Type;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// What `&&` and `||` may absorb.
    Error(String),
    /// The cost limit, which nothing absorbs.
    Cost,
    /// What upstream's interpreter fails on by itself, which nothing absorbs either.
    Internal(String),
}

impl Failure {
    /// Whether the evaluation as a whole ends.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Error(_))
    }
}

pub type Outcome<'a> = Result<Value<'a>, Failure>;

/// An error of the expression, in the words of upstream.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Error(message.into()))
}

/// What is said of values that an operator or function does not take.
pub(crate) const NO_SUCH_OVERLOAD: &str = "no such overload";

pub(crate) fn no_such_overload<T>() -> Result<T, Failure> {
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
    Format(&'static Format),
    Semver(Rc<Version>),
    /// Who asks, what is asked, or the answer.
    Authorization(Rc<Authorization<'a>>),
    Message(Rc<Message<'a>>),
    /// A value of no declared type. Only good for being compared.
    Opaque(&'a Json),
}

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

#[derive(Clone, Debug)]
pub enum List<'a> {
    Given { items: &'a [Json], declared: &'a Declared, identity: &'a ListIdentity },
    Made(Rc<Vec<Value<'a>>>),
}

#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// An object with declared fields.
    Object {
        fields: &'a serde_json::Map<String, Json>,
        object: &'a Object,
    },
    /// Texts to values of one type.
    Given {
        fields: &'a serde_json::Map<String, Json>,
        declared: &'a Declared,
    },
    Made(Rc<Made<'a>>),
    /// Fields that are computed when they are asked for.
    Computed(Rc<dyn Fields<'a> + 'a>),
}

/// An object whose fields have no value before they are asked for.
pub trait Fields<'a> {
    fn names(&self) -> Vec<&'a str>;
    /// `None` when there is no such field.
    fn field(&self, name: &str) -> Option<Outcome<'a>>;
}

impl std::fmt::Debug for dyn Fields<'_> + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A map that an expression made.
#[derive(Clone, Default)]
pub struct Made<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key, usize>,
}

/// The index says nothing more, and has no order.
impl fmt::Debug for Made<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.entries.iter().map(|(key, value)| (key, value))).finish()
    }
}

/// A value that can be a key, or found in a set of constants. Numbers that are equal are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Bool(bool),
    Whole(i128),
    /// The bits of a double that is no whole number.
    Fraction(u64),
    Text(Box<str>),
    Null,
}

impl<'a> Made<'a> {
    /// Adds an entry; false when there is one with this key already. What no key can be looked up by
    /// counts as an entry all the same.
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
    fn get(&self, key: &Key) -> Option<&Value<'a>> {
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

    /// What `json` is as a value of the declared type.
    pub(crate) fn from_json(json: &'a Json, declared: &'a Declared) -> Outcome<'a> {
        let invalid = |wanted: &str| fail(format!("invalid data, expected {wanted}"));
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

    /// What `json` is when nothing is declared of it.
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
                identity: &ListIdentity::Place,
            }),
            Json::Object(fields) => Self::Map(Map::Given { fields, declared: &DYNAMIC }),
        }
    }

    /// What it is as a key of a map.
    pub(crate) fn key(&self) -> Option<Key> {
        /// Doubles up to here that have no fraction are whole numbers exactly.
        const WHOLE_MAX: f64 = 1e18;
        Some(match self {
            Self::Null => Key::Null,
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Whole(i128::from(*value)),
            Self::Uint(value) => Key::Whole(i128::from(*value)),
            Self::Double(value) if value.fract() == 0.0 && value.abs() <= WHOLE_MAX => {
                Key::Whole(*value as i128)
            }
            Self::Double(value) => Key::Fraction(value.to_bits()),
            Self::Text(text) => Key::Text((**text).into()),
            _ => return None,
        })
    }

    /// The type as `type(x)` gives it.
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

    /// Characters, bytes, elements or entries; 1 for what has no parts. What costs are counted by.
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
    pub fn len(&self) -> usize {
        match self {
            Self::Given { items, .. } => items.len(),
            Self::Made(items) => items.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(crate) fn get(&self, index: usize) -> Option<Outcome<'a>> {
        match self {
            Self::Given { items, declared, .. } => {
                Some(Value::from_json(items.get(index)?, declared))
            }
            Self::Made(items) => items.get(index).cloned().map(Ok),
        }
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = Outcome<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Map<'a> {
    /// Entries; fields of an object count whether they are declared or not.
    pub fn len(&self) -> usize {
        match self {
            Self::Object { fields, .. } | Self::Given { fields, .. } => fields.len(),
            Self::Made(made) => made.entries.len(),
            Self::Computed(fields) => fields.names().len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The value of the declared field `name`, under its escaped name.
    pub(crate) fn field(&self, name: &str) -> Option<Outcome<'a>> {
        match self {
            Self::Object { fields, object } => {
                let field = object.fields.get(name)?;
                // A null is the same as a field that is not there.
                let json = fields.get(&*field.name).filter(|json| !json.is_null())?;
                Some(Value::from_json(json, &field.declared))
            }
            Self::Given { fields, declared } => Some(Value::from_json(fields.get(name)?, declared)),
            Self::Made(made) => made.get(&Key::Text(name.into())).cloned().map(Ok),
            Self::Computed(fields) => fields.field(name),
        }
    }
    /// The value of a key that need be no text.
    pub(crate) fn get(&self, key: &Value<'_>) -> Option<Outcome<'a>> {
        match (self, key) {
            (Self::Made(made), key) => made.get(&key.key()?).cloned().map(Ok),
            (_, Value::Text(name)) => self.field(name),
            _ => None,
        }
    }
    /// The keys: those of objects are the escaped names of declared fields that are there.
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
