//! Checks whether the rules of a definition may be served: their syntax, their types, their costs.

use api_meta::status::Cause;
use cel::limits::{REQUEST_BYTES, RULE_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use serde_json::Value;

use super::{Expressions, Rule, RuleSource, field_path};
use crate::schema::{Additional, CAUSES_MAX, ListType, NodeId, Schema, SchemaNode, Type};

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
/// Number of rules that are named when the total cost is too high.
const BLAMED_MAX: usize = 4;

/// Returns the reasons why the rules of `schema`, which is at `path`, cannot be served. With
/// `unchanged` the schema is served already, and the limits of cost do not apply.
pub(crate) fn check(schema: &Schema, path: &str, unchanged: bool) -> Vec<Cause> {
    let Some(expressions) = schema.expressions.as_deref() else {
        return Vec::new();
    };
    let mut checker = RuleChecker {
        schema,
        expressions,
        unchanged,
        causes: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let context = NodeContext { path: path.to_owned(), times: Some(1), uncorrelated: None };
    checker.syntax(schema.root, path);
    if checker.causes.is_empty() {
        checker.node(schema.root, &context);
        checker.total_cost(path);
    }
    checker.causes.truncate(CAUSES_MAX);
    checker.causes
}

struct RuleChecker<'s> {
    schema: &'s Schema,
    expressions: &'s Expressions,
    unchanged: bool,
    causes: Vec<Cause>,
    total: u64,
    expensive: Vec<(u64, String)>,
}

/// A node of the schema.
struct NodeContext {
    path: String,
    /// How often the node can occur in one object; `None` when there is no limit.
    times: Option<u64>,
    /// The closest list above the node whose items cannot be matched with those of the old object.
    uncorrelated: Option<String>,
}

impl RuleChecker<'_> {
    fn children(&self, node: &SchemaNode, path: &str) -> Vec<(NodeId, String)> {
        let mut children: Vec<(NodeId, String)> = node
            .properties
            .iter()
            .map(|(name, id)| (*id, format!("{path}.properties[{name}]")))
            .collect();
        children.extend(node.items.map(|id| (id, format!("{path}.items"))));
        if let Additional::Schema(id) = node.additional {
            children.push((id, format!("{path}.additionalProperties")));
        }
        children
    }

    /// Checks that need no compiled rule.
    fn syntax(&mut self, id: NodeId, path: &str) {
        let node = self.schema.node(id);
        for (index, source) in node.validations.iter().enumerate() {
            self.form(id, source, &format!("{path}.x-kubernetes-validations[{index}]"));
        }
        for (child, path) in self.children(node, path) {
            self.syntax(child, &path);
        }
    }

    fn form(&mut self, id: NodeId, source: &RuleSource, path: &str) {
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let RuleSource { rule, message, message_expression, reason, field_path, .. } = source;
        let (trimmed, text) = (rule.trim(), message.trim());
        let field = format!("{path}.message");
        if trimmed.is_empty() {
            self.causes.push(Cause::required(format!("{path}.rule"), "rule is not specified"));
        } else if !message.is_empty() && text.is_empty() {
            let detail = "must be non-empty if specified";
            self.causes.push(Cause::invalid(field, &message.as_str().into(), detail));
        } else if breaks(text) {
            let detail = "must not contain line breaks";
            self.causes.push(Cause::invalid(field, &message.as_str().into(), detail));
        } else if breaks(trimmed) && text.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.causes.push(Cause::required(field, detail));
        }
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.causes.push(Cause::required(format!("{path}.messageExpression"), detail));
        }
        if let Some(reason) = reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            let field = format!("{path}.reason");
            self.causes.push(Cause::not_supported(field, &reason.into(), &REASONS));
        }
        if field_path.is_empty() {
            return;
        }
        let value = Value::from(field_path.as_str());
        let field = format!("{path}.fieldPath");
        let mut refuse = |detail: &str| {
            self.causes.push(Cause::invalid(field.as_str(), &value, detail));
        };
        if field_path.trim().is_empty() {
            refuse("must be non-empty if specified");
        }
        if breaks(field_path) {
            refuse("must not contain line breaks");
        }
        if field_path::normalize(self.schema, id, field_path).is_err() {
            refuse("must be a valid path");
        }
    }

    fn node(&mut self, id: NodeId, context: &NodeContext) {
        if self.causes.len() >= CAUSES_MAX || !self.expressions.below[id as usize] {
            return;
        }
        let node = self.schema.node(id);
        let uncorrelated = match (node.items, node.list_type) {
            (Some(_), ListType::Map) | (None, _) => context.uncorrelated.clone(),
            _ => Some(context.path.clone()),
        };
        let times = context.times.zip(elements(node)).map(|(a, b)| a.saturating_mul(b));
        for (child, path) in self.children(node, &context.path) {
            let uncorrelated = uncorrelated.clone();
            self.node(child, &NodeContext { path, times, uncorrelated });
        }
        if node.validations.is_empty() {
            return;
        }
        let path = format!("{}.x-kubernetes-validations", context.path);
        let Some(declared) = &self.expressions.declared[id as usize] else {
            let text = "Internal error: internal error: failed to construct type information for \
                        x-kubernetes-validations rules: unable to convert structural schema to CEL \
                        declarations";
            self.causes.push(Cause::new("InternalError", path, text));
            return;
        };
        let times = context.times.unwrap_or(REQUEST_BYTES / (declared.json_min + 1));
        for (index, rule) in self.expressions.rules[id as usize].iter().enumerate() {
            self.rule(rule, &format!("{path}[{index}]"), times, context);
        }
    }

    fn rule(&mut self, rule: &Rule, path: &str, times: u64, context: &NodeContext) {
        let field = format!("{path}.rule");
        match &rule.program {
            Ok(program) => {
                let cost = program.estimate().max.saturating_mul(times);
                self.cost("estimated rule cost", &field, cost);
            }
            Err(error) => {
                self.causes.push(rule.source.refuse(field.clone(), error));
            }
        }
        let message_field = format!("{path}.messageExpression");
        match &rule.message {
            // An error of the rule hides its other faults. Like upstream, its cost is not
            // multiplied.
            _ if rule.program.is_err() => {}
            Some(Ok(program)) => {
                let cost = program.estimate().max;
                self.cost("estimated messageExpression cost", &message_field, cost);
            }
            Some(Err(error)) => {
                self.causes.push(rule.source.refuse(message_field, error));
            }
            None => {}
        }
        match (rule.uses_old, &context.uncorrelated, rule.source.optional_old_self) {
            (true, Some(list), _) => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {list}"
                );
                let text = Value::from(rule.source.rule.as_str());
                self.causes.push(Cause::invalid(field, &text, &detail));
            }
            (false, _, Some(optional)) => {
                let detail = "may not be set if oldSelf is not used in rule";
                let field = format!("{path}.optionalOldSelf");
                self.causes.push(Cause::invalid(field, &optional.into(), detail));
            }
            _ => {}
        }
    }

    fn cost(&mut self, what: &str, field: &str, cost: u64) {
        if cost > RULE_ESTIMATE_MAX && !self.unchanged {
            self.causes.push(Cause::forbidden(field, &cost_text(what, cost, RULE_ESTIMATE_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        // Rules with less than a hundredth of the limit are not named.
        if cost >= SCHEMA_ESTIMATE_MAX / 100 {
            self.expensive.push((cost, field.to_owned()));
        }
    }

    fn total_cost(&mut self, path: &str) {
        if self.total <= SCHEMA_ESTIMATE_MAX || self.unchanged {
            return;
        }
        self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, field) in self.expensive.iter().take(BLAMED_MAX) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                          OpenAPIv3 schema";
            self.causes.push(Cause::forbidden(field.as_str(), detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = cost_text(what, self.total, SCHEMA_ESTIMATE_MAX);
        self.causes.push(Cause::forbidden(path, &detail));
    }
}

impl RuleSource {
    /// The rule as refusals print it: all fields of upstream's type, with the names in its source.
    fn to_refusal_text(&self) -> String {
        // Go's JSON escapes HTML characters.
        let text = |text: &str| {
            let text = Value::from(text).to_string();
            text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
        };
        let reason = self.reason.as_deref().map_or("null".to_owned(), text);
        let optional = self.optional_old_self.map_or("null".to_owned(), |set| set.to_string());
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\
             \"FieldPath\":{},\"OptionalOldSelf\":{optional}}}",
            text(&self.rule),
            text(&self.message),
            text(&self.message_expression),
            text(&self.field_path),
        )
    }

    /// A refusal of the rule as a whole, reported at one of its fields.
    fn refuse(&self, field: String, detail: &str) -> Cause {
        let text = format!("Invalid value: {}: {detail}", self.to_refusal_text());
        Cause::new("FieldValueInvalid", field, text)
    }
}

/// How often the children of a node can occur in it; `None` when there is no limit.
fn elements(node: &SchemaNode) -> Option<u64> {
    let rules = node.rules.as_deref();
    match node.kind {
        Some(Type::Object) if node.additional != Additional::None => rules?.max_properties,
        Some(Type::Array) => rules?.max_items,
        _ => Some(1),
    }
}

fn cost_text(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
