//! Decodes request bodies to JSON trees: JSON with duplicate keys reported, YAML, and protobuf.

pub mod strict;
mod yaml;

use std::cell::RefCell;
use std::fmt;

use api_meta::decode::{DEPTH_MAX, TOO_DEEP, object_depth, syntax_problem};
use api_meta::status::Status;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use yaml::{DEPTH_MAX as YAML_DEPTH_MAX, yaml};

/// The size of a request body, in bytes.
pub const BODY_SIZE_MAX: usize = 3 * 1024 * 1024;
/// The number of duplicate keys that one response reports.
const DUPLICATES_NAMED_MAX: usize = 10;

/// A decoded body, with the problems that strict validation reports.
#[derive(Debug)]
pub struct Decoded {
    /// The decoded tree.
    pub value: Value,
    /// Duplicate keys; the last value of each was used.
    pub duplicates: Vec<Duplicate>,
}

/// A duplicate key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// The path of the key in a JSON document.
    Field(String),
    /// The line and name of the key in a YAML document, as text.
    Line(String),
}

impl Duplicate {
    /// The text of a warning.
    pub fn text(&self) -> String {
        match self {
            Self::Field(path) => format!("duplicate field \"{path}\""),
            Self::Line(text) => text.clone(),
        }
    }

    /// The texts of an error. Duplicates of a YAML document are one text.
    pub fn problems(duplicates: &[Self]) -> Vec<String> {
        let texts = duplicates.iter().map(Self::text);
        match duplicates {
            [Self::Line(_), ..] => {
                let lines = texts.collect::<Vec<_>>().join("\n  ");
                vec![format!("yaml: unmarshal errors:\n  {lines}")]
            }
            _ => texts.collect(),
        }
    }
}

/// Decodes JSON of at most [`DEPTH_MAX`] levels.
///
/// # Errors
/// 400 for invalid JSON and for deeper documents.
pub fn json(body: &[u8]) -> Result<Decoded, Status> {
    let seen = RefCell::new(Vec::new());
    let mut parser = serde_json::Deserializer::from_slice(body);
    let value = Tree { path: &Path::Root, repeats: Repeats::Reported(&seen) }
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| match syntax_problem(body, &error) {
            deep if deep == TOO_DEEP => Status::bad_request(deep),
            _ => Status::bad_request(format!("the body of the request is not valid JSON: {error}")),
        })?;
    validate_depth(Decoded { value, duplicates: seen.into_inner() })
}

/// Refuses values that are nested deeper than objects may be.
fn validate_depth(decoded: Decoded) -> Result<Decoded, Status> {
    match object_depth(&decoded.value) {
        0..=DEPTH_MAX => Ok(decoded),
        _ => Err(Status::bad_request(TOO_DEEP)),
    }
}

/// Decodes an apply configuration in YAML, which includes JSON.
///
/// # Errors
/// 400 for invalid YAML and for other values than objects.
pub fn configuration(body: &[u8]) -> Result<Decoded, Status> {
    let refused = |problem: &str| Status::bad_request(format!("error decoding YAML: {problem}"));
    let decoded = match json(body) {
        Ok(decoded) if decoded.duplicates.is_empty() => Ok(decoded),
        // Duplicates are reported by line, so the body is decoded as YAML.
        Ok(decoded) => Ok(yaml(body).unwrap_or(decoded)),
        Err(_) => yaml(body),
    };
    let decoded = decoded.map_err(|status| refused(&status.message))?;
    if !decoded.value.is_object() {
        return Err(refused("the configuration is not an object"));
    }
    Ok(decoded)
}

