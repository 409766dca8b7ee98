//! Validation rules in CEL (`x-kubernetes-validations`): compilation, checks and evaluation.
//!
//! The language itself is in the crate `cel`. This module defines what a rule means: which values
//! it can read, when it can read the old value, and how its result is reported.

mod check;
mod declare;
mod evaluate;
mod field_path;

pub(crate) use check::check;

use std::sync::Arc;

use cel::{CompileError, Declared, Input, Program};
use serde_json::{Map, Value};

use crate::schema::{Additional, NodeId, Schema};

/// The name of the type of the rule's value in type errors.
const SELF_TYPE: &str = "selfType";

/// The value before an update.
const OLD_SELF: &str = "oldSelf";

/// Rules of all nodes of a schema.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    /// By node; empty for most.
    rules: Vec<Vec<Rule>>,
    /// The declaration of each node for expressions; `None` when expressions cannot access it.
    declared: Vec<Option<Arc<Declared>>>,
    /// By node: whether it or a node below it has rules.
    below: Vec<bool>,
}

/// A rule as the definition contains it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleSource {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// A compiled rule, or the errors of its compilation.
#[derive(Debug)]
struct Rule {
    source: RuleSource,
    program: Result<Program, String>,
    message: Option<Result<Program, String>>,
    uses_old: bool,
    /// The field that violations name, relative to the rule's node.
    field: Option<String>,
}

impl RuleSource {
    fn read(json: &Value) -> Self {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: json["reason"].as_str().map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: json["optionalOldSelf"].as_bool(),
        }
    }
    /// The rules of a schema node.
    pub(crate) fn read_all(map: &Map<String, Value>) -> Box<[Self]> {
        let list = map.get("x-kubernetes-validations").and_then(Value::as_array);
        list.into_iter().flatten().map(Self::read).collect()
    }
    /// The message of a violation when no expression provides one.
    fn text(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.rule.trim()),
            message => message.to_owned(),
        }
    }
    /// The text that identifies the rule in messages about the rule itself.
    fn name(&self) -> &str {
        match self.message.trim() {
            "" => self.rule.trim(),
            message => message,
        }
    }
}

impl Schema {
    /// The declaration of whole objects of this schema for expressions. Types are named after
    /// `name`. `None` for recursive types, which CEL cannot declare.
    pub fn declaration(&self, name: &str) -> Option<Arc<Declared>> {
        if self.contains_itself(self.root, &mut Vec::new()) {
            return None;
        }
        let mut declare =
            declare::Declare { schema: self, declared: None, untyped_is_anything: true };
        declare.node(self.root, name, false)
    }

    fn contains_itself(&self, id: NodeId, above: &mut Vec<NodeId>) -> bool {
        if above.contains(&id) {
            return true;
        }
        above.push(id);
        let node = self.node(id);
        let properties = node.properties.iter().map(|(_, child)| *child);
        let values = match node.additional {
            Additional::Schema(child) => Some(child),
            _ => None,
        };
        let mut below = properties.chain(node.items).chain(values);
        let found = below.any(|child| self.contains_itself(child, above));
        above.pop();
        found
    }
}

impl Expressions {
    pub(crate) fn new(schema: &Schema) -> Self {
        let count = schema.nodes.len();
        let mut expressions =
            Self { rules: Vec::new(), declared: vec![None; count], below: vec![false; count] };
        expressions.rules.resize_with(count, Vec::new);
        let mut declare = declare::Declare {
            schema,
            declared: Some(&mut expressions.declared),
            untyped_is_anything: false,
        };
        declare.node(schema.root, SELF_TYPE, schema.resource);
        expressions.compile(schema, schema.root);
        expressions
    }

    /// Compiles the rules of a node and of all below it. Returns whether there are any.
    fn compile(&mut self, schema: &Schema, id: NodeId) -> bool {
        let node = schema.node(id);
        let mut found = !node.validations.is_empty();
        for (_, child) in &node.properties {
            found |= self.compile(schema, *child);
        }
        if let Some(items) = node.items {
            found |= self.compile(schema, items);
        }
        if let Additional::Schema(child) = node.additional {
            found |= self.compile(schema, child);
        }
        if !node.validations.is_empty() && self.declared[id as usize].is_some() {
            // Types are named after the rule's node.
            let whole = if id == schema.root { schema.resource } else { node.embedded };
            let mut declare =
                declare::Declare { schema, declared: None, untyped_is_anything: false };
            if let Some(declared) = declare.node(id, SELF_TYPE, whole) {
                let rules = node.validations.iter().filter(|source| !source.rule.trim().is_empty());
                self.rules[id as usize] =
                    rules.map(|source| Rule::new(schema, id, source, &declared)).collect();
            }
        }
        self.below[id as usize] = found;
        found
    }
}

impl Rule {
    fn new(schema: &Schema, id: NodeId, source: &RuleSource, declared: &Arc<Declared>) -> Self {
        let inputs = [
            Input { name: "self", declared: declared.clone(), optional: false },
            Input {
                name: OLD_SELF,
                declared: declared.clone(),
                optional: source.optional_old_self == Some(true),
            },
        ];
        let program = Program::compile(&source.rule, &inputs);
        let uses_old = match &program {
            Ok(program) => program.uses(OLD_SELF) && *program.result_type() == cel::Type::Bool,
            Err(error) => error.uses(OLD_SELF),
        };
        let program = require_type(program, &cel::Type::Bool);
        let expression = &source.message_expression;
        let message = (!expression.is_empty()).then(|| {
            let program = Program::compile(expression, &inputs);
            require_type(program, &cel::Type::Text).map_err(|error| {
                match error.strip_prefix("cel expression must") {
                    Some(_) => "messageExpression must evaluate to a string".to_owned(),
                    None => {
                        let error = error.strip_prefix("program ").unwrap_or(&error);
                        format!("messageExpression {error}")
                    }
                }
            })
        });
        let field = (!source.field_path.is_empty())
            .then(|| field_path::normalize(schema, id, &source.field_path).ok())
            .flatten();
        Self { source: source.clone(), program, message, uses_old, field }
    }
}

/// The program if its result has the expected type; else the reason for refusal.
fn require_type(
    program: Result<Program, CompileError>,
    expected: &cel::Type,
) -> Result<Program, String> {
    let program = program.map_err(|error| error.to_string())?;
    if program.result_type() == expected {
        Ok(program)
    } else {
        Err(format!("cel expression must evaluate to a {expected}"))
    }
}
