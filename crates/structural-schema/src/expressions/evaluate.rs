//! Evaluates rules on an object, in upstream's order: a node's own rules before those below it.

use api_meta::status::Cause;
use cel::limits::{CALL_COST_MAX, MESSAGE_BYTES_MAX, OBJECT_COST_MAX};
use cel::{EvalError, Program};
use serde_json::Value;

use super::{Expressions, OLD_SELF, Rule};
use crate::list;
use crate::schema::{
    Additional, CAUSES_MAX, ListType, NodeId, Schema, SchemaNode, Type, VALUE_DEPTH_MAX, join,
};

/// The field of causes at the root.
const ROOT: &str = "<nil>";

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The old value, and whether it is known.
#[derive(Clone, Copy)]
struct Before<'a> {
    /// The old value that rules can read.
    old: Option<&'a Value>,
    /// The new and old value for ratcheting: violations in unchanged parts are tolerated.
    current: Option<(&'a Value, &'a Value)>,
    /// The closest part above whose old value is known, with that value.
    parent: Option<(&'a Value, &'a Value)>,
}

impl<'a> Before<'a> {
    fn is_unchanged(&self) -> bool {
        self.current.or(self.parent).is_some_and(|(new, old)| new == old)
    }
    /// The context of a part whose old value is `old`.
    fn child(&self, new: &'a Value, old: Option<&'a Value>, shown: Option<&'a Value>) -> Self {
        match self.current {
            None => Self { old: shown, ..*self },
            Some(whole) => {
                Self { old: shown, current: old.map(|old| (new, old)), parent: Some(whole) }
            }
        }
    }
}

/// The budget is used up: no more rules are evaluated.
struct Exhausted;

struct Run<'s> {
    schema: &'s Schema,
    expressions: &'s Expressions,
    budget: u64,
    causes: Vec<Cause>,
}

impl Expressions {
    /// The violations of all rules. `old` is the object before an update.
    pub(crate) fn validate(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        let mut run =
            Run { schema, expressions: self, budget: OBJECT_COST_MAX, causes: Vec::new() };
        let current = old.map(|old| (value, old));
        // When the budget is used up, the last cause says so.
        let _ = run.node(schema.root, value, "", Before { old, current, parent: None }, 0);
        run.causes
    }
}

