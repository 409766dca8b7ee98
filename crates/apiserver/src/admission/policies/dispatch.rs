//! Which policies a write matches, through which of their bindings, and with which parameters.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use super::params;
use super::policy::{Binding, PolicyTerms};
use crate::admission::rules::Objects;
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;
use crate::resource::Resource;

/// The metadata fields of a namespace that expressions can read.
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

/// One write that is matched against the policies.
#[derive(Clone, Copy)]
pub(super) struct Dispatch<'d> {
    pub(super) registry: &'d Registry,
    pub(super) catalog: &'d Catalog,
    pub(super) request: &'d AdmissionRequest<'d>,
    pub(super) objects: Objects<'d>,
}

/// A binding through which a policy matches the write.
pub(super) struct Invocation<'p, 'd> {
    pub(super) binding: &'p Binding,
    /// The resource that the rule matched, to which the objects are converted.
    pub(super) seen: &'d Resource,
    /// The policy is evaluated once with each parameter; null is no parameter.
    pub(super) params: Vec<Value>,
}

/// A policy or binding that cannot be applied to the write.
pub(super) struct Misconfigured<'p> {
    pub(super) binding: Option<&'p Binding>,
    pub(super) problem: String,
}

impl Misconfigured<'_> {
    /// The message of refusals.
    pub(super) fn message(&self) -> String {
        let what = if self.binding.is_none() { "policy" } else { "binding" };
        format!("failed to configure {what}: {}", self.problem)
    }
}

impl<'d> Dispatch<'d> {
    /// Matches the policy against the write, in the order of its bindings.
    pub(super) async fn invocations<'p>(
        &self,
        terms: &PolicyTerms,
        bindings: &'p [Arc<Binding>],
    ) -> Vec<Result<Invocation<'p, 'd>, Misconfigured<'p>>> {
        let Self { registry, catalog, request, objects } = *self;
        let policy_error = |problem| vec![Err(Misconfigured { binding: None, problem })];
        let seen = match terms.matched_resource(registry, catalog, request, objects).await {
            Ok(Some(seen)) => seen,
            Ok(None) => return Vec::new(),
            Err(status) => return policy_error(status.message),
        };
        let param_resource = match &terms.param_kind {
            None => None,
            Some((api_version, kind)) => {
                let found = params::resource_of_kind(catalog, api_version, kind);
                if found.is_none() {
                    let kind = params::format_kind(api_version, kind);
                    return policy_error(format!(
                        "failed to find resource referenced by paramKind: '{kind}'"
                    ));
                }
                found
            }
        };
        let mut found = Vec::new();
        for binding in bindings.iter().map(|binding| &**binding) {
            let failed = |problem| Misconfigured { binding: Some(binding), problem };
            match binding.matches(registry, catalog, request, objects).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(status) => {
                    found.push(Err(failed(status.message)));
                    continue;
                }
            }
            let resource = param_resource.map(|resource| &**resource);
            found.push(match params::of(registry, resource, binding, request.namespace).await {
                Ok(params) => Ok(Invocation { binding, seen, params }),
                Err(problem) => Err(failed(problem)),
            });
        }
        found
    }

    /// The namespace of the write as expressions see it; null for cluster-scoped resources and
    /// namespaces themselves.
    ///
    /// # Errors
    /// The namespace cannot be read.
    pub(super) async fn namespace(&self) -> Result<Value, Status> {
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
}
