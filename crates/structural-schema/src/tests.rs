//! The expected texts are those of a Kubernetes 1.36 API server.

mod check;
mod expressions;
mod jsonpath;
mod operations;
mod properties;
mod validation;

use serde_json::{Value, json};

use crate::Schema;

/// The schema with which most facts about custom resources were recorded.
pub(super) fn recorded() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["req"], "properties": {
            "req": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
            "num": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
            "en": {"type": "string", "enum": ["A", "B"]},
            "ios": {"x-kubernetes-int-or-string": true},
            "nul": {"type": "string", "nullable": true},
            "nn": {"type": "string"},
            "nd": {"type": "string", "default": "dd"},
            "lst": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "string"}, "v": {"type": "string"}}}},
            "st": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "f": {"type": "number"},
            "dt": {"type": "string", "format": "date-time"},
            "min": {"type": "integer"},
            "imm": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            "nested": {"type": "object",
                "properties": {"d": {"type": "string", "default": "nested"}}},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {"x": {"type": "string"}}},
    }})
}

pub(super) fn compiled() -> Schema {
    Schema::compile(&recorded()).unwrap()
}

/// A schema with one field `spec.v`.
pub(super) fn field(schema: Value) -> Schema {
    let root = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"v": schema}}}});
    assert_eq!(crate::check(&root, "s"), []);
    Schema::compile(&root).unwrap()
}
