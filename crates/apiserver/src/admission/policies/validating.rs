//! ValidatingAdmissionPolicies: how they are evaluated for a write, and how their results are
//! enforced.

use std::collections::BTreeMap;

use api_meta::status::{Cause, Status};
use cel::Type;
use serde_json::{Value, json};

use super::PolicyTable;
use super::dispatch::{Dispatch, Invocation};
use super::policy::{Binding, BoundPolicy, PolicyTerms, ValidationAction};
use crate::admission::expressions::{
    EvaluationResult, Expression, Facts, RequestAuthority, evaluate_all,
};
use crate::admission::objects::convert_objects;
use crate::admission::rules::Objects;
use crate::admission::webhooks::is_exempt;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;

/// The cost units that the validations of one policy may use for one binding and parameter. Its
/// audit annotations may use as many again.
const COST_MAX: u64 = 10_000_000;
/// The size of a message from an expression, in bytes; a longer one is not used.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// The size of an audit annotation, in bytes; the rest is cut off.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;
/// The audit annotation of failures that a binding only records.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A parsed policy.
pub(super) struct ValidatingPolicy {
    terms: PolicyTerms,
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

/// A validation that failed.
struct FailedValidation {
    index: usize,
    message: String,
    /// Empty for a validation that could not be evaluated.
    reason: String,
}

/// The result of a policy for one write.
#[derive(Default)]
struct PolicyEvaluation {
    failed: Vec<FailedValidation>,
    /// Keys and texts for the audit log.
    annotations: Vec<(String, String)>,
    /// Errors of annotations, which refuse the write.
    problems: Vec<String>,
}

/// Why a write is refused.
struct Denial {
    message: String,
    reason: String,
}

/// One write that is evaluated by the policies, and the refusals so far.
struct PolicyReview<'d> {
    dispatch: Dispatch<'d>,
    denials: Vec<Denial>,
}

