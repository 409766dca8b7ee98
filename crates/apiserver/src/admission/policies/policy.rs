//! One policy, ready to be asked, and the bindings that put it in force.

use std::sync::Arc;

use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use cel::Type;
use serde_json::Value;

use crate::admission::expressions::{Composition, Expression, Facts, Outcome, evaluate_all};
use crate::admission::match_conditions::MatchConditions;
use crate::admission::request::Request;
use crate::admission::rules::{self, Objects, Rule};
use crate::builtin::fields::{items, str_of};
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::resource::Resource;

/// Cost units that the validations of one policy may use for one binding and parameter, and its
/// audit annotations again.
const COST_MAX: u64 = 10_000_000;
/// Bytes of a message that an expression makes; a longer one is not told.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// A policy with its bindings.
pub(super) struct Policy {
    pub(super) rules: Arc<Rules>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// What a policy says.
pub(super) struct Rules {
    pub(super) name: String,
    /// An error lets the write pass.
    pub(super) ignores_failure: bool,
    pub(super) constraints: MatchResources,
    /// API version and kind of the parameters.
    pub(super) param_kind: Option<(String, String)>,
    scope: Composition,
    conditions: MatchConditions,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

struct Validation {
    source: String,
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

/// What a binding says.
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    /// `None` matches all that the policy matches.
    pub(super) resources: Option<MatchResources>,
    /// `paramRef` as it is written.
    pub(super) param_ref: Value,
    pub(super) actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Warn,
    Audit,
}

impl Action {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// Which writes a policy or binding is about.
pub(super) struct MatchResources {
    namespaces: LabelSelector,
    objects: LabelSelector,
    equivalent: bool,
    /// Empty for all.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
}

/// A validation that does not let the write pass.
pub(super) struct Failed {
    pub(super) index: usize,
    pub(super) message: String,
    /// Empty for one that could not be evaluated.
    pub(super) reason: String,
}

/// What a policy has to say about one write.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) failed: Vec<Failed>,
    /// Keys and texts for the audit log.
    pub(super) annotations: Vec<(String, String)>,
    /// Annotations that could not be made, which refuses the write.
    pub(super) problems: Vec<String>,
}

impl MatchResources {
    fn read(resources: &Value) -> Self {
        // One that is not there or cannot be read, which validation rules out, must not exempt anything.
        let selector = |field: &str| match &resources[field] {
            Value::Null => LabelSelector::default(),
            selector => LabelSelector::from_object(selector).unwrap_or_default(),
        };
        let rules = |field: &str| items(&resources[field]).iter().map(Rule::read).collect();
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            equivalent: resources["matchPolicy"] != "Exact",
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
        }
    }

    /// The resource that the write is to be looked at as, if it matches.
    ///
    /// # Errors
    /// Its namespace cannot be read.
    pub(super) async fn matched<'r>(
        &self,
        registry: &Registry,
        catalog: &'r Catalog,
        request: &Request<'r>,
        objects: Objects<'_>,
    ) -> Result<Option<&'r Resource>, Status> {
        let named = |rules| rules::named_by(rules, request, catalog, self.equivalent);
        if !rules::selects(&self.objects, objects) || named(&self.excluded).is_some() {
            return Ok(None);
        }
        let seen = match self.rules.is_empty() {
            true => Some(request.resource),
            false => named(&self.rules),
        };
        let Some(seen) = seen else { return Ok(None) };
        let inside = rules::in_namespaces(&self.namespaces, registry, request, objects).await?;
        Ok(inside.then_some(seen))
    }
}

impl Binding {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let action = |text: &Value| match str_of(text) {
            "Warn" => Action::Warn,
            "Audit" => Action::Audit,
            _ => Action::Deny,
        };
        Self {
            name: str_of(&object["metadata"]["name"]).to_owned(),
            policy: str_of(&spec["policyName"]).to_owned(),
            resources: spec.get("matchResources").map(MatchResources::read),
            param_ref: spec["paramRef"].clone(),
            actions: items(&spec["validationActions"]).iter().map(action).collect(),
        }
    }
}

