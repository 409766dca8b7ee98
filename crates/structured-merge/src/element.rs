//! Elements of a path through an object, and whole paths.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::encoding::DecodeError;
use crate::{go_text, value};

/// An element of a path: a field of a map, or an item of a list, identified by its key fields, its
/// value or its index.
///
/// The order is that of `fieldsV1`: fields, keyed items, values, indexes; numbers by their numeric
/// value. Equality follows that order, so the key `1` equals the key `1.0`.
#[derive(Clone, Debug)]
pub enum PathElement {
    Field(String),
    /// The key fields of an item of an associative list. Invariant: sorted by name.
    Key(Vec<(String, Value)>),
    /// An item of a set.
    Value(Value),
    /// An item of a list whose items have no identity. This crate never creates one, but stored
    /// sets may contain it.
    Index(i64),
}

impl PathElement {
    /// The element for a field of a map.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The element for an item of an associative list. Sorts the key fields by name.
    pub fn key(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(fields)
    }

    /// Encodes the element as a key of `fieldsV1`: `f:spec`, `k:{"name":"a"}`, `v:1`, `i:0`. The
    /// text equals kube-apiserver's.
    pub fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut out = String::from("k:{");
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    go_text::json_string(&mut out, name, false);
                    out.push(':');
                    encode_value(&mut out, value);
                }
                out.push('}');
                out
            }
            Self::Value(value) => {
                let mut out = String::from("v:");
                encode_value(&mut out, value);
                out
            }
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Decodes a key of `fieldsV1`. Returns `None` for an unknown type of element: newer servers
    /// may write more types, and readers must skip them.
    ///
    /// # Errors
    /// [`DecodeError::Element`] when the key has no type letter or its content does not parse.
    pub fn decode(text: &str) -> Result<Option<Self>, DecodeError> {
        let bad = |reason: &str| DecodeError::Element {
            element: text.to_owned(),
            reason: reason.to_owned(),
        };
        let Some((kind, content)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(bad("it does not begin with a type letter and a colon"));
        };
        let json =
            || serde_json::from_str::<Value>(content).map_err(|error| bad(&error.to_string()));
        Ok(Some(match kind {
            "f" => Self::Field(content.to_owned()),
            "k" => match json()? {
                Value::Object(fields) => Self::key(fields),
                _ => return Err(bad("the keys are not a JSON object")),
            },
            "v" => Self::Value(json()?),
            "i" => Self::Index(content.parse().map_err(|_| bad("the index is not a number"))?),
            _ => return Ok(None),
        }))
    }
}

pub(crate) fn encode_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => go_text::json_string(out, text, true),
        Value::Number(number) => match value::num(number) {
            value::Num::Int(int) => out.push_str(&int.to_string()),
            value::Num::Float(float) => out.push_str(&go_text::json_float(float)),
        },
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                encode_value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => encode_map(out, map),
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn encode_map(out: &mut String, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        go_text::json_string(out, key, true);
        out.push(':');
        encode_value(out, value);
    }
    out.push('}');
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

fn compare_keys(left: &[(String, Value)], right: &[(String, Value)]) -> Ordering {
    for ((left_name, left), (right_name, right)) in left.iter().zip(right) {
        let order = left_name.cmp(right_name).then_with(|| value::compare(left, right));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// The text in conflicts and validation errors: `.spec`, `[name="a"]`, `[=1]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", go_text::in_path(value)))
                    .collect();
                write!(out, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(out, "[={}]", go_text::in_path(value)),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// The path of a value in an object. The empty path is the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path that consists of fields only.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(out))
    }
}