impl<'s> Run<'s> {
    fn node<'a>(
        &mut self,
        id: NodeId,
        value: &'a Value,
        path: &str,
        before: Before<'a>,
        depth: usize,
    ) -> Result<(), Exhausted> {
        let below = self.expressions.below[id as usize];
        if !below || value.is_null() || depth > VALUE_DEPTH_MAX || self.causes.len() >= CAUSES_MAX {
            return Ok(());
        }
        let node = self.schema.node(id);
        // A part that no expression can access has no rules that could be evaluated.
        let expressions = self.expressions;
        let rules = &expressions.rules[id as usize];
        // Messages can read the old value too if one of the rules does.
        let old = before.old.filter(|_| rules.iter().any(|rule| rule.uses_old));
        for rule in rules {
            self.rule(rule, node, value, path, Before { old, ..before })?;
        }
        match value {
            Value::Object(fields) => {
                for (key, child) in fields {
                    let old = before.old.and_then(|old| old.get(key));
                    let current = before.current.and_then(|(_, old)| old.get(key));
                    let (id, node_path) = match (node.property(key), node.additional) {
                        (Some(id), _) => (id, join(path, key)),
                        (None, Additional::Schema(id)) => (id, format!("{path}[{key}]")),
                        _ => continue,
                    };
                    self.node(id, child, &node_path, before.child(child, current, old), depth + 1)?;
                }
            }
            Value::Array(items) => {
                let Some(id) = node.items else {
                    return Ok(());
                };
                for (index, item) in items.iter().enumerate() {
                    let old = before.old.and_then(|old| self.counterpart(node, old, item));
                    let current =
                        before.current.and_then(|(_, old)| self.counterpart(node, old, item));
                    let node_path = format!("{path}[{index}]");
                    self.node(id, item, &node_path, before.child(item, current, old), depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The old item with the same key. Items of other lists have no identity.
    fn counterpart<'a>(
        &self,
        node: &SchemaNode,
        old: &'a Value,
        item: &Value,
    ) -> Option<&'a Value> {
        if node.list_type != ListType::Map {
            return None;
        }
        let key = list::item_key(self.schema, node, item)?;
        let mut items = old.as_array()?.iter();
        items.find(|before| list::item_key(self.schema, node, before).as_ref() == Some(&key))
    }

    fn rule<'a>(
        &mut self,
        rule: &'s Rule,
        node: &SchemaNode,
        value: &'a Value,
        path: &str,
        before: Before<'a>,
    ) -> Result<(), Exhausted> {
        let node_path = if path.is_empty() { ROOT } else { path };
        let kind = Value::from(node.kind.map_or("", Type::name));
        if self.budget == 0 {
            self.causes.push(Cause::invalid(node_path, &kind, OUT_OF_BUDGET));
            return Err(Exhausted);
        }
        let program = match &rule.program {
            Ok(program) => program,
            Err(error) => {
                let text = format!("rule compile error: {error}");
                self.causes.push(Cause::invalid(node_path, &kind, &text));
                return Ok(());
            }
        };
        let optional = rule.source.optional_old_self == Some(true);
        if rule.uses_old && before.old.is_none() && !optional {
            return Ok(());
        }
        let values = [Some(value), before.old.or((!optional).then_some(value))];
        let (result, cost) = evaluate(program, &values);
        if cost > self.budget {
            self.causes.push(Cause::invalid(node_path, &kind, OUT_OF_BUDGET));
            return Err(Exhausted);
        }
        self.budget -= cost;
        let name = rule.source.name();
        let text = match result {
            Ok(RuleResult::Holds) => return Ok(()),
            Ok(RuleResult::Violated) => {
                return self.report_violation(rule, node, &values, node_path, before);
            }
            Err(EvalError::TooCostly) => format!(
                "'{}': no further validation rules will be run due to call cost exceeds limit for \
                 rule: {name}",
                EvalError::TooCostly
            ),
            Err(EvalError::Failed(error)) if error.starts_with("no such overload") => format!(
                "'{error}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {name}"
            ),
            Err(EvalError::Failed(error)) => format!("{error} evaluating rule: {name}"),
        };
        let exhausted = text.contains("call cost exceeds limit");
        self.causes.push(Cause::invalid(node_path, &kind, &text));
        if exhausted { Err(Exhausted) } else { Ok(()) }
    }

    fn report_violation(
        &mut self,
        rule: &'s Rule,
        node: &SchemaNode,
        values: &[Option<&Value>],
        node_path: &str,
        before: Before<'_>,
    ) -> Result<(), Exhausted> {
        let mut detail = rule.source.text();
        let mut end = Ok(());
        // An absent or optional old value is not available to a message.
        let optional = rule.source.optional_old_self == Some(true);
        let blind = before.old.is_none() || optional;
        if let Some(Ok(program)) = &rule.message
            && !(blind && program.uses(OLD_SELF))
        {
            match self.message(program, values, &rule.source.message_expression) {
                Ok(Some(text)) => detail = text,
                Ok(None) => {}
                Err(text) => {
                    detail = text;
                    end = Err(Exhausted);
                }
            }
        }
        // An invalid value may stay as long as it does not change.
        if !rule.uses_old && before.is_unchanged() {
            return end;
        }
        let field = match (&rule.field, node_path) {
            (Some(field), ROOT) => field.clone(),
            (Some(field), node_path) => format!("{node_path}.{field}"),
            (None, node_path) => node_path.to_owned(),
        };
        if end.is_err() {
            let kind = Value::from(node.kind.map_or("", Type::name));
            self.causes.push(Cause::invalid(field, &kind, &detail));
            return end;
        }
        let shown = values[0].filter(|_| !matches!(node.kind, Some(Type::Object | Type::Array)));
        self.causes.push(cause(rule.source.reason.as_deref(), &field, shown, &detail));
        Ok(())
    }

    /// The message of a message expression; `None` when its result is no valid message.
    ///
    /// # Errors
    /// The text of the violation when the budget is used up.
    fn message(
        &mut self,
        program: &Program,
        values: &[Option<&Value>],
        source: &str,
    ) -> Result<Option<String>, String> {
        let values: Vec<Option<&Value>> = values.to_vec();
        let (result, cost) = program.evaluate(&values, CALL_COST_MAX);
        if cost > self.budget {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no \
                        further validation rules will be run"
                    .to_owned(),
            );
        }
        self.budget -= cost;
        match result {
            Ok(cel::Value::Text(text)) => {
                let text = text.trim();
                let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX;
                Ok((fits && !text.contains('\n')).then(|| text.to_owned()))
            }
            Err(EvalError::TooCostly) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {source:?}"
            )),
            _ => Ok(None),
        }
    }
}

enum RuleResult {
    Holds,
    Violated,
}

fn evaluate(program: &Program, values: &[Option<&Value>]) -> (Result<RuleResult, EvalError>, u64) {
    let (result, cost) = program.evaluate(values, CALL_COST_MAX);
    let result = result.map(|value| match value {
        cel::Value::Bool(true) => RuleResult::Holds,
        _ => RuleResult::Violated,
    });
    (result, cost)
}

/// A violation with the reason of its rule. The values of objects and lists are not included.
fn cause(reason: Option<&str>, field: &str, shown: Option<&Value>, detail: &str) -> Cause {
    match (reason, shown) {
        (Some("FieldValueForbidden"), _) => Cause::forbidden(field, detail),
        (Some("FieldValueRequired"), _) => Cause::required(field, detail),
        (Some("FieldValueDuplicate"), Some(value)) => Cause::duplicate(field, value),
        (Some("FieldValueDuplicate"), None) => {
            Cause::new("FieldValueDuplicate", field, "Duplicate value")
        }
        (_, Some(value)) => Cause::invalid(field, value, detail),
        (_, None) => Cause::new("FieldValueInvalid", field, format!("Invalid value: {detail}")),
    }
}
