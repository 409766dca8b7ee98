//! Which policies a write concerns, through which of their bindings, and with which parameters.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use super::params;
use super::policy::{Binding, Terms};
use crate::admission::rules::Objects;
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::registry::admission::Request;
use crate::resource::Resource;

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

/// One write on its way through the policies.
#[derive(Clone, Copy)]
pub(super) struct Dispatch<'d> {
    pub(super) registry: &'d Registry,
    pub(super) catalog: &'d Catalog,
    pub(super) request: &'d Request<'d>,
    pub(super) objects: Objects<'d>,
}

/// A binding through which a policy is about the write.
pub(super) struct Invocation<'p, 'd> {
    pub(super) binding: &'p Binding,
    /// What the write is to be looked at as.
    pub(super) seen: &'d Resource,
    /// The policy is asked once with each; null stands for none.
    pub(super) params: Vec<Value>,
}

/// It cannot be found out what a policy or binding means for the write.
pub(super) struct Misconfigured<'p> {
    pub(super) binding: Option<&'p Binding>,
    pub(super) problem: String,
}

impl Misconfigured<'_> {
    /// What refusals say.
    pub(super) fn told(&self) -> String {
        let what = if self.binding.is_none() { "policy" } else { "binding" };
        format!("failed to configure {what}: {}", self.problem)
    }
}

impl<'d> Dispatch<'d> {
    /// How the policy concerns the write, in the order of its bindings.
    pub(super) async fn invocations<'p>(
        &self,
        terms: &Terms,
        bindings: &'p [Arc<Binding>],
    ) -> Vec<Result<Invocation<'p, 'd>, Misconfigured<'p>>> {
        let Self { registry, catalog, request, objects } = *self;
        let policy_failed = |problem| vec![Err(Misconfigured { binding: None, problem })];
        let seen = match terms.matched(registry, catalog, request, objects).await {
            Ok(Some(seen)) => seen,
            Ok(None) => return Vec::new(),
            Err(status) => return policy_failed(status.message),
        };
        let param_resource = match &terms.param_kind {
            None => None,
            Some((api_version, kind)) => {
                let found = params::resource_of_kind(catalog, api_version, kind);
                if found.is_none() {
                    let kind = params::told_kind(api_version, kind);
                    return policy_failed(format!(
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

    /// The namespace of the write as expressions see it; null outside of any.
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
