//! The compiled schema: an arena of nodes, so that recursive types are simple and one schema is one
//! allocation.
//!
//! Descriptions and examples are dropped. The operations are inherent methods in their own modules.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::expressions::{Expressions, RuleSource};

/// Deepest nesting of a schema, in levels. Deeper schemas are refused.
pub const SCHEMA_DEPTH_MAX: usize = 256;
/// Number of nodes in one schema. The largest schemas in public use have about 20,000.
pub const SCHEMA_NODES_MAX: usize = 200_000;
/// Deepest nesting of a value that is inspected, in levels. Drover's parsers refuse deeper values.
pub const VALUE_DEPTH_MAX: usize = 1_000;
/// Number of violations that are reported for one object. The search ends there.
pub const CAUSES_MAX: usize = 256;

/// Index of a node in its arena.
pub(crate) type NodeId = u32;

/// A compiled schema. Cheap to clone. Immutable, so it can be shared between threads.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) nodes: Arc<[SchemaNode]>,
    pub(crate) root: NodeId,
    /// Whether the root is a whole object: `apiVersion`, `kind` and `metadata` need not be
    /// declared.
    pub(crate) resource: bool,
    /// Whether a node has validation rules in CEL.
    pub(crate) has_rules: bool,
    /// Whether a node has a default.
    pub(crate) has_defaults: bool,
    /// The compiled rules; `None` when there are none.
    pub(crate) expressions: Option<Arc<Expressions>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Additional {
    /// Other keys are unknown.
    #[default]
    None,
    /// `additionalProperties: true`.
    Any,
    Schema(NodeId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaNode {
    pub kind: Option<Type>,
    pub nullable: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub int_or_string: bool,
    pub list_type: ListType,
    pub additional: Additional,
    pub items: Option<NodeId>,
    /// Sorted by name.
    pub properties: Box<[(Box<str>, NodeId)]>,
    pub default: Option<Box<Value>>,
    /// Validation rules in CEL.
    pub validations: Box<[RuleSource]>,
    pub rules: Option<Box<ValueRules>>,
    /// Name of the node's definition, in schemas of built-in types.
    pub definition: Option<Box<str>>,
    /// The alternatives of a type with several JSON representations, distinguished by JSON type.
    /// Built-in types only.
    pub variants: Box<[NodeId]>,
}

/// Keywords that only validation uses. Most nodes have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueRules {
    pub required: Vec<Box<str>>,
    pub list_keys: Vec<Box<str>>,
    pub one_of_values: Vec<Value>,
    pub format: Option<Box<str>>,
    pub pattern: Option<(Box<str>, Regex)>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub all_of: Vec<NodeId>,
    pub any_of: Vec<NodeId>,
    pub one_of: Vec<NodeId>,
    pub not: Option<NodeId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub limit: serde_json::Number,
    pub exclusive: bool,
}

impl SchemaNode {
    pub(crate) fn property(&self, name: &str) -> Option<NodeId> {
        let found = self.properties.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(self.properties[found].1)
    }
    /// Whether the value is a null that this node does not allow.
    pub(crate) fn rejects_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

impl Schema {
    pub(crate) fn node(&self, id: NodeId) -> &SchemaNode {
        &self.nodes[id as usize]
    }
    /// The node that describes `value`: the alternative of its JSON type, else the node itself.
    pub(crate) fn node_for(&self, id: NodeId, value: &Value) -> &SchemaNode {
        let node = self.node(id);
        node.variants
            .iter()
            .map(|&variant| self.node(variant))
            .find(|variant| variant.kind.is_some_and(|kind| kind == type_of(value)))
            .unwrap_or(node)
    }
    /// Whether the schema has validation rules in CEL.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }
    /// Whether [`Schema::default`] can do more than remove nulls.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }
    /// The JSON type (such as `integer`) of the field at a path of property names; `None` when the
    /// schema does not declare it.
    pub fn type_at(&self, path: &[String]) -> Option<&'static str> {
        let mut id = self.root;
        for name in path {
            id = self.node(id).property(name)?;
        }
        self.node(id).kind.map(Type::name)
    }
}

/// The schema type of a JSON value. Null counts as an object: callers check for null before.
pub(crate) fn type_of(value: &Value) -> Type {
    match value {
        Value::Null | Value::Object(_) => Type::Object,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_i64() => Type::Integer,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array,
    }
}

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    if value.is_null() { "null" } else { type_of(value).name() }
}

/// `parent.key`, or `key` at the root.
pub(crate) fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}
