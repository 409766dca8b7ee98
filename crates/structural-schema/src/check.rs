//! Whether a schema is structural: every field of an object has one known type, so that pruning,
//! defaulting and validation need no guessing.
//!
//! Works on the JSON, because a refusal names the path into it, and because keywords that the
//! compiled form does not keep are refused here.

use api_meta::status::Cause;
use serde_json::{Map, Value};

use crate::expressions;
use crate::schema::{Additional, CAUSES_MAX, Id, SCHEMA_DEPTH_MAX, Schema, Type};
use cel::pattern;

/// Keywords that no schema of a custom resource may use.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Everything that keeps the `openAPIV3Schema` at `path` from being served, at most [`CAUSES_MAX`]
/// causes. A schema without causes compiles.
pub fn check(schema: &Value, path: &str) -> Vec<Cause> {
    check_update(schema, path, None)
}

/// The same for a schema that takes the place of `old`: rules of one that did not change may cost
/// more than those of a new one, so that what is served stays writable.
pub fn check_update(schema: &Value, path: &str, old: Option<&Value>) -> Vec<Cause> {
    let mut checker = Checker { causes: Vec::new() };
    match schema.as_object() {
        Some(map) => checker.structural(map, path, Level::Root, 0),
        None => checker.causes.push(Cause::required(path, "must be an object")),
    }
    if checker.causes.is_empty() {
        match Schema::compile(schema) {
            Ok(compiled) => {
                checker.defaults(&compiled, compiled.root, path);
                if checker.causes.is_empty() {
                    let unchanged = old == Some(schema);
                    checker.causes = expressions::check(&compiled, path, unchanged);
                }
            }
            Err(error) => {
                let text = error.to_string();
                checker.causes.push(Cause::forbidden(path, &text));
            }
        }
    }
    checker.causes.truncate(CAUSES_MAX);
    checker.causes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// The part of a schema that gives types, beside which a value validation stands.
#[derive(Clone, Copy)]
struct Structure<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
}

struct Checker {
    causes: Vec<Cause>,
}

impl Checker {
    fn forbid(&mut self, path: &str, key: &str, detail: &str) {
        self.causes.push(Cause::forbidden(format!("{path}.{key}"), detail));
    }

    fn structural(&mut self, map: &Map<String, Value>, path: &str, level: Level, depth: usize) {
        if depth > SCHEMA_DEPTH_MAX || self.causes.len() >= CAUSES_MAX {
            return;
        }
        self.keywords(map, path);
        self.types(map, path, level);
        self.containers(map, path, level);
        self.lists(map, path);
        if level == Level::Root {
            self.root_metadata(map, path);
        }
        let structure = Structure { map, path };
        let int_or_string = is_true(map, "x-kubernetes-int-or-string");
        for (child, child_path, key) in junctors(map, path) {
            let types_allowed = int_or_string && key == "anyOf" && is_int_or_string_choice(map);
            self.validation(child, &child_path, structure, types_allowed, depth + 1);
        }
        for (name, child) in object(map, "properties") {
            let child_path = format!("{path}.properties[{name}]");
            self.child(child, &child_path, Level::Field, depth);
        }
        if let Some(items) = map.get("items") {
            if items.is_array() {
                self.forbid(path, "items", "items must be a schema object and not an array");
            } else {
                self.child(items, &format!("{path}.items"), Level::Item, depth);
            }
        }
        if let Some(child @ Value::Object(_)) = map.get("additionalProperties") {
            self.child(child, &format!("{path}.additionalProperties"), Level::Field, depth);
        }
    }

    fn child(&mut self, child: &Value, path: &str, level: Level, depth: usize) {
        match child.as_object() {
            Some(map) => self.structural(map, path, level, depth + 1),
            None => self.causes.push(Cause::required(path, "must be an object")),
        }
    }

    /// Keywords that are refused wherever they stand.
    fn keywords(&mut self, map: &Map<String, Value>, path: &str) {
        for keyword in UNSUPPORTED.iter().filter(|keyword| map.contains_key(**keyword)) {
            self.forbid(path, keyword, &format!("{keyword} is not supported"));
        }
        if is_true(map, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                          quadratic";
            self.forbid(path, "uniqueItems", detail);
        }
        if let Some(text) = map.get("pattern").and_then(Value::as_str)
            && let Err(error) = pattern::compile(text)
        {
            let value = Value::from(text);
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.causes.push(Cause::invalid(format!("{path}.pattern"), &value, &detail));
        }
        if map.get("additionalProperties") == Some(&Value::Bool(false)) {
            let detail = "additionalProperties cannot be set to false";
            self.forbid(path, "additionalProperties", detail);
        }
    }

