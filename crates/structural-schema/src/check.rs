//! Checks whether a schema is structural: every field of an object has one known type, so that
//! pruning, defaulting and validation are unambiguous.
//!
//! Works on the JSON, because a refusal names the path into it, and because it refuses keywords
//! that the compiled schema does not contain.

mod junctors;
mod lists;

use api_meta::status::Cause;
use serde_json::{Map, Value};

use self::junctors::{Structure, is_int_or_string_choice, junctors};
use crate::expressions;
use crate::schema::{Additional, CAUSES_MAX, NodeId, SCHEMA_DEPTH_MAX, Schema, Type};
use cel::pattern;

/// Keywords that no schema of a custom resource may use.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// Returns the reasons why the `openAPIV3Schema` at `path` cannot be served, at most
/// [`CAUSES_MAX`]. A schema without causes compiles. The texts are those of kube-apiserver.
pub fn check(schema: &Value, path: &str) -> Vec<Cause> {
    check_update(schema, path, None)
}

/// Like [`check`], for a schema that replaces `old`. The cost limit does not apply to rules that
/// did not change, so that a definition stays writable.
pub fn check_update(schema: &Value, path: &str, old: Option<&Value>) -> Vec<Cause> {
    let mut checker = SchemaChecker { causes: Vec::new() };
    match schema.as_object() {
        Some(map) => checker.structural(map, path, SchemaLevel::Root, 0),
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
enum SchemaLevel {
    Root,
    Field,
    Item,
}

struct SchemaChecker {
    causes: Vec<Cause>,
}

impl SchemaChecker {
    fn forbid(&mut self, path: &str, key: &str, detail: &str) {
        self.causes.push(Cause::forbidden(format!("{path}.{key}"), detail));
    }

    fn structural(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        level: SchemaLevel,
        depth: usize,
    ) {
        if depth > SCHEMA_DEPTH_MAX || self.causes.len() >= CAUSES_MAX {
            return;
        }
        self.keywords(map, path);
        self.types(map, path, level);
        self.containers(map, path, level);
        self.lists(map, path);
        if level == SchemaLevel::Root {
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
            self.child(child, &child_path, SchemaLevel::Field, depth);
        }
        if let Some(items) = map.get("items") {
            if items.is_array() {
                self.forbid(path, "items", "items must be a schema object and not an array");
            } else {
                self.child(items, &format!("{path}.items"), SchemaLevel::Item, depth);
            }
        }
        if let Some(child @ Value::Object(_)) = map.get("additionalProperties") {
            self.child(child, &format!("{path}.additionalProperties"), SchemaLevel::Field, depth);
        }
    }

    fn child(&mut self, child: &Value, path: &str, level: SchemaLevel, depth: usize) {
        match child.as_object() {
            Some(map) => self.structural(map, path, level, depth + 1),
            None => self.causes.push(Cause::required(path, "must be an object")),
        }
    }

    /// Keywords that are refused in every position.
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

    fn types(&mut self, map: &Map<String, Value>, path: &str, level: SchemaLevel) {
        let kind = text(map, "type");
        let type_path = format!("{path}.type");
        let untyped_allowed = is_true(map, "x-kubernetes-int-or-string")
            || is_true(map, "x-kubernetes-preserve-unknown-fields");
        match kind {
            "" if level == SchemaLevel::Root => {
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
                    SchemaLevel::Item => "must not be empty for specified array items",
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
        } else if level == SchemaLevel::Root && kind != "object" {
            self.causes.push(Cause::invalid(type_path, &value, "must be object at the root"));
        } else if kind != "object" && is_true(map, "x-kubernetes-embedded-resource") {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.causes.push(Cause::invalid(type_path, &value, detail));
        } else if is_true(map, "x-kubernetes-int-or-string") {
            let detail = "must be empty if x-kubernetes-int-or-string is true";
            self.causes.push(Cause::invalid(type_path, &value, detail));
        }
    }

    fn containers(&mut self, map: &Map<String, Value>, path: &str, level: SchemaLevel) {
        let additional = map.get("additionalProperties");
        if additional.is_some() && level == SchemaLevel::Root {
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

    /// Metadata is the same for all kinds; a schema may only restrict the name.
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

    /// Defaults must be valid, and pruning must not change them.
    fn defaults(&mut self, schema: &Schema, id: NodeId, path: &str) {
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
