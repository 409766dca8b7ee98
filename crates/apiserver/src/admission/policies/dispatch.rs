//! Which policies a write concerns, and what their verdicts mean for it.

use std::collections::BTreeMap;

use api_meta::status::{Cause, Status};
use serde_json::{Value, json};

use super::policy::{Action, Binding, Policy, Rules, Verdict};
use super::{Table, params};
use crate::admission::expressions::{Facts, RequestAuthority};
use crate::admission::request::Request;
use crate::admission::rules::Objects;
use crate::admission::webhooks::{dispatch::seen_as, is_exempt};
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::resource::Resource;

/// Bytes of an audit annotation; the rest is cut off.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;
/// The audit annotation of failures that a binding only records.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";
/// What of a namespace's metadata expressions see.
const NAMESPACE_METADATA: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// Why a write is refused.
struct Denial {
    message: String,
    reason: String,
}

/// One write on its way through the policies.
struct Dispatch<'d> {
    registry: &'d Registry,
    catalog: &'d Catalog,
    request: &'d Request<'d>,
    objects: Objects<'d>,
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
        if is_exempt(request.resource) {
            return Ok(());
        }
        let catalog = registry.catalog();
        let objects = Objects { new: object, old };
        let denials = Vec::new();
        let mut dispatch = Dispatch { registry, catalog: &catalog, request, objects, denials };
        for policy in &self.policies {
            dispatch.ask(policy).await?;
        }
        let Some(first) = dispatch.denials.into_iter().next() else { return Ok(()) };
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

impl<'d> Dispatch<'d> {
    async fn ask(&mut self, policy: &Policy) -> Result<(), Status> {
        let rules = &*policy.rules;
        let matched =
            rules.constraints.matched(self.registry, self.catalog, self.request, self.objects);
        let seen = match matched.await {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(()),
            Err(status) => {
                self.misconfigured(rules, None, &status.message);
                return Ok(());
            }
        };
        let param_resource = match &rules.param_kind {
            None => None,
            Some((api_version, kind)) => {
                let found = params::resource_of_kind(self.catalog, api_version, kind);
                if found.is_none() {
                    let kind = params::told_kind(api_version, kind);
                    let text = format!("failed to find resource referenced by paramKind: '{kind}'");
                    self.misconfigured(rules, None, &text);
                    return Ok(());
                }
                found
            }
        };
        let mut annotations = BTreeMap::new();
        for binding in &policy.bindings {
            if let Some(resources) = &binding.resources {
                let matched =
                    resources.matched(self.registry, self.catalog, self.request, self.objects);
                match matched.await {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(status) => {
                        self.misconfigured(rules, Some(binding), &status.message);
                        continue;
                    }
                }
            }
            let resource = param_resource.map(|resource| &**resource);
            let namespace = self.request.namespace;
            match params::of(self.registry, rules, resource, binding, namespace).await {
                Ok(params) => {
                    self.judge(rules, binding, seen, &params, &mut annotations).await?;
                }
                Err(problem) => self.misconfigured(rules, Some(binding), &problem),
            }
        }
        for (key, texts) in annotations {
            self.request.options.audit.annotate(&format!("{}/{key}", rules.name), texts.join(", "));
        }
        Ok(())
    }

    async fn judge(
        &mut self,
        rules: &Rules,
        binding: &Binding,
        seen: &Resource,
        params: &[Value],
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), Status> {
        if params.is_empty() {
            return Ok(());
        }
        let request = self.request;
        let (new, old) = match seen_as(self.registry, request, seen, self.objects).await {
            Ok(seen) => seen,
            Err(status) => {
                let text = format!("failed to convert object version: {}", status.message);
                self.misconfigured(rules, Some(binding), &text);
                return Ok(());
            }
        };
        let namespace = self.namespace().await?;
        let attributes = request.attributes(seen);
        let authority = RequestAuthority::new(self.registry.authorizer(), request);
        for params in params {
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

    /// The namespace of the write as expressions see it; null outside of any.
    async fn namespace(&self) -> Result<Value, Status> {
        if self.request.namespace.is_empty() || self.request.is_namespace() {
            return Ok(Value::Null);
        }
        let namespaces = self.registry.find("", "namespaces");
        let namespaces = namespaces.ok_or_else(Status::unknown_resource)?;
        let found = self.registry.get(&namespaces, "", self.request.namespace).await?.value();
        let metadata = NAMESPACE_METADATA.iter().filter_map(|field| {
            Some(((*field).to_owned(), found["metadata"].get(*field)?.clone()))
        });
        let metadata: serde_json::Map<String, Value> = metadata.collect();
        Ok(json!({"metadata": metadata, "spec": found["spec"], "status": found["status"]}))
    }

    fn enforce(
        &mut self,
        rules: &Rules,
        binding: &Binding,
        verdict: Verdict,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        let (policy, name) = (&rules.name, &binding.name);
        let options = self.request.options;
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
    fn misconfigured(&mut self, rules: &Rules, binding: Option<&Binding>, problem: &str) {
        if rules.ignores_failure {
            return;
        }
        let what = if binding.is_none() { "policy" } else { "binding" };
        self.deny(rules, binding, &format!("failed to configure {what}: {problem}"), "");
    }

    fn deny(&mut self, rules: &Rules, binding: Option<&Binding>, message: &str, reason: &str) {
        let policy = &rules.name;
        let by = match binding {
            Some(binding) => format!("'{policy}' with binding '{}'", binding.name),
            None => format!("'{policy}'"),
        };
        let message = format!("ValidatingAdmissionPolicy {by} denied request: {message}");
        self.denials.push(Denial { message, reason: reason.to_owned() });
    }
}