impl Rules {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let param_kind = spec
            .get("paramKind")
            .map(|kind| (str_of(&kind["apiVersion"]).to_owned(), str_of(&kind["kind"]).to_owned()));
        let mut scope = Composition::new(param_kind.is_some());
        for variable in items(&spec["variables"]) {
            let (name, source) = (str_of(&variable["name"]), str_of(&variable["expression"]));
            if let Err(problem) = scope.add_variable(name, source) {
                tracing::warn!(name, problem, "a variable of an admission policy does not compile");
            }
        }
        let validation = |validation: &Value| Validation {
            source: str_of(&validation["expression"]).to_owned(),
            expression: scope.expression(str_of(&validation["expression"]), &[Type::Bool], true),
            message: str_of(&validation["message"]).trim().to_owned(),
            message_expression: match str_of(&validation["messageExpression"]) {
                "" => None,
                source => Some(scope.expression(source, &[Type::Text], false)),
            },
            reason: match str_of(&validation["reason"]) {
                "" => "Invalid".to_owned(),
                reason => reason.to_owned(),
            },
        };
        let annotation = |annotation: &Value| {
            let source = str_of(&annotation["valueExpression"]);
            let expression = scope.expression(source, &[Type::Text, Type::Null], true);
            (str_of(&annotation["key"]).to_owned(), expression)
        };
        Self {
            name: str_of(&object["metadata"]["name"]).to_owned(),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            constraints: MatchResources::read(&spec["matchConstraints"]),
            param_kind,
            conditions: MatchConditions::new(&spec["matchConditions"], &scope),
            validations: items(&spec["validations"]).iter().map(validation).collect(),
            annotations: items(&spec["auditAnnotations"]).iter().map(annotation).collect(),
            scope,
        }
    }

    /// What the policy says about a write. Ends soon: what it evaluates has a budget.
    pub(super) fn judge(&self, facts: Facts<'_>) -> Verdict {
        match self.try_judge(facts) {
            Ok(verdict) => verdict,
            Err(_) if self.ignores_failure => Verdict::default(),
            Err(message) => Verdict {
                failed: vec![Failed { index: 0, message, reason: String::new() }],
                ..Verdict::default()
            },
        }
    }

    fn try_judge(&self, facts: Facts<'_>) -> Result<Verdict, String> {
        if !self.conditions.is_empty() {
            // Conditions do not see the namespace.
            let facts = Facts { namespace: &Value::Null, ..facts };
            match self.conditions.hold(&self.scope.over(facts)) {
                Ok(true) => {}
                Ok(false) => return Ok(Verdict::default()),
                Err(_) if self.ignores_failure => return Ok(Verdict::default()),
                Err(problem) => return Err(problem),
            }
        }
        let expressions = self.validations.iter().map(|validation| Some(&validation.expression));
        let (outcomes, rest) = evaluate_all(&self.scope.over(facts), expressions, COST_MAX)?;
        let messages = self.validations.iter().map(|one| one.message_expression.as_ref());
        let messages = evaluate_all(&self.scope.over(facts), messages, rest);
        let mut verdict = Verdict::default();
        for (index, (validation, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            let failed = match (outcome, &messages) {
                (Some(Err(problem)), _) => self.fault(problem),
                (_, Err(problem)) => self.fault(format!("failed messageExpression: {problem}")),
                (Some(Ok(cel::Value::Bool(true))), _) => None,
                (_, Ok((messages, _))) => {
                    let made = messages.get(index).and_then(Option::as_ref);
                    Some((validation.told(made), validation.reason.clone()))
                }
            };
            let failed = failed.map(|(message, reason)| Failed { index, message, reason });
            verdict.failed.extend(failed);
        }
        let expressions = self.annotations.iter().map(|(_, expression)| Some(expression));
        let (outcomes, _) = evaluate_all(&self.scope.over(facts), expressions, COST_MAX)?;
        for ((key, _), outcome) in self.annotations.iter().zip(outcomes) {
            match outcome {
                Some(Ok(cel::Value::Text(text))) if !text.trim().is_empty() => {
                    verdict.annotations.push((key.clone(), text.trim().to_owned()));
                }
                Some(Err(problem)) if !self.ignores_failure => verdict.problems.push(problem),
                _ => {}
            }
        }
        Ok(verdict)
    }

    /// An error, where errors refuse a write.
    fn fault(&self, message: String) -> Option<(String, String)> {
        (!self.ignores_failure).then(|| (message, String::new()))
    }
}

impl Validation {
    /// What the asker is told: the text that its expression made, its own text, or what failed.
    fn told(&self, made: Option<&Outcome<'_>>) -> String {
        let made = match made {
            Some(Ok(cel::Value::Text(text))) => text.trim(),
            _ => "",
        };
        if !made.is_empty() && made.len() <= MESSAGE_BYTES_MAX && !made.contains('\n') {
            return made.to_owned();
        }
        match self.message.as_str() {
            "" => format!("failed expression: {}", self.source.trim()),
            message => message.to_owned(),
        }
    }
}
