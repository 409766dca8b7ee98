//! MutatingAdmissionPolicies: how they change an object before its kind validates it.
//!
//! Policies are evaluated in the order of their names. All of them are matched against the object
//! of the request. Each then changes what the earlier ones left. A policy may request a second
//! evaluation, see [`Reinvocation`](crate::admission::reinvocation::Reinvocation). Like in
//! kube-apiserver, an object counts as changed as soon as any mutation succeeded, so such a policy
//! is evaluated twice even if no other changed the object.

mod patch;

use std::time::Instant;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use serde_json::Value;

pub(super) use self::patch::PatchType;
use self::patch::{Mutation, MutationError};
use super::PolicyTable;
use super::dispatch::{Dispatch, Misconfigured};
use super::policy::{Binding, PolicyTerms};
use crate::admission::expressions::{Facts, RequestAuthority};
use crate::admission::objects::{
    check_readable, conform, convert_objects, decode_body, has_own_kind,
};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::rules::Objects;
use crate::admission::webhooks::is_exempt;
use crate::fields::items;
use crate::registry::Registry;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::resource::Resource;

/// A parsed policy.
pub(super) struct MutatingPolicy {
    terms: PolicyTerms,
    mutations: Vec<Mutation>,
    /// Is evaluated again when the object changes: `reinvocationPolicy: IfNeeded`.
    is_reinvoked: bool,
}

/// Identifies an invocation: the policy, the binding, and the namespace and name of the parameter.
pub(crate) type InvocationKey = (String, String, (String, String));

/// A policy that is evaluated for a write.
struct Invocation<'p, 'd> {
    rules: &'p MutatingPolicy,
    binding: &'p Binding,
    seen: &'d Resource,
    params: Value,
}

/// The result of one invocation.
#[derive(Default)]
struct MutationOutcome {
    /// The object in the version that the policy matched, if any mutation succeeded.
    object: Option<Value>,
    problems: Vec<String>,
}

