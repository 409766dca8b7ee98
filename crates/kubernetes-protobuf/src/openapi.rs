//! OpenAPI documents in protobuf, in the form that [gnostic] gives them.
//!
//! A table says which member of a JSON object is which field ([`table`]); what has no fixed form
//! (extensions, defaults, enumerations) is text in YAML ([`yaml`]). The result is byte for byte
//! what a Kubernetes API server makes of the same JSON.
//!
//! [gnostic]: https://github.com/google/gnostic-models

mod table;
#[cfg(test)]
mod tests;
mod yaml;

use serde_json::{Map, Value};

use crate::wire::{put_bytes, put_double, put_int, put_nested};
use table::{Element, Field, Form, Message, Shape, table};

/// A version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Swagger 2.0.
    V2,
    V3,
}

impl Version {
    /// The media type of an encoded document, as answers name it.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// The spelling that most clients still ask for, which is no valid media type.
    #[must_use]
    pub const fn old_media_type(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        }
    }
}

/// Numbers of the fields of a pair of a key and a value, and of a value that is text in YAML.
mod number {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const YAML: u32 = 2;
}

/// Encodes a document. Members that OpenAPI does not have, and values of a wrong type, are left out.
#[must_use]
pub fn encode(version: Version, document: &Value) -> Vec<u8> {
    let name = match version {
        Version::V2 => "v2.Document",
        Version::V3 => "v3.Document",
    };
    let mut out = Vec::new();
    put_message(table().message_of(name), document, &mut out);
    out
}

/// Appends the fields of a message, without tag and length.
fn put_message(message: &Message, value: &Value, out: &mut Vec<u8>) {
    match message.form {
        Form::Object => {
            if let Value::Object(map) = value {
                message.fields.iter().for_each(|field| put_members(message, field, map, out));
            }
        }
        Form::OneOf => {
            if let Some(field) = alternative(message, value) {
                put(field, value, Zero::Written, out);
            }
        }
        Form::Value => {
            let field = &message.fields[0];
            match value {
                Value::Array(items) if field.element == Element::String => {
                    items.iter().for_each(|item| put(field, item, Zero::Written, out));
                }
                one => put(field, one, Zero::Written, out),
            }
        }
    }
}

/// Appends what an object has of a field.
fn put_members(message: &Message, field: &Field, map: &Map<String, Value>, out: &mut Vec<u8>) {
    match field.shape {
        Shape::Single => {
            if let Some(value) = map.get(field.name) {
                put(field, value, Zero::LeftOut, out);
            }
        }
        Shape::List => {
            let items = map.get(field.name).and_then(Value::as_array);
            for item in items.into_iter().flatten() {
                put(field, item, Zero::Written, out);
            }
        }
        Shape::Entries => {
            for (key, value) in map.iter().filter(|(key, _)| message.takes(field, key)) {
                put_nested(out, field.number, |out| {
                    if !key.is_empty() {
                        put_bytes(out, number::KEY, key.as_bytes());
                    }
                    put_element(field.element, number::VALUE, value, Zero::LeftOut, out);
                });
            }
        }
    }
}

/// Whether a field is there when its value is zero or empty.
#[derive(Clone, Copy, PartialEq)]
enum Zero {
    Written,
    LeftOut,
}

fn put(field: &Field, value: &Value, zero: Zero, out: &mut Vec<u8>) {
    put_element(field.element, field.number, value, zero, out);
}

fn put_element(element: Element, number: u32, value: &Value, zero: Zero, out: &mut Vec<u8>) {
    let shown = |is_zero: bool| zero == Zero::Written || !is_zero;
    match element {
        Element::String => {
            if let Some(text) = value.as_str().filter(|text| shown(text.is_empty())) {
                put_bytes(out, number, text.as_bytes());
            }
        }
        Element::Bool => {
            if let Some(truth) = value.as_bool().filter(|truth| shown(!truth)) {
                put_int(out, number, truth.into());
            }
        }
        Element::Int => {
            if let Some(count) = value.as_i64().filter(|count| shown(*count == 0)) {
                put_int(out, number, count);
            }
        }
        Element::Double => {
            // Negative zero is not the zero that is left out.
            if let Some(amount) = value.as_f64().filter(|amount| shown(amount.to_bits() == 0)) {
                put_double(out, number, amount);
            }
        }
        Element::Any => {
            let text = yaml::write(value);
            put_nested(out, number, |out| put_bytes(out, number::YAML, text.as_bytes()));
        }
        Element::Message(id) => {
            put_nested(out, number, |out| put_message(table().message(id), value, out));
        }
    }
}

/// Which of several things a value is. `None`: nothing that the message knows.
fn alternative<'a>(message: &'a Message, value: &Value) -> Option<&'a Field> {
    let is = |key: &str, expected: &str| value[key] == expected;
    // `None`: what is none of the others.
    let matches = |field: &Field| {
        Some(match field.name {
            "reference" | "jsonReference" => value.get("$ref").is_some(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "bodyParameter" => is("in", "body"),
            "headerParameterSubSchema" => is("in", "header"),
            "formDataParameterSubSchema" => is("in", "formData"),
            "queryParameterSubSchema" => is("in", "query"),
            "pathParameterSubSchema" => is("in", "path"),
            "fileSchema" => is("type", "file"),
            "expression" => value.is_object(),
            "basicAuthenticationSecurity" => is("type", "basic"),
            "apiKeySecurity" => is("type", "apiKey"),
            "oauth2ImplicitSecurity" => is("flow", "implicit"),
            "oauth2PasswordSecurity" => is("flow", "password"),
            "oauth2ApplicationSecurity" => is("flow", "application"),
            "oauth2AccessCodeSecurity" => is("flow", "accessCode"),
            _ => return None,
        })
    };
    let fields = &message.fields;
    let certain = fields.iter().find(|field| matches(field) == Some(true));
    certain.or_else(|| fields.iter().find(|field| matches(field).is_none()))
}
