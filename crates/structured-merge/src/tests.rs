//! Tests by subject, and their shared schemas.

mod applying;
mod encoding;
mod entries;
mod properties;
mod schemas;
mod values;
mod versions;

use serde_json::{Value, json};

use crate::{ConvertError, FieldSet, Schema, Typed, Versions};

/// A schema with every type of list and map, as a published model.
fn schema() -> Schema {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let pair = json!({"a": text, "b": {"type": "integer"}});
    let item =
        json!({"type": "object", "properties": {"name": text, "value": text, "labels": texts}});
    let port = json!({"type": "object", "properties": {
        "port": {"type": "integer"}, "name": text,
        "protocol": {"type": "string", "default": "TCP"},
    }});
    let keyed = |items: &Value, keys: &[&str]| {
        json!({
            "type": "array", "items": items, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        })
    };
    from_model(json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": {"type": "object"},
        "text": text, "count": {"type": "integer"}, "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": true},
        "granular": texts,
        "whole": {"type": "object", "properties": pair, "x-kubernetes-map-type": "atomic"},
        "pair": {"type": "object", "properties": pair},
        "list": {"type": "array", "items": item},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
        "items": keyed(&item, &["name"]),
        "ports": keyed(&port, &["port", "protocol"]),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
}

fn from_model(model: Value) -> Schema {
    let models = json!({"Root": model});
    Schema::from_openapi(models.as_object().unwrap(), "Root").unwrap()
}

fn set(json: &Value) -> FieldSet {
    FieldSet::from_value(json).unwrap()
}

/// A kind with one version.
struct Single;

impl Versions for Single {
    fn convert<'a>(&'a self, object: &Typed<'a>, version: &str) -> Result<Typed<'a>, ConvertError> {
        match version {
            "v1" => Ok(object.clone()),
            _ => Err(ConvertError::MissingVersion(version.to_owned())),
        }
    }
}
