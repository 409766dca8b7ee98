//! ValidatingAdmissionPolicies: what they say about a write, and what that means for it.

use std::collections::BTreeMap;

use api_meta::status::{Cause, Status};
use cel::Type;
use serde_json::{Value, json};

use super::Table;
use super::dispatch::{Dispatch, Invocation};
use super::policy::{Action, Binding, Policy, Terms};
use crate::admission::expressions::{Expression, Facts, Outcome, RequestAuthority, evaluate_all};
use crate::admission::forms::seen_as;
use crate::admission::rules::Objects;
use crate::admission::webhooks::is_exempt;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::Request;

/// Cost units that the validations of one policy may use for one binding and parameter, and its
/// audit annotations again.
const COST_MAX: u64 = 10_000_000;
/// Bytes of a message that an expression makes; a longer one is not told.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// Bytes of an audit annotation; the rest is cut off.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;
/// The audit annotation of failures that a binding only records.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// What a policy says.
pub(super) struct Rules {
    terms: Terms,
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

/// A validation that does not let the write pass.
struct Failed {
    index: usize,
    message: String,
    /// Empty for one that could not be evaluated.
    reason: String,
}

/// What a policy has to say about one write.
#[derive(Default)]
struct Verdict {
    failed: Vec<Failed>,
    /// Keys and texts for the audit log.
    annotations: Vec<(String, String)>,
    /// Annotations that could not be made, which refuses the write.
    problems: Vec<String>,
}

/// Why a write is refused.
struct Denial {
    message: String,
    reason: String,
}

/// One write on its way through the policies.
struct Judgement<'d> {
    dispatch: Dispatch<'d>,
    denials: Vec<Denial>,
}

impl Table {
    /// Asks the policies about an object that is otherwise ready to be written.
    ///
    /// # Errors
    /// The first refusal, in the order of the policies' names and their bindings'.
    pub(crate) async fn validate(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if self.validating.is_empty() || is_exempt(request.resource) {
            return Ok(());
        }
        let catalog = registry.catalog();
        let objects = Objects { new: object, old };
        let dispatch = Dispatch { registry, catalog: &catalog, request, objects };
        let mut judgement = Judgement { dispatch, denials: Vec::new() };
        for policy in &self.validating {
            judgement.ask(policy).await?;
        }
        let Some(first) = judgement.denials.into_iter().next() else { return Ok(()) };
        let mut status = request.forbidden(object, &first.message);
        let (code, reason) = match first.reason.as_str() {
            "Forbidden" => (403, "Forbidden"),
            "Unauthorized" => (401, "Unauthorized"),
            "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
            _ => (422, "Invalid"),
        };
        status.code = code;
        status.reason = reason.into();
        Err(status.causes(vec![Cause::new("", "", first.message)]))
    }
}