impl PolicyTable {
    /// Evaluates the policies for an object that is otherwise ready to be written. Adds warnings
    /// and audit annotations to the request.
    ///
    /// # Errors
    /// The first refusal, in the order of the policies and their bindings, by name.
    pub(crate) async fn validate(
        &self,
        registry: &Registry,
        request: &AdmissionRequest<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if self.validating.is_empty() || is_exempt(request.resource) {
            return Ok(());
        }
        let catalog = registry.catalog();
        let objects = Objects { new: object, old };
        let dispatch = Dispatch { registry, catalog: &catalog, request, objects };
        let mut review = PolicyReview { dispatch, denials: Vec::new() };
        for policy in &self.validating {
            review.evaluate_policy(policy).await?;
        }
        let Some(first) = review.denials.into_iter().next() else { return Ok(()) };
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

impl PolicyReview<'_> {
    async fn evaluate_policy(
        &mut self,
        policy: &BoundPolicy<ValidatingPolicy>,
    ) -> Result<(), Status> {
        let rules = &*policy.rules;
        let mut annotations = BTreeMap::new();
        for found in self.dispatch.invocations(&rules.terms, &policy.bindings).await {
            match found {
                Ok(invocation) => self.evaluate(rules, &invocation, &mut annotations).await?,
                Err(error) => self.deny_misconfigured(rules, error.binding, &error.message()),
            }
        }
        let audit = &self.dispatch.request.options.audit;
        for (key, texts) in annotations {
            audit.annotate(&format!("{}/{key}", rules.terms.name), texts.join(", "));
        }
        Ok(())
    }

    async fn evaluate(
        &mut self,
        rules: &ValidatingPolicy,
        invocation: &Invocation<'_, '_>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), Status> {
        let Dispatch { registry, request, objects, .. } = self.dispatch;
        let (binding, seen) = (invocation.binding, invocation.seen);
        let (new, old) = match convert_objects(registry, request, seen, objects).await {
            Ok(seen) => seen,
            Err(status) => {
                let text = format!(
                    "failed to configure binding: failed to convert object version: {}",
                    status.message
                );
                self.deny_misconfigured(rules, Some(binding), &text);
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
            let evaluation = rules.evaluate(facts);
            self.enforce(rules, binding, evaluation, annotations);
        }
        Ok(())
    }

    fn enforce(
        &mut self,
        rules: &ValidatingPolicy,
        binding: &Binding,
        evaluation: PolicyEvaluation,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        let (policy, name) = (&rules.terms.name, &binding.name);
        let options = self.dispatch.request.options;
        for failed in evaluation.failed {
            for action in &binding.actions {
                match action {
                    ValidationAction::Deny => {
                        self.deny(rules, Some(binding), &failed.message, &failed.reason);
                    }
                    ValidationAction::Warn => options.warnings.add(vec![format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                         '{name}': {}",
                        failed.message
                    )]),
                    ValidationAction::Audit => {
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
        for (key, mut text) in evaluation.annotations {
            text.truncate(text.floor_char_boundary(ANNOTATION_BYTES_MAX));
            let texts = annotations.entry(key).or_default();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        for problem in evaluation.problems {
            self.deny(rules, Some(binding), &problem, "");
        }
    }

    /// Denies the write for a policy that cannot be applied, unless it ignores failures.
    fn deny_misconfigured(
        &mut self,
        rules: &ValidatingPolicy,
        binding: Option<&Binding>,
        text: &str,
    ) {
        if !rules.terms.ignores_failure {
            self.deny(rules, binding, text, "");
        }
    }

    fn deny(
        &mut self,
        rules: &ValidatingPolicy,
        binding: Option<&Binding>,
        message: &str,
        reason: &str,
    ) {
        let policy = &rules.terms.name;
        let by = match binding {
            Some(binding) => format!("'{policy}' with binding '{}'", binding.name),
            None => format!("'{policy}'"),
        };
        let message = format!("ValidatingAdmissionPolicy {by} denied request: {message}");
        self.denials.push(Denial { message, reason: reason.to_owned() });
    }
}

impl ValidatingPolicy {
    /// Parses and compiles a policy that passed validation.
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let terms = PolicyTerms::read(object);
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

    /// Evaluates the policy for a write. The evaluation has a budget, so it ends soon.
    fn evaluate(&self, facts: Facts<'_>) -> PolicyEvaluation {
        match self.try_evaluate(facts) {
            Ok(evaluation) => evaluation,
            Err(_) if self.terms.ignores_failure => PolicyEvaluation::default(),
            Err(message) => PolicyEvaluation {
                failed: vec![FailedValidation { index: 0, message, reason: String::new() }],
                ..PolicyEvaluation::default()
            },
        }
    }

    fn try_evaluate(&self, facts: Facts<'_>) -> Result<PolicyEvaluation, String> {
        if !self.terms.conditions_match(facts)? {
            return Ok(PolicyEvaluation::default());
        }
        let scope = &self.terms.scope;
        let expressions = self.validations.iter().map(|validation| Some(&validation.expression));
        let (results, rest) = evaluate_all(&scope.over(facts), expressions, COST_MAX)?;
        let messages = self.validations.iter().map(|one| one.message_expression.as_ref());
        let messages = evaluate_all(&scope.over(facts), messages, rest);
        let mut evaluation = PolicyEvaluation::default();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let failed = match (result, &messages) {
                (Some(Err(problem)), _) => self.error_denial(problem),
                (_, Err(problem)) => {
                    self.error_denial(format!("failed messageExpression: {problem}"))
                }
                (Some(Ok(cel::Value::Bool(true))), _) => None,
                (_, Ok((messages, _))) => {
                    let made = messages.get(index).and_then(Option::as_ref);
                    Some((validation.failure_message(made), validation.reason.clone()))
                }
            };
            let failed =
                failed.map(|(message, reason)| FailedValidation { index, message, reason });
            evaluation.failed.extend(failed);
        }
        let expressions = self.annotations.iter().map(|(_, expression)| Some(expression));
        let (results, _) = evaluate_all(&scope.over(facts), expressions, COST_MAX)?;
        for ((key, _), result) in self.annotations.iter().zip(results) {
            match result {
                Some(Ok(cel::Value::Text(text))) if !text.trim().is_empty() => {
                    evaluation.annotations.push((key.clone(), text.trim().to_owned()));
                }
                Some(Err(problem)) if !self.terms.ignores_failure => {
                    evaluation.problems.push(problem)
                }
                _ => {}
            }
        }
        Ok(evaluation)
    }

    /// The message and reason of an error; `None` when the policy ignores failures.
    fn error_denial(&self, message: String) -> Option<(String, String)> {
        (!self.terms.ignores_failure).then(|| (message, String::new()))
    }
}

impl Validation {
    /// The message of a refusal: the text of the message expression, the policy's own text, or the
    /// failed expression.
    fn failure_message(&self, made: Option<&EvaluationResult<'_>>) -> String {
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
