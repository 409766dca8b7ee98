//! The kind of a path on a node, which the view calls `kind` and Kubernetes `type`.

use rest_view::Mapper;
use serde_json::{Map, Value};

/// Of a persistent volume.
pub struct HostPathKind;

impl Mapper for HostPathKind {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let kind = &stored["spec"]["hostPath"]["type"];
        if let (Some(shown), true) = (fields.get_mut("hostPath"), kind.is_string()) {
            shown["kind"] = kind.clone();
        }
    }
    fn to_stored(&self, _: &Map<String, Value>, stored: &mut Value) {
        let path = stored.pointer_mut("/spec/hostPath").and_then(Value::as_object_mut);
        if let Some(path) = path
            && let Some(kind) = path.remove("kind")
        {
            path.insert("type".to_owned(), kind);
        }
    }
}