impl Judgement<'_> {
    async fn ask(&mut self, policy: &Policy<Rules>) -> Result<(), Status> {
        let rules = &*policy.rules;
        let mut annotations = BTreeMap::new();
        for found in self.dispatch.invocations(&rules.terms, &policy.bindings).await {
            match found {
                Ok(invocation) => self.judge(rules, &invocation, &mut annotations).await?,
                Err(fault) => self.misconfigured(rules, fault.binding, &fault.told()),
            }
        }
        let audit = &self.dispatch.request.options.audit;
        for (key, texts) in annotations {
            audit.annotate(&format!("{}/{key}", rules.terms.name), texts.join(", "));
        }
        Ok(())
    }

    async fn judge(
        &mut self,
        rules: &Rules,
        invocation: &Invocation<'_, '_>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), Status> {
        let Dispatch { registry, request, objects, .. } = self.dispatch;
        let (binding, seen) = (invocation.binding, invocation.seen);
        let (new, old) = match seen_as(registry, request, seen, objects).await {
            Ok(seen) => seen,
            Err(status) => {
                let text = format!(
                    "failed to configure binding: failed to convert object version: {}",
                    status.message
                );
                self.misconfigured(rules, Some(binding), &text);
                return Ok(());
            }
        };
        let namespace = self.dispatch.namespace().await?;
        let attributes = request.attributes(seen);
        let authority = RequestAuthority::new(registry.authorizer(), request);
        for params in &invocation.params {
            let facts = Facts {
                object: &new,
                old_object: &old,
                request: &attributes,
                namespace: &namespace,
                params,
                authority: &authority,
            };
            let verdict = rules.judge(facts);
            self.enforce(rules, binding, verdict, annotations);
        }
        Ok(())
    }

    fn enforce(
        &mut self,
        rules: &Rules,
        binding: &Binding,
        verdict: Verdict,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        let (policy, name) = (&rules.terms.name, &binding.name);
        let options = self.dispatch.request.options;
        for failed in verdict.failed {
            for action in &binding.actions {
                match action {
                    Action::Deny => {
                        self.deny(rules, Some(binding), &failed.message, &failed.reason);
                    }
                    Action::Warn => options.warnings.add(vec![format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                         '{name}': {}",
                        failed.message
                    )]),
                    Action::Audit => {
                        let actions: Vec<&str> =
                            binding.actions.iter().map(|action| action.as_str()).collect();
                        let record = json!([{
                            "message": failed.message, "policy": policy, "binding": name,
                            "expressionIndex": failed.index, "validationActions": actions,
                        }]);
                        options.audit.annotate(FAILURE_ANNOTATION, record.to_string());
                    }
                }
            }
        }
        for (key, mut text) in verdict.annotations {
            text.truncate(text.floor_char_boundary(ANNOTATION_BYTES_MAX));
            let texts = annotations.entry(key).or_default();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        for problem in verdict.problems {
            self.deny(rules, Some(binding), &problem, "");
        }
    }

    /// It cannot be found out whether the policy holds.
    fn misconfigured(&mut self, rules: &Rules, binding: Option<&Binding>, text: &str) {
        if !rules.terms.ignores_failure {
            self.deny(rules, binding, text, "");
        }
    }

    fn deny(&mut self, rules: &Rules, binding: Option<&Binding>, message: &str, reason: &str) {
        let policy = &rules.terms.name;
        let by = match binding {
            Some(binding) => format!("'{policy}' with binding '{}'", binding.name),
            None => format!("'{policy}'"),
        };
        let message = format!("ValidatingAdmissionPolicy {by} denied request: {message}");
        self.denials.push(Denial { message, reason: reason.to_owned() });
    }
}

impl Rules {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let terms = Terms::read(object);
        let scope = &terms.scope;
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
        let validations = items(&spec["validations"]).iter().map(validation).collect();
        let annotations = items(&spec["auditAnnotations"]).iter().map(annotation).collect();
        Self { terms, validations, annotations }
    }

    /// What the policy says about a write. Ends soon: what it evaluates has a budget.
    fn judge(&self, facts: Facts<'_>) -> Verdict {
        match self.try_judge(facts) {
            Ok(verdict) => verdict,
            Err(_) if self.terms.ignores_failure => Verdict::default(),
            Err(message) => Verdict {
                failed: vec![Failed { index: 0, message, reason: String::new() }],
                ..Verdict::default()
            },
        }
    }

    fn try_judge(&self, facts: Facts<'_>) -> Result<Verdict, String> {
        if !self.terms.apply(facts)? {
            return Ok(Verdict::default());
        }
        let scope = &self.terms.scope;
        let expressions = self.validations.iter().map(|validation| Some(&validation.expression));
        let (outcomes, rest) = evaluate_all(&scope.over(facts), expressions, COST_MAX)?;
        let messages = self.validations.iter().map(|one| one.message_expression.as_ref());
        let messages = evaluate_all(&scope.over(facts), messages, rest);
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
        let (outcomes, _) = evaluate_all(&scope.over(facts), expressions, COST_MAX)?;
        for ((key, _), outcome) in self.annotations.iter().zip(outcomes) {
            match outcome {
                Some(Ok(cel::Value::Text(text))) if !text.trim().is_empty() => {
                    verdict.annotations.push((key.clone(), text.trim().to_owned()));
                }
                Some(Err(problem)) if !self.terms.ignores_failure => verdict.problems.push(problem),
                _ => {}
            }
        }
        Ok(verdict)
    }

    /// An error, where errors refuse a write.
    fn fault(&self, message: String) -> Option<(String, String)> {
        (!self.terms.ignores_failure).then(|| (message, String::new()))
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
