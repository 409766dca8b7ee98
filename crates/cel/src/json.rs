//! Values as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as Fields, Value as Json};

use crate::limits::{JSON_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::message::Message;
use crate::value::{List, Value};

impl Value<'_> {
    /// The value as JSON: messages and maps as objects, times and durations as texts, bytes in
    /// base64. An optional is what it holds, or null.
    ///
    /// # Errors
    /// It has no such form, or is larger than any object may be.
    pub fn to_json(&self) -> Result<Json, String> {
        Writer { left: JSON_BYTES_MAX }.value(self, 0)
    }
}

impl Message<'_> {
    /// The object, whose parts must be named by the paths of their fields.
    ///
    /// # Errors
    /// As [`Value::to_json`], and every part that has another name, in the words of Kubernetes.
    pub fn to_object(&self) -> Result<Json, String> {
        let object = Writer { left: JSON_BYTES_MAX }.message(self, 0)?;
        // Not before: what could be written is known to be neither deep nor large.
        self.check_names().map_err(|problem| format!("type mismatch: {problem}"))?;
        Ok(object)
    }
}

/// Doubles up to here that have no fraction are written as whole numbers, which they are to JSON.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Values share their parts, so that few of them can stand for very much JSON.
struct Writer {
    /// Bytes that may still be written, about.
    left: usize,
}

impl Writer {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(bytes).ok_or("the value is too large")?;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<String, String> {
        self.take(text.len())?;
        Ok(text.to_owned())
    }

    fn value(&mut self, value: &Value<'_>, depth: usize) -> Result<Json, String> {
        if depth > VALUE_DEPTH_MAX {
            return Err("the value is nested too deep".to_owned());
        }
        self.take(1)?;
        Ok(match value {
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Optional(Some(inner)) => return self.value(inner, depth + 1),
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Uint(value) => (*value).into(),
            Value::Double(value) if value.fract() == 0.0 && value.abs() <= WHOLE_MAX => {
                (*value as i64).into()
            }
            Value::Double(value) => match serde_json::Number::from_f64(*value) {
                Some(number) => Json::Number(number),
                None => return Err(format!("{value} is no number in JSON")),
            },
            Value::Text(text) => self.text(text)?.into(),
            Value::Bytes(bytes) => {
                self.take(bytes.len())?;
                STANDARD.encode(bytes).into()
            }
            Value::Timestamp(time) => time.to_string().into(),
            Value::Duration(duration) => duration.to_string().into(),
            Value::List(list) => self.list(list, depth)?,
            Value::Map(map) => {
                let mut fields = Fields::new();
                for key in map.keys() {
                    let Value::Text(name) = &key else {
                        let kind = key.to_type();
                        return Err(format!("a key of a map is of type {kind}, not string"));
                    };
                    let Some(found) = map.get(&key) else { continue };
                    let found = found.map_err(|failure| format!("{failure:?}"))?;
                    fields.insert(self.text(name)?, self.value(&found, depth + 1)?);
                }
                Json::Object(fields)
            }
            Value::Message(message) => self.message(message, depth)?,
            other => {
                return Err(format!("a value of type {} has no form in JSON", other.to_type()));
            }
        })
    }

    fn message(&mut self, message: &Message<'_>, depth: usize) -> Result<Json, String> {
        let mut fields = Fields::new();
        for (name, value) in message.fields() {
            fields.insert(self.text(name)?, self.value(value, depth + 1)?);
        }
        Ok(Json::Object(fields))
    }

    fn list(&mut self, list: &List<'_>, depth: usize) -> Result<Json, String> {
        let mut items = Vec::with_capacity(list.len());
        for item in list.iter() {
            let item = item.map_err(|failure| format!("{failure:?}"))?;
            items.push(self.value(&item, depth + 1)?);
        }
        Ok(Json::Array(items))
    }
}
