//! Type errors of built-in objects, with the texts of a Go decoder, which clients and users know.

use api_meta::{decode, time};
use serde_json::Value;

use crate::number::as_integer;
use crate::schema::{Additional, NodeId, Schema, SchemaNode, Type, VALUE_DEPTH_MAX, join};

/// The position of a value in its Go struct.
#[derive(Clone, Copy)]
struct GoField<'a> {
    /// The struct type that contains the field.
    owner: &'a str,
    path: &'a str,
}

impl Schema {
    /// The first value of a type that the schema does not allow; `None` when there is none. Returns
    /// the text that follows `… cannot be handled as a …: `. Integers must have no fraction, as in
    /// a Go decoder.
    ///
    /// For schemas of built-in types; custom resources are validated instead.
    pub fn type_error(&self, value: &Value) -> Option<String> {
        let owner = self.go_type(self.root);
        self.error_at(self.root, value, GoField { owner: &owner, path: "" }, 0)
    }

    fn error_at(
        &self,
        id: NodeId,
        value: &Value,
        position: GoField<'_>,
        depth: usize,
    ) -> Option<String> {
        if value.is_null() || depth > VALUE_DEPTH_MAX {
            return None;
        }
        let node = self.node_for(id, value);
        if node.int_or_string {
            return (!value.is_string() && !value.is_number())
                .then(|| self.mismatch(id, value, position));
        }
        let fits = match (node.kind, value) {
            (None, _) => true,
            (Some(Type::Object), Value::Object(_)) | (Some(Type::Array), Value::Array(_)) => true,
            (Some(Type::Boolean), Value::Bool(_)) | (Some(Type::Number), Value::Number(_)) => true,
            (Some(Type::String), Value::String(text)) => return text_error(node, text),
            (Some(Type::Integer), Value::Number(number)) => {
                number.is_i64() && fits_format(node, as_integer(number).unwrap_or(i64::MAX))
            }
            _ => false,
        };
        if !fits {
            return Some(self.mismatch(id, value, position));
        }
        match value {
            Value::Object(fields) => {
                let owner = node.definition.as_deref().map(short_name);
                fields.iter().find_map(|(key, child)| match node.property(key) {
                    Some(id) => {
                        let path = join(position.path, key);
                        let owner = owner.unwrap_or(position.owner);
                        self.error_at(id, child, GoField { owner, path: &path }, depth + 1)
                    }
                    // The keys of a map are not part of a Go field's name.
                    None => match node.additional {
                        Additional::Schema(id) => self.error_at(id, child, position, depth + 1),
                        _ => None,
                    },
                })
            }
            Value::Array(items) => {
                let id = node.items?;
                items.iter().find_map(|item| self.error_at(id, item, position, depth + 1))
            }
            _ => None,
        }
    }

    fn mismatch(&self, id: NodeId, value: &Value, position: GoField<'_>) -> String {
        let kind = self.go_type(id);
        // Only a number in an integer field is quoted.
        let integer = self.node(id).kind == Some(Type::Integer);
        let value = match value {
            Value::Number(number) if integer => format!("number {number}"),
            other => decode::type_name(other).to_owned(),
        };
        let GoField { owner, path } = position;
        format!("json: cannot unmarshal {value} into Go struct field {owner}.{path} of type {kind}")
    }

    fn go_type(&self, id: NodeId) -> String {
        let node = self.node(id);
        if let Some(name) = &node.definition {
            let name = short_name(name);
            return match (node.kind, name) {
                (Some(Type::Object), _) => format!("v1.{name}"),
                _ => name.to_owned(),
            };
        }
        let format = node.rules.as_ref().and_then(|rules| rules.format.as_deref());
        match (node.kind, format) {
            (Some(Type::Array), _) => match node.items {
                Some(items) => format!("[]{}", self.go_type(items)),
                None => "[]interface {}".to_owned(),
            },
            (Some(Type::Object), _) => match node.additional {
                Additional::Schema(child) => format!("map[string]{}", self.go_type(child)),
                _ => "map[string]interface {}".to_owned(),
            },
            (Some(Type::Integer), Some("int32")) => "int32".to_owned(),
            (Some(Type::Integer), _) => "int64".to_owned(),
            (Some(Type::Number), _) => "float64".to_owned(),
            (Some(Type::Boolean), _) => "bool".to_owned(),
            (Some(Type::String), Some("byte")) => "[]uint8".to_owned(),
            (Some(Type::String), _) | (None, _) => "string".to_owned(),
        }
    }
}

/// `io.k8s.api.core.v1.PodSpec` → `PodSpec`.
fn short_name(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

fn fits_format(node: &SchemaNode, integer: i64) -> bool {
    match node.rules.as_ref().and_then(|rules| rules.format.as_deref()) {
        Some("int32") => i32::try_from(integer).is_ok(),
        _ => true,
    }
}

fn text_error(node: &SchemaNode, text: &str) -> Option<String> {
    match node.rules.as_ref()?.format.as_deref()? {
        "byte" => base64_error(text),
        "date-time" => {
            let micro = node.definition.as_deref().is_some_and(|name| name.ends_with(".MicroTime"));
            if micro { time::canonical_micro(text).err() } else { time::parse_problem(text) }
        }
        _ => None,
    }
}

fn base64_error(text: &str) -> Option<String> {
    // Go's decoder skips line ends.
    let bytes: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, b)| !matches!(b, b'\r' | b'\n')).collect();
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    let body = bytes.iter().take_while(|(_, b)| legal(*b)).count();
    let padding = bytes[body..].iter().take_while(|(_, b)| *b == b'=').count();
    let at = |position: usize| bytes.get(position).map_or(text.len(), |(index, _)| *index);
    let expected = (4 - body % 4) % 4;
    let broken = if body + padding < bytes.len() {
        Some(at(body + padding))
    } else if expected == 3 || padding != expected {
        Some(at(body + padding.min(expected)))
    } else {
        None
    };
    broken.map(|offset| format!("illegal base64 data at input byte {offset}"))
}