/// The errors that refuse a write, with their reasons.
#[derive(Default)]
struct Refusals(Vec<(String, &'static str)>);

impl MutatingPolicy {
    /// Parses and compiles a policy that passed validation.
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let terms = PolicyTerms::read(object);
        let mutation = |mutation: &Value| Mutation::read(mutation, &terms.scope);
        let mutations = items(&spec["mutations"]).iter().map(mutation).collect();
        Self { mutations, is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded", terms }
    }
}

impl PolicyTable {
    /// Lets the policies change `object`, which is returned as its kind decodes it, before
    /// validation. Returns whether any mutation succeeded.
    ///
    /// # Errors
    /// A policy or mutation failed and its failure policy is `Fail`, or a changed object cannot be
    /// decoded.
    pub(crate) async fn mutate(
        &self,
        registry: &Registry,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocation<InvocationKey>,
    ) -> Result<bool, Status> {
        let is_delete = request.operation == AdmissionOperation::Delete;
        if self.mutating.is_empty() || is_delete || is_exempt(request.resource) {
            return Ok(false);
        }
        let catalog = registry.catalog();
        let objects = Objects { new: Some(object), old };
        let dispatch = Dispatch { registry, catalog: &catalog, request, objects };
        let mut refusals = Refusals::default();
        let mut invocations = Vec::new();
        for policy in &self.mutating {
            let rules = &*policy.rules;
            for found in dispatch.invocations(&rules.terms, &policy.bindings).await {
                match found {
                    Err(error) => refusals.add_misconfigured(&rules.terms, &error),
                    Ok(found) => invocations.extend(found.params.into_iter().map(|params| {
                        Invocation { rules, binding: found.binding, seen: found.seen, params }
                    })),
                }
            }
        }
        let mut working = None;
        let mut changed = false;
        if !invocations.is_empty() {
            let namespace = dispatch.namespace().await?;
            let before = decode_body(request, object.clone());
            let mut current = before.clone();
            for one in &invocations {
                changed |=
                    one.invoke(&dispatch, &namespace, &mut current, rounds, &mut refusals).await?;
            }
            if changed {
                rounds.mark_changed();
            }
            working = (current != before).then_some(current);
        }
        refusals.into_result(request, object)?;
        if let Some(working) = working {
            *object = working;
        }
        Ok(changed)
    }
}

impl Invocation<'_, '_> {
    /// Lets the policy change the object. Returns whether any mutation succeeded.
    async fn invoke(
        &self,
        dispatch: &Dispatch<'_>,
        namespace: &Value,
        object: &mut Value,
        rounds: &mut Reinvocation<InvocationKey>,
        refusals: &mut Refusals,
    ) -> Result<bool, Status> {
        let Dispatch { registry, request, objects, .. } = *dispatch;
        let terms = &self.rules.terms;
        let current = Objects { new: Some(object), old: objects.old };
        let (new, old) = match convert_objects(registry, request, self.seen, current).await {
            Ok(seen) => seen,
            Err(status) => {
                let error = Misconfigured { binding: None, problem: status.message };
                refusals.add_misconfigured(terms, &error);
                return Ok(false);
            }
        };
        let key = self.key();
        let (before, seen_old) = (new.into_owned(), old.into_owned());
        let outcome =
            self.run(dispatch, [&before, &seen_old], namespace, rounds.should_invoke(&key))?;
        let Some(outcome) = outcome else { return Ok(false) };
        for problem in &outcome.problems {
            refusals.add_failed(terms, self.binding, problem);
        }
        let succeeded = outcome.object.is_some();
        if let Some(mut patched) = outcome.object.filter(|patched| *patched != before) {
            if self.seen.api_version() != request.resource.api_version() && !has_own_kind(request) {
                registry.convert(request.resource, &mut patched).await?;
                conform(request, request.resource, &mut patched);
            }
            rounds.mark_changed();
            *object = patched;
        }
        if self.rules.is_reinvoked {
            rounds.record(key);
        }
        Ok(succeeded)
    }

    fn key(&self) -> InvocationKey {
        let params = (self.params.namespace().to_owned(), self.params.name().to_owned());
        (self.rules.terms.name.clone(), self.binding.name.clone(), params)
    }

    /// Runs the mutations on the object in the version that the policy matched; `None` when they do
    /// not apply.
    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        [object, old]: [&Value; 2],
        namespace: &Value,
        is_due: bool,
    ) -> Result<Option<MutationOutcome>, Status> {
        let Dispatch { registry, request, .. } = *dispatch;
        let terms = &self.rules.terms;
        let attributes = request.attributes(self.seen);
        let authority = RequestAuthority::new(registry.authorizer(), request);
        let facts = Facts {
            object,
            old_object: old,
            request: &attributes,
            namespace,
            params: &self.params,
            authority: &authority,
        };
        let mut outcome = MutationOutcome::default();
        match terms.conditions_match(facts) {
            Ok(true) if is_due => {}
            Ok(_) => return Ok(None),
            Err(problem) => {
                outcome.problems.push(problem);
                return Ok(Some(outcome));
            }
        }
        for mutation in &self.rules.mutations {
            let current = outcome.object.as_ref().unwrap_or(object);
            let began = Instant::now();
            let facts = Facts { object: current, ..facts };
            let patched = mutation.patch_object(&terms.scope, facts, request, self.seen);
            let result = match &patched {
                Ok(_) => "no_error",
                Err(error) => error.kind(),
            };
            let names = [terms.name.as_str(), self.binding.name.as_str(), result];
            registry.metrics().record_mutation(names, began.elapsed());
            match patched {
                Ok(mut patched) => {
                    check_readable(request, self.seen, &patched)?;
                    conform(request, self.seen, &mut patched);
                    outcome.object = Some(patched);
                }
                Err(MutationError::Failed(problem)) => outcome.problems.push(problem),
                Err(MutationError::Unreadable(status)) => return Err(*status),
            }
        }
        Ok(Some(outcome))
    }
}

impl Refusals {
    fn add_misconfigured(&mut self, terms: &PolicyTerms, error: &Misconfigured<'_>) {
        self.add(terms, error.binding, &error.message(), "Forbidden");
    }

    fn add_failed(&mut self, terms: &PolicyTerms, binding: &Binding, problem: &str) {
        self.add(terms, Some(binding), problem, "Invalid");
    }

    fn add(
        &mut self,
        terms: &PolicyTerms,
        binding: Option<&Binding>,
        problem: &str,
        reason: &'static str,
    ) {
        if terms.ignores_failure {
            return;
        }
        let by = match binding {
            Some(binding) => format!("'{}' with binding '{}'", terms.name, binding.name),
            None => format!("{:?}", terms.name),
        };
        self.0.push((format!("policy {by} denied request: {problem}"), reason));
    }

    /// Returns the first refusal, with all of them as its causes.
    fn into_result(self, request: &AdmissionRequest<'_>, object: &Value) -> Result<(), Status> {
        let Some((first, reason)) = self.0.first() else { return Ok(()) };
        let mut status = request.forbidden(Some(object), first);
        status.message = first.clone();
        status.reason = (*reason).into();
        let causes = self.0.into_iter().map(|(message, _)| Cause::new("", "", message));
        Err(status.causes(causes.collect()))
    }
}