    fn types(&mut self, map: &Map<String, Value>, path: &str, level: Level) {
        let kind = text(map, "type");
        let type_path = format!("{path}.type");
        let untyped_allowed = is_true(map, "x-kubernetes-int-or-string")
            || is_true(map, "x-kubernetes-preserve-unknown-fields");
        match kind {
            "" if level == Level::Root => {
                self.causes.push(Cause::required(type_path, "must not be empty at the root"));
                return;
            }
            "" if is_true(map, "x-kubernetes-embedded-resource") => {
                let detail = "must be object if x-kubernetes-embedded-resource is true";
                self.causes.push(Cause::required(type_path, detail));
                return;
            }
            "" if !untyped_allowed => {
                let detail = match level {
                    Level::Item => "must not be empty for specified array items",
                    _ => "must not be empty for specified object fields",
                };
                self.causes.push(Cause::required(type_path, detail));
                return;
            }
            "" => return,
            "null" => {
                let detail = "type cannot be set to null, use nullable as an alternative";
                self.forbid(path, "type", detail);
                return;
            }
            _ => {}
        }
        let value = Value::from(kind);
        if Type::parse(kind).is_none() {
            let supported = ["array", "boolean", "integer", "number", "object", "string"];
            self.causes.push(Cause::not_supported(type_path, &value, &supported));
        } else if level == Level::Root && kind != "object" {
            self.causes.push(Cause::invalid(type_path, &value, "must be object at the root"));
        } else if kind != "object" && is_true(map, "x-kubernetes-embedded-resource") {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.causes.push(Cause::invalid(type_path, &value, detail));
        } else if is_true(map, "x-kubernetes-int-or-string") {
            let detail = "must be empty if x-kubernetes-int-or-string is true";
            self.causes.push(Cause::invalid(type_path, &value, detail));
        }
    }

    fn containers(&mut self, map: &Map<String, Value>, path: &str, level: Level) {
        let additional = map.get("additionalProperties");
        if additional.is_some() && level == Level::Root {
            self.forbid(path, "additionalProperties", "must not be used at the root");
        }
        if additional.is_some() && object(map, "properties").next().is_some() {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.forbid(path, "additionalProperties", detail);
        }
        if text(map, "type") == "array" && map.get("items").is_none_or(Value::is_null) {
            self.causes.push(Cause::required(format!("{path}.items"), "must be specified"));
        }
        if is_true(map, "x-kubernetes-embedded-resource")
            && object(map, "properties").next().is_none()
            && !is_true(map, "x-kubernetes-preserve-unknown-fields")
        {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            self.causes.push(Cause::required(format!("{path}.properties"), detail));
        }
    }

    fn lists(&mut self, map: &Map<String, Value>, path: &str) {
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

    /// Metadata is the same for all kinds; a schema may only narrow the names.
    fn root_metadata(&mut self, map: &Map<String, Value>, path: &str) {
        let Some(metadata) = map.get("properties").and_then(|fields| fields.get("metadata")) else {
            return;
        };
        let path = format!("{path}.properties[metadata]");
        if metadata["type"] != "object" {
            let field = format!("{path}.type");
            self.causes.push(Cause::invalid(field, &metadata["type"], "must be object"));
        }
        let others = metadata
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys())
            .any(|key| !matches!(key.as_str(), "type" | "properties" | "description"));
        let fields = metadata["properties"].as_object().into_iter().flat_map(|map| map.keys());
        let other_fields = fields.into_iter().any(|name| name != "name" && name != "generateName");
        if others || other_fields {
            let detail = "must not specify anything other than name and generateName, but metadata \
                          is implicitly specified";
            self.causes.push(Cause::forbidden(path, detail));
        }
    }

    /// What stands inside `allOf`, `anyOf`, `oneOf` or `not`: it validates values and declares
    /// nothing.
    fn validation(
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
            let place = format!("{}.properties[{name}]", structure.path);
            let declared = structure.map.get("properties").and_then(|fields| fields.get(name));
            let child_path = format!("{path}.properties[{name}]");
            self.nested(child, &child_path, declared, &place, depth);
        }
        if let Some(child) = map.get("items") {
            let place = format!("{}.items", structure.path);
            let declared = structure.map.get("items");
            self.nested(child, &format!("{path}.items"), declared, &place, depth);
        }
    }

    fn nested(
        &mut self,
        child: &Value,
        path: &str,
        declared: Option<&Value>,
        place: &str,
        depth: usize,
    ) {
        let Some(map) = child.as_object() else {
            return;
        };
        match declared.and_then(Value::as_object) {
            Some(declared) => {
                let structure = Structure { map: declared, path: place };
                self.validation(map, path, structure, false, depth + 1);
            }
            None => {
                let detail = format!("because it is defined in {path}");
                self.causes.push(Cause::required(place, &detail));
            }
        }
    }

    /// Defaults must be valid, and must not lose anything by pruning.
    fn defaults(&mut self, schema: &Schema, id: Id, path: &str) {
        let node = schema.node(id);
        if let Some(default) = &node.default {
            let field = format!("{path}.default");
            for unknown in schema.unknown_below(id, default) {
                let detail = format!("must not contain the unknown field {unknown:?}");
                self.causes.push(Cause::invalid(field.as_str(), default, &detail));
            }
            for mut cause in schema.validate_below(id, default) {
                cause.field = match cause.field.as_str() {
                    "" | "<nil>" => field.clone(),
                    inner => format!("{field}.{inner}"),
                };
                self.causes.push(cause);
            }
        }
        for (name, child) in &node.properties {
            self.defaults(schema, *child, &format!("{path}.properties[{name}]"));
        }
        if let Some(items) = node.items {
            self.defaults(schema, items, &format!("{path}.items"));
        }
        if let Additional::Schema(child) = node.additional {
            self.defaults(schema, child, &format!("{path}.additionalProperties"));
        }
    }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_true(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key) == Some(&Value::Bool(true))
}

fn object<'a>(
    map: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    map.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// The value validations directly below a schema: each with its path and keyword.
fn junctors<'a>(
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

/// The one pattern in which types may stand inside a value validation: `anyOf: [integer, string]`.
fn is_int_or_string_choice(map: &Map<String, Value>) -> bool {
    map.get("anyOf").and_then(Value::as_array).is_some_and(|choice| {
        choice.iter().map(|option| option["type"].as_str()).eq([Some("integer"), Some("string")])
    })
}
