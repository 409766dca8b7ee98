//! Validation rules in CEL (`x-kubernetes-validations`): compiling, checking and evaluating them.
//!
//! The language itself is `cel`'s. Here is what a rule means: which values it sees, where it may
//! look at the old value, and how its verdict is told.

mod check;
mod declare;
mod evaluate;
mod field_path;

pub(crate) use check::check;

use std::sync::Arc;

use cel::{CompileError, Declared, Input, Program};
use serde_json::{Map, Value};

use crate::schema::{Additional, Id, Schema};

/// What type errors call the type of the value that a rule is about.
const SELF_TYPE: &str = "selfType";

/// The value before an update.
const OLD_SELF: &str = "oldSelf";

/// Rules of all nodes of a schema.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    /// By node; empty for most.
    rules: Vec<Vec<Rule>>,
    /// What expressions see of each node; `None` for what they cannot see.
    declared: Vec<Option<Arc<Declared>>>,
    /// Whether a node or one below it has rules.
    below: Vec<bool>,
}

/// A rule as the definition says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// A rule made ready. What could not be compiled says why.
#[derive(Debug)]
struct Rule {
    source: Source,
    program: Result<Program, String>,
    message: Option<Result<Program, String>>,
    uses_old: bool,
    /// The field that is blamed, relative to the node of the rule.
    field: Option<String>,
}

impl Source {
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
    /// What a violation says when no expression makes the message.
    fn text(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.rule.trim()),
            message => message.to_owned(),
        }
    }
    /// What names the rule in messages about itself.
    fn name(&self) -> &str {
        match self.message.trim() {
            "" => self.rule.trim(),
            message => message,
        }
    }
}

impl Schema {
    /// What expressions about whole objects of this schema see, where types are named after `name`.
    /// `None` for types that contain themselves.
    pub fn declared(&self, name: &str) -> Option<Arc<Declared>> {
        if self.contains_itself(self.root, &mut Vec::new()) {
            return None;
        }
        let mut declare =
            declare::Declare { schema: self, declared: None, untyped_is_anything: true };
        declare.node(self.root, name, false)
    }

    fn contains_itself(&self, id: Id, above: &mut Vec<Id>) -> bool {
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

    /// Whether the node or one below it has rules.
    fn compile(&mut self, schema: &Schema, id: Id) -> bool {
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
            // Types are named after the node that the rules are about.
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
    fn new(schema: &Schema, id: Id, source: &Source, declared: &Arc<Declared>) -> Self {
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
        let program = typed(program, &cel::Type::Bool);
        let expression = &source.message_expression;
        let message = (!expression.is_empty()).then(|| {
            let program = Program::compile(expression, &inputs);
            typed(program, &cel::Type::Text).map_err(|error| {
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

/// The program, when its result is of the wanted type; else why there is none.
fn typed(program: Result<Program, CompileError>, wanted: &cel::Type) -> Result<Program, String> {
    let program = program.map_err(|error| error.to_string())?;
    if program.result_type() == wanted {
        Ok(program)
    } else {
        Err(format!("cel expression must evaluate to a {wanted}"))
    }
}
