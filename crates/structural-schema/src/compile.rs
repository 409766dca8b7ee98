//! Compiles schema JSON into the arena.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expressions::{Expressions, RuleSource};
use crate::schema::{
    Additional, Bound, ListType, NodeId, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, Schema, SchemaNode,
    Type, ValueRules,
};
use cel::pattern;

/// Why a schema cannot be compiled. [`check`](crate::check()) reports these errors beforehand, with
/// their paths.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("schema at \"{0}\" is not an object")]
    NotAnObject(String),
    #[error("schema has an unknown type \"{kind}\" at \"{path}\"")]
    UnknownType { path: String, kind: String },
    #[error("schema has an invalid pattern at \"{path}\"")]
    Pattern { path: String, source: Box<regex::Error> },
    #[error("schema refers to \"{0}\", which is not among its definitions")]
    UnknownReference(String),
    #[error("schema is nested deeper than {SCHEMA_DEPTH_MAX} levels")]
    TooDeep,
    #[error("schema has more than {SCHEMA_NODES_MAX} nodes")]
    TooLarge,
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a custom resource. Its root is a whole object:
    /// `apiVersion`, `kind` and `metadata` need not be declared.
    ///
    /// # Errors
    /// Only for schemas that [`check`](crate::check()) refuses. The caller reports its causes,
    /// which have paths.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Compiler::new(None).finish(schema, true)
    }

    /// Compiles the JSON schema of a built-in type. References are resolved in `definitions` by
    /// their last path segment; types may be recursive. Objects without declared fields and untyped
    /// nodes allow any value.
    ///
    /// # Errors
    /// A reference has no definition, or the schema exceeds [`SCHEMA_DEPTH_MAX`] or
    /// [`SCHEMA_NODES_MAX`]. The document is at fault.
    pub fn from_json_schema(
        schema: &Value,
        definitions: &Map<String, Value>,
    ) -> Result<Self, SchemaError> {
        Compiler::new(Some(definitions)).finish(schema, false)
    }
}

struct Compiler<'a> {
    nodes: Vec<SchemaNode>,
    /// `Some` for built-in types.
    definitions: Option<&'a Map<String, Value>>,
    compiled: HashMap<&'a str, NodeId>,
    has_rules: bool,
    has_defaults: bool,
}

impl<'a> Compiler<'a> {
    fn new(definitions: Option<&'a Map<String, Value>>) -> Self {
        Self {
            nodes: Vec::new(),
            definitions,
            compiled: HashMap::new(),
            has_rules: false,
            has_defaults: false,
        }
    }

    fn finish(mut self, schema: &'a Value, resource: bool) -> Result<Schema, SchemaError> {
        let root = self.schema(schema, "", 0)?;
        let mut schema = Schema {
            nodes: Arc::from(self.nodes),
            root,
            resource,
            has_rules: self.has_rules,
            has_defaults: self.has_defaults,
            expressions: None,
        };
        if schema.has_rules {
            schema.expressions = Some(Arc::new(Expressions::new(&schema)));
        }
        Ok(schema)
    }

    fn schema(&mut self, json: &'a Value, path: &str, depth: usize) -> Result<NodeId, SchemaError> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        // In JSON schema, `true` allows any value.
        if json == &Value::Bool(true) && self.definitions.is_some() {
            return self.push(SchemaNode {
                preserve_unknown: true,
                nullable: true,
                ..SchemaNode::default()
            });
        }
        let Some(map) = json.as_object() else {
            return Err(SchemaError::NotAnObject(path.to_owned()));
        };
        if let Some(reference) = self.reference(map) {
            return self.definition(reference, depth);
        }
        let id = self.push(SchemaNode::default())?;
        let node = self.build(map, path, depth)?;
        self.nodes[id as usize] = node;
        Ok(id)
    }

    fn push(&mut self, node: SchemaNode) -> Result<NodeId, SchemaError> {
        if self.nodes.len() >= SCHEMA_NODES_MAX {
            return Err(SchemaError::TooLarge);
        }
        self.nodes.push(node);
        Ok((self.nodes.len() - 1) as NodeId)
    }

    /// The definition of a node that is a reference: `$ref`, alone or as the only part of `allOf`.
    fn reference(&self, map: &'a Map<String, Value>) -> Option<&'a str> {
        self.definitions?;
        let direct = map.get("$ref").and_then(Value::as_str);
        let wrapped = || match map.get("allOf")?.as_array()?.as_slice() {
            [only] if !map.contains_key("type") => only.get("$ref")?.as_str(),
            _ => None,
        };
        direct.or_else(wrapped)
    }

    fn definition(&mut self, reference: &'a str, depth: usize) -> Result<NodeId, SchemaError> {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        if let Some(&id) = self.compiled.get(name) {
            return Ok(id);
        }
        let definitions = self.definitions.expect("references are only followed with definitions");
        let unknown = || SchemaError::UnknownReference(reference.to_owned());
        let map = definitions.get(name).and_then(Value::as_object).ok_or_else(unknown)?;
        // Registered before it is built, so that a type may contain itself.
        let id = self.push(SchemaNode::default())?;
        self.compiled.insert(name, id);
        let mut node = self.build(map, name, depth + 1)?;
        node.definition = Some(name.into());
        self.nodes[id as usize] = node;
        Ok(id)
    }