/// Decodes the body of a write with `read`. `null` is an object without fields. `kind` is named in
/// errors.
///
/// # Errors
/// 400 for what `read` refuses, and for other values than objects, in the words of Kubernetes'
/// decoder.
pub fn object(
    body: &[u8],
    kind: &str,
    read: impl FnOnce(&[u8]) -> Result<Decoded, Status>,
) -> Result<Decoded, Status> {
    let refused = |problem: &str| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get \
             version/kind; json parse error: {problem} ({})",
            summary(body)
        ))
    };
    // An empty body, too.
    let is_cut_off = |body| serde_json::from_slice::<IgnoredAny>(body).is_err_and(|e| e.is_eof());
    let decoded = match read(body) {
        Err(_) if is_cut_off(body) => return Err(refused("unexpected end of JSON input")),
        Err(status) if status.message == TOO_DEEP => return Err(refused(TOO_DEEP)),
        other => other?,
    };
    match object_problem(&decoded.value) {
        Some(problem) => Err(refused(&problem)),
        None => Ok(decoded),
    }
}

/// Why a value is no object, in the words of Kubernetes' decoder; `None` for objects and null.
pub fn object_problem(value: &Value) -> Option<String> {
    let found = match value {
        Value::Object(_) | Value::Null => return None,
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
    };
    Some(format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}"))
}

/// The Go type in which Kubernetes looks for a version and a kind, as Go prints it.
const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
/// The number of bytes of a body that an error contains.
const SUMMARY_BYTES: usize = 30;

/// The beginning of a body: as text when it may be an object, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let beginning = &body[..body.len().min(SUMMARY_BYTES)];
    let mut text = match beginning {
        [b'{', ..] => String::from_utf8_lossy(beginning).into_owned(),
        _ => beginning.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SUMMARY_BYTES {
        text.push_str(" ...");
    }
    text
}

/// Decodes protobuf. `kind` is the API version and kind of a body that does not name its own.
///
/// # Errors
/// 400 for bodies that do not decode.
pub fn protobuf(body: &[u8], kind: (&str, &str)) -> Result<Decoded, Status> {
    let value = kubernetes_protobuf::decode(body, Some(kind)).map_err(|error| {
        let kind = kind.1;
        let text = format!("the object provided is unrecognized (must be of type {kind}): {error}");
        Status::bad_request(text)
    })?;
    validate_depth(Decoded { value, duplicates: Vec::new() })
}

/// The path of a value in its document. It is formatted only for what is reported: a document can
/// have many keys below a long one.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, key) => f.write_str(key),
            Self::Field(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// What happens to the values of a duplicate key.
#[derive(Clone, Copy)]
enum Repeats<'a> {
    /// The last value is used, and the key is reported.
    Reported(&'a RefCell<Vec<Duplicate>>),
    /// The values are merged to one that has the fields and items of both.
    Merged,
}

struct Tree<'a> {
    path: &'a Path<'a>,
    repeats: Repeats<'a>,
}

/// Adds the fields and items of `former` that `value` does not have.
fn merge(value: &mut Value, former: Value) {
    match (value, former) {
        (Value::Object(fields), Value::Object(former)) => {
            for (key, former) in former {
                match fields.get_mut(&key) {
                    Some(value) => merge(value, former),
                    None => drop(fields.insert(key, former)),
                }
            }
        }
        (Value::Array(items), Value::Array(former)) => {
            for (index, former) in former.into_iter().enumerate() {
                match items.get_mut(index) {
                    Some(value) => merge(value, former),
                    None => items.push(former),
                }
            }
        }
        (value, former) if !value.is_object() && !value.is_array() => *value = former,
        _ => {}
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Path::Item(self.path, items.len());
            let item = Tree { path: &path, repeats: self.repeats };
            let Some(item) = seq.next_element_seed(item)? else { break };
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = Path::Field(self.path, &key);
            if let Repeats::Reported(duplicates) = self.repeats
                && object.contains_key(&key)
            {
                let mut duplicates = duplicates.borrow_mut();
                if duplicates.len() < DUPLICATES_NAMED_MAX {
                    duplicates.push(Duplicate::Field(path.to_string()));
                }
            }
            let mut value = map.next_value_seed(Tree { path: &path, repeats: self.repeats })?;
            if let (Repeats::Merged, Some(former)) = (self.repeats, object.remove(&key)) {
                merge(&mut value, former);
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
