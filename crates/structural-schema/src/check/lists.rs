//! The keywords that identify the items of a list.

use api_meta::status::Cause;
use serde_json::{Map, Value};

use super::{SchemaChecker, text};

impl SchemaChecker {
    pub(super) fn lists(&mut self, map: &Map<String, Value>, path: &str) {
        const MAP_TYPES: [&str; 2] = ["atomic", "granular"];
        let keys_path = format!("{path}.x-kubernetes-list-map-keys");
        if let Some(value) = map.get("x-kubernetes-map-type")
            && !value.as_str().is_some_and(|kind| MAP_TYPES.contains(&kind))
        {
            let field = format!("{path}.x-kubernetes-map-type");
            self.causes.push(Cause::not_supported(field, value, &MAP_TYPES));
        }
        let keys = map.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let keys = keys.map(Vec::as_slice).unwrap_or_default();
        let Some(value) = map.get("x-kubernetes-list-type") else {
            if !keys.is_empty() {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                let field = format!("{path}.x-kubernetes-list-type");
                self.causes.push(Cause::required(field, detail));
            }
            return;
        };
        if text(map, "type") != "array" {
            let kind = Value::from(text(map, "type"));
            let detail = "must be array if x-kubernetes-list-type is specified";
            self.causes.push(Cause::invalid(format!("{path}.type"), &kind, detail));
            return;
        }
        match value.as_str() {
            Some("atomic" | "set") if !keys.is_empty() => {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                let field = format!("{path}.x-kubernetes-list-type");
                self.causes.push(Cause::invalid(field, value, detail));
            }
            Some("atomic" | "set") => {}
            Some("map") if keys.is_empty() => {
                let detail = "must not be empty if x-kubernetes-list-type is map";
                self.causes.push(Cause::required(keys_path, detail));
            }
            Some("map") => self.list_keys(map, path, keys),
            _ => {
                let field = format!("{path}.x-kubernetes-list-type");
                self.causes.push(Cause::not_supported(field, value, &["atomic", "map", "set"]));
            }
        }
    }

    fn list_keys(&mut self, map: &Map<String, Value>, path: &str, keys: &[Value]) {
        let empty = Map::new();
        let items = map.get("items").and_then(Value::as_object).unwrap_or(&empty);
        let properties = items.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = items.get("required").and_then(Value::as_array);
        let required = required.map(Vec::as_slice).unwrap_or_default();
        for (index, key) in keys.iter().enumerate() {
            let Some(property) = key.as_str().and_then(|name| properties.get(name)) else {
                let field = format!("{path}.x-kubernetes-list-map-keys[{index}]");
                let detail = "entries must all be names of item properties";
                self.causes.push(Cause::invalid(field, key, detail));
                continue;
            };
            if !required.contains(key) && property.get("default").is_none() {
                let name = key.as_str().unwrap_or_default();
                let field = format!("{path}.items.properties[{name}].default");
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                              default or be a required property";
                self.causes.push(Cause::required(field, detail));
            }
        }
    }
}
