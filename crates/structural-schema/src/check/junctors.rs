//! The contents of `allOf`, `anyOf`, `oneOf` and `not`.

use api_meta::status::Cause;
use serde_json::{Map, Value};

use super::{SchemaChecker, is_true, object, text};
use crate::schema::{CAUSES_MAX, SCHEMA_DEPTH_MAX};

const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The part of a schema that declares types, which a value validation accompanies.
#[derive(Clone, Copy)]
pub(super) struct Structure<'a> {
    pub map: &'a Map<String, Value>,
    pub path: &'a str,
}

impl SchemaChecker {
    /// Checks a schema inside `allOf`, `anyOf`, `oneOf` or `not`: it validates values and declares
    /// nothing.
    pub(super) fn validation(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        structure: Structure<'_>,
        types_allowed: bool,
        depth: usize,
    ) {
        if depth > SCHEMA_DEPTH_MAX || self.causes.len() >= CAUSES_MAX {
            return;
        }
        self.keywords(map, path);
        for key in ["type", "description", "title"] {
            let allowed = key == "type" && types_allowed;
            if !allowed && !text(map, key).is_empty() {
                self.forbid(path, key, "must be empty to be structural");
            }
        }
        for key in
            ["default", "additionalProperties", "x-kubernetes-list-type", "x-kubernetes-map-type"]
        {
            if map.contains_key(key) {
                self.forbid(path, key, "must be undefined to be structural");
            }
        }
        for key in [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ] {
            if is_true(map, key) {
                self.forbid(path, key, "must be false to be structural");
            }
        }
        for key in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
            if map.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
                self.forbid(path, key, "must be empty to be structural");
            }
        }
        for (child, child_path, _) in junctors(map, path) {
            self.validation(child, &child_path, structure, types_allowed, depth + 1);
        }
        for (name, child) in object(map, "properties") {
            let declared_path = format!("{}.properties[{name}]", structure.path);
            let declared = structure.map.get("properties").and_then(|fields| fields.get(name));
            let child_path = format!("{path}.properties[{name}]");
            self.check_nested(child, &child_path, declared, &declared_path, depth);
        }
        if let Some(child) = map.get("items") {
            let declared_path = format!("{}.items", structure.path);
            let declared = structure.map.get("items");
            self.check_nested(child, &format!("{path}.items"), declared, &declared_path, depth);
        }
    }

    fn check_nested(
        &mut self,
        child: &Value,
        path: &str,
        declared: Option<&Value>,
        declared_path: &str,
        depth: usize,
    ) {
        let Some(map) = child.as_object() else {
            return;
        };
        match declared.and_then(Value::as_object) {
            Some(declared) => {
                let structure = Structure { map: declared, path: declared_path };
                self.validation(map, path, structure, false, depth + 1);
            }
            None => {
                let detail = format!("because it is defined in {path}");
                self.causes.push(Cause::required(declared_path, &detail));
            }
        }
    }
}

/// The value validations directly below a schema: each with its path and keyword.
pub(super) fn junctors<'a>(
    map: &'a Map<String, Value>,
    path: &str,
) -> Vec<(&'a Map<String, Value>, String, &'static str)> {
    let mut found = Vec::new();
    for keyword in JUNCTORS {
        let list = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for (index, child) in list.enumerate() {
            found.extend(
                child.as_object().map(|c| (c, format!("{path}.{keyword}[{index}]"), keyword)),
            );
        }
    }
    let not = map.get("not").and_then(Value::as_object);
    found.extend(not.map(|child| (child, format!("{path}.not"), "not")));
    found
}

/// The one pattern in which a value validation may contain types: `anyOf: [integer, string]`.
pub(super) fn is_int_or_string_choice(map: &Map<String, Value>) -> bool {
    map.get("anyOf").and_then(Value::as_array).is_some_and(|choice| {
        choice.iter().map(|option| option["type"].as_str()).eq([Some("integer"), Some("string")])
    })
}
