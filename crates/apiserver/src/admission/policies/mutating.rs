//! MutatingAdmissionPolicies: how they change an object before its kind validates it.
//!
//! Policies are asked by name. All of them are matched with the object as it came; each then changes
//! what those before it left. A policy that wants it is asked again, see
//! [`Reinvocation`](crate::admission::reinvocation::Reinvocation). Upstream counts an object as
//! changed as soon as any mutation succeeded, so that such a policy is asked twice by itself too.

mod patch;

use std::time::Instant;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use serde_json::Value;

pub(super) use self::patch::PatchType;
use self::patch::{Fault, Mutation};
use super::Table;
use super::dispatch::{Dispatch, Misconfigured};
use super::policy::{Binding, Terms};
use crate::admission::expressions::{Facts, RequestAuthority};
use crate::admission::forms::{check_readable, conform, decoded, has_own_kind, seen_as};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::rules::Objects;
use crate::admission::webhooks::is_exempt;
use crate::fields::items;
use crate::registry::Registry;
use crate::registry::admission::{Operation, Request};
use crate::resource::Resource;

/// What a policy says.
pub(super) struct Rules {
    terms: Terms,
    mutations: Vec<Mutation>,
    /// Wants to be asked again when the object changes.
    reinvoked: bool,
}

/// Who is asked: a policy, through a binding, with the parameter of this namespace and name.
pub(crate) type Asked = (String, String, (String, String));

/// A policy to be asked about a write.
struct Invocation<'p, 'd> {
    rules: &'p Rules,
    binding: &'p Binding,
    seen: &'d Resource,
    params: Value,
}

/// What one invocation came to.
#[derive(Default)]
struct Outcome {
    /// The object in the version that the policy saw, if any mutation succeeded.
    object: Option<Value>,
    problems: Vec<String>,
}

/// A write that errors refuse.
#[derive(Default)]
struct Refusals(Vec<(String, &'static str)>);

impl Rules {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let terms = Terms::read(object);
        let mutation = |mutation: &Value| Mutation::read(mutation, &terms.scope);
        let mutations = items(&spec["mutations"]).iter().map(mutation).collect();
        Self { mutations, reinvoked: spec["reinvocationPolicy"] == "IfNeeded", terms }
    }
}

impl Table {
    /// Lets the policies change `object`. It is given back in the form that its kind reads;
    /// validation is still to come. Says whether any mutation succeeded.
    ///
    /// # Errors
    /// A policy or mutation failed where that refuses the write, or what came of one cannot be read.
    pub(crate) async fn mutate(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocation<Asked>,
    ) -> Result<bool, Status> {
        let is_delete = request.operation == Operation::Delete;
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
                    Err(fault) => refusals.misconfigured(&rules.terms, &fault),
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
            let before = decoded(request, object.clone());
            let mut current = before.clone();
            for one in &invocations {
                changed |=
                    one.ask(&dispatch, &namespace, &mut current, rounds, &mut refusals).await?;
            }
            if changed {
                rounds.changed();
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
    /// Lets the policy change the object. Says whether any mutation succeeded.
    async fn ask(
        &self,
        dispatch: &Dispatch<'_>,
        namespace: &Value,
        object: &mut Value,
        rounds: &mut Reinvocation<Asked>,
        refusals: &mut Refusals,
    ) -> Result<bool, Status> {
        let Dispatch { registry, request, objects, .. } = *dispatch;
        let terms = &self.rules.terms;
        let shown = Objects { new: Some(object), old: objects.old };
        let (new, old) = match seen_as(registry, request, self.seen, shown).await {
            Ok(seen) => seen,
            Err(status) => {
                let fault = Misconfigured { binding: None, problem: status.message };
                refusals.misconfigured(terms, &fault);
                return Ok(false);
            }
        };
        let asked = self.name();
        let (before, seen_old) = (new.into_owned(), old.into_owned());
        let outcome = self.run(dispatch, [&before, &seen_old], namespace, rounds.wants(&asked))?;
        let Some(outcome) = outcome else { return Ok(false) };
        for problem in &outcome.problems {
            refusals.failed(terms, self.binding, problem);
        }
        let succeeded = outcome.object.is_some();
        if let Some(mut patched) = outcome.object.filter(|patched| *patched != before) {
            if self.seen.api_version() != request.resource.api_version() && !has_own_kind(request) {
                registry.convert(request.resource, &mut patched).await?;
                conform(request, request.resource, &mut patched);
            }
            rounds.changed();
            *object = patched;
        }
        if self.rules.reinvoked {
            rounds.asked(asked);
        }
        Ok(succeeded)
    }

    fn name(&self) -> Asked {
        let params = (self.params.namespace().to_owned(), self.params.name().to_owned());
        (self.rules.terms.name.clone(), self.binding.name.clone(), params)
    }

    /// Runs the mutations on the object as the policy sees it; `None` when they do not apply.
    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        [object, old]: [&Value; 2],
        namespace: &Value,
        wanted: bool,
    ) -> Result<Option<Outcome>, Status> {
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
        let mut outcome = Outcome::default();
        match terms.apply(facts) {
            Ok(true) if wanted => {}
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
            let patched = mutation.patched(&terms.scope, facts, request, self.seen);
            let result = match &patched {
                Ok(_) => "no_error",
                Err(fault) => fault.kind(),
            };
            let names = [terms.name.as_str(), self.binding.name.as_str(), result];
            registry.metrics().mutation(names, began.elapsed());
            match patched {
                Ok(mut patched) => {
                    check_readable(request, self.seen, &patched)?;
                    conform(request, self.seen, &mut patched);
                    outcome.object = Some(patched);
                }
                Err(Fault::Failed(problem)) => outcome.problems.push(problem),
                Err(Fault::Unreadable(status)) => return Err(*status),
            }
        }
        Ok(Some(outcome))
    }
}

impl Refusals {
    fn misconfigured(&mut self, terms: &Terms, fault: &Misconfigured<'_>) {
        self.add(terms, fault.binding, &fault.told(), "Forbidden");
    }

    fn failed(&mut self, terms: &Terms, binding: &Binding, problem: &str) {
        self.add(terms, Some(binding), problem, "Invalid");
    }

    fn add(
        &mut self,
        terms: &Terms,
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

    /// The first refusal is the answer, with all of them as its causes.
    fn into_result(self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        let Some((first, reason)) = self.0.first() else { return Ok(()) };
        let mut status = request.forbidden(Some(object), first);
        status.message = first.clone();
        status.reason = (*reason).into();
        let causes = self.0.into_iter().map(|(message, _)| Cause::new("", "", message));
        Err(status.causes(causes.collect()))
    }
}
