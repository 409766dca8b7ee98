//! OpenAPI documents in protobuf, as [gnostic] encodes them.
//!
//! A table maps the members of JSON objects to fields ([`table`]). Values without a fixed type
//! (extensions, defaults, enumerations) are YAML text ([`yaml`]). The result equals byte for byte
//! the document that a Kubernetes API server makes from the same JSON.
//!
//! [gnostic]: https://github.com/google/gnostic-models

mod table;
#[cfg(test)]
mod tests;
mod yaml;

use serde_json::{Map, Value};

use crate::wire::{put_bytes, put_double, put_int, put_nested};
use table::{FieldShape, GnosticElement, GnosticField, GnosticMessage, JsonShape, table};

/// A version of the OpenAPI specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApiVersion {
    /// Swagger 2.0.
    V2,
    V3,
}

impl OpenApiVersion {
    /// The media type of an encoded document, as responses name it.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// The spelling that most clients still request. It is not a valid media type.
    #[must_use]
    pub const fn old_media_type(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        }
    }
}

/// Field numbers of a pair of key and value, and of a value that is YAML text.
mod number {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const YAML: u32 = 2;
}

/// Encodes a document. Omits members that OpenAPI does not have, and values of a wrong type.
#[must_use]
pub fn encode(version: OpenApiVersion, document: &Value) -> Vec<u8> {
    let name = match version {
        OpenApiVersion::V2 => "v2.Document",
        OpenApiVersion::V3 => "v3.Document",
    };
    let mut out = Vec::new();
    put_message(table().message_of(name), document, &mut out);
    out
}

/// Appends the fields of a message, without tag and length.
fn put_message(message: &GnosticMessage, value: &Value, out: &mut Vec<u8>) {
    match message.shape {
        JsonShape::Object => {
            if let Value::Object(map) = value {
                message.fields.iter().for_each(|field| put_members(message, field, map, out));
            }
        }
        JsonShape::OneOf => {
            if let Some(field) = alternative(message, value) {
                put(field, value, Zero::Written, out);
            }
        }
        JsonShape::Value => {
            let field = &message.fields[0];
            match value {
                Value::Array(items) if field.element == GnosticElement::String => {
                    items.iter().for_each(|item| put(field, item, Zero::Written, out));
                }
                one => put(field, one, Zero::Written, out),
            }
        }
    }
}

/// Appends the members of an object that belong to a field.
fn put_members(
    message: &GnosticMessage,
    field: &GnosticField,
    map: &Map<String, Value>,
    out: &mut Vec<u8>,
) {
    match field.shape {
        FieldShape::Single => {
            if let Some(value) = map.get(field.name) {
                put(field, value, Zero::LeftOut, out);
            }
        }
        FieldShape::List => {
            let items = map.get(field.name).and_then(Value::as_array);
            for item in items.into_iter().flatten() {
                put(field, item, Zero::Written, out);
            }
        }
        FieldShape::Entries => {
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

/// Whether a field is written when its value is zero or empty.
#[derive(Clone, Copy, PartialEq)]
enum Zero {
    Written,
    LeftOut,
}

fn put(field: &GnosticField, value: &Value, zero: Zero, out: &mut Vec<u8>) {
    put_element(field.element, field.number, value, zero, out);
}

fn put_element(element: GnosticElement, number: u32, value: &Value, zero: Zero, out: &mut Vec<u8>) {
    let shown = |is_zero: bool| zero == Zero::Written || !is_zero;
    match element {
        GnosticElement::String => {
            if let Some(text) = value.as_str().filter(|text| shown(text.is_empty())) {
                put_bytes(out, number, text.as_bytes());
            }
        }
        GnosticElement::Bool => {
            if let Some(truth) = value.as_bool().filter(|truth| shown(!truth)) {
                put_int(out, number, truth.into());
            }
        }
        GnosticElement::Int => {
            if let Some(count) = value.as_i64().filter(|count| shown(*count == 0)) {
                put_int(out, number, count);
            }
        }
        GnosticElement::Double => {
            // Negative zero is written; only positive zero is omitted.
            if let Some(amount) = value.as_f64().filter(|amount| shown(amount.to_bits() == 0)) {
                put_double(out, number, amount);
            }
        }
        GnosticElement::Any => {
            let text = yaml::write(value);
            put_nested(out, number, |out| put_bytes(out, number::YAML, text.as_bytes()));
        }
        GnosticElement::Message(id) => {
            put_nested(out, number, |out| put_message(table().message(id), value, out));
        }
    }
}

/// The alternative of a message that a value matches; `None` when it matches none.
fn alternative<'a>(message: &'a GnosticMessage, value: &Value) -> Option<&'a GnosticField> {
    let is = |key: &str, expected: &str| value[key] == expected;
    // `None`: the alternative for every value that no other one matches.
    let matches = |field: &GnosticField| {
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
