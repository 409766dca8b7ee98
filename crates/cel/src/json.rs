//! Values as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as Fields, Value as Json};

use crate::limits::{JSON_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::message::MessageValue;
use crate::value::{List, Value};

impl Value<'_> {
    /// The value as JSON: messages and maps are objects, times and durations are texts, bytes are
    /// base64. An optional is its value, or null.
    ///
    /// # Errors
    /// The value has no JSON representation, or exceeds about 4 MiB or the nesting limit.
    pub fn to_json(&self) -> Result<Json, String> {
        JsonWriter { left: JSON_BYTES_MAX }.value(self, 0)
    }
}

impl MessageValue<'_> {
    /// The object as JSON. The types of its parts must be named by the paths of their fields.
    ///
    /// # Errors
    /// Those of [`Value::to_json`], and each part with another type name, in the text of
    /// kube-apiserver.
    pub fn to_object(&self) -> Result<Json, String> {
        let object = JsonWriter { left: JSON_BYTES_MAX }.message(self, 0)?;
        // Only now: the conversion has proven that the value is neither deep nor large.
        self.check_names().map_err(|problem| format!("type mismatch: {problem}"))?;
        Ok(object)
    }
}

/// Doubles without a fraction are written as integers up to this size.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Converts a value to JSON within a size limit: values share their parts, so a small value can be
/// very large JSON.
struct JsonWriter {
    /// Approximate number of bytes that may still be written.
    left: usize,
}

impl JsonWriter {
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
                return Err(format!(
                    "a value of type {} has no representation in JSON",
                    other.to_type()
                ));
            }
        })
    }

    fn message(&mut self, message: &MessageValue<'_>, depth: usize) -> Result<Json, String> {
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