    fn build(
        &mut self,
        map: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<SchemaNode, SchemaError> {
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let mut node = SchemaNode {
            kind: parse_type(map, path)?,
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map,
                _ => ListType::Atomic,
            },
            default: map.get("default").map(|value| Box::new(value.clone())),
            ..SchemaNode::default()
        };
        let mut properties = Vec::new();
        for (name, child) in map.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let id = self.schema(child, &format!("{path}.properties[{name}]"), depth + 1)?;
            properties.push((Box::from(name.as_str()), id));
        }
        properties.sort();
        node.properties = properties.into();
        if let Some(items) = map.get("items") {
            node.items = Some(self.schema(items, &format!("{path}.items"), depth + 1)?);
        }
        node.additional = match map.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Additional::None,
            Some(Value::Bool(true)) => Additional::Any,
            Some(child) => {
                let path = format!("{path}.additionalProperties");
                Additional::Schema(self.schema(child, &path, depth + 1)?)
            }
        };
        self.has_defaults |= node.default.is_some();
        if self.definitions.is_none() {
            node.validations = RuleSource::read_all(map);
            self.has_rules |= !node.validations.is_empty();
        }
        if self.definitions.is_some() {
            self.loosen(&mut node, map, path, depth)?;
        } else {
            node.rules = self.rules(map, path, depth)?;
        }
        Ok(node)
    }

    /// Applies the semantics of JSON schemas of built-in types: a node that declares nothing allows
    /// any value, and keywords do not validate values (the kinds' own code does that).
    fn loosen(
        &mut self,
        node: &mut SchemaNode,
        map: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if let Some(variants) = map.get("oneOf").and_then(Value::as_array) {
            let ids: Result<Vec<NodeId>, _> =
                variants.iter().map(|variant| self.schema(variant, path, depth + 1)).collect();
            node.variants = ids?.into();
        }
        let declares = !node.properties.is_empty() || node.additional != Additional::None;
        if !declares && matches!(node.kind, None | Some(Type::Object)) {
            node.preserve_unknown = true;
            node.kind = None;
        }
        if let Some(format) = map.get("format").and_then(Value::as_str) {
            node.rules =
                Some(Box::new(ValueRules { format: Some(format.into()), ..ValueRules::default() }));
        }
        Ok(())
    }

    fn rules(
        &mut self,
        map: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<Box<ValueRules>>, SchemaError> {
        const KEYWORDS: [&str; 18] = [
            "required",
            "x-kubernetes-list-map-keys",
            "enum",
            "format",
            "pattern",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        if !KEYWORDS.iter().any(|keyword| map.contains_key(*keyword)) {
            return Ok(None);
        }
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        let number = |key: &str| map.get(key).and_then(Value::as_f64);
        Ok(Some(Box::new(ValueRules {
            required: strings(map, "required"),
            list_keys: strings(map, "x-kubernetes-list-map-keys"),
            one_of_values: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            format: map.get("format").and_then(Value::as_str).map(Box::from),
            pattern: compile_pattern(map, path)?,
            minimum: bound(map, "minimum", "exclusiveMinimum"),
            maximum: bound(map, "maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: self.list(map, "allOf", path, depth)?,
            any_of: self.list(map, "anyOf", path, depth)?,
            one_of: self.list(map, "oneOf", path, depth)?,
            not: match map.get("not") {
                Some(child) => Some(self.schema(child, &format!("{path}.not"), depth + 1)?),
                None => None,
            },
        })))
    }

    fn list(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        path: &str,
        depth: usize,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let list = map.get(key).and_then(Value::as_array).into_iter().flatten();
        list.enumerate()
            .map(|(index, child)| self.schema(child, &format!("{path}.{key}[{index}]"), depth + 1))
            .collect()
    }
}

fn parse_type(map: &Map<String, Value>, path: &str) -> Result<Option<Type>, SchemaError> {
    match map.get("type").and_then(Value::as_str) {
        None | Some("") => Ok(None),
        Some(name) => Type::parse(name).map(Some).ok_or_else(|| SchemaError::UnknownType {
            path: path.to_owned(),
            kind: name.to_owned(),
        }),
    }
}

fn strings(map: &Map<String, Value>, key: &str) -> Vec<Box<str>> {
    let list = map.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(Box::from).collect()
}

fn bound(map: &Map<String, Value>, key: &str, exclusive: &str) -> Option<Bound> {
    let limit = map.get(key)?.as_number()?.clone();
    let exclusive = map.get(exclusive).and_then(Value::as_bool).unwrap_or(false);
    Some(Bound { limit, exclusive })
}

fn compile_pattern(
    map: &Map<String, Value>,
    path: &str,
) -> Result<Option<(Box<str>, regex::Regex)>, SchemaError> {
    let Some(text) = map.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let regex = pattern::compile(text).map_err(|source| SchemaError::Pattern {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(Some((text.into(), regex)))
}
