//! The admission plugins of kube-apiserver that need no configuration, in its order: what writes of a
//! kind are completed by, and what they are refused for. Texts are those of Kubernetes.
//!
//! Each module is one plugin, or two that share a kind. [`preset`] is what the mutating plugins do,
//! before any webhook is asked; [`check`] what the validating ones do, on the object as it will be
//! stored.

pub mod accounts;
mod certificates;
mod classes;
mod nodes;
mod owners;
mod pod_security;
pub mod priority;
mod runtime_class;
pub mod tolerations;
pub(crate) mod volumes;

pub use nodes::topology_labels;

use api_meta::status::Status;
use serde_json::Value;

use crate::built_in_plugins::Switchable;
use crate::registry::admission::{Operation, Request};
use crate::registry::{ListQuery, Registry, Version};

/// Group and plural of what is written; absent for subresources.
fn kind<'a>(request: &Request<'a>) -> Option<(&'a str, &'a str)> {
    let resource = request.resource;
    request.subresource.is_empty().then_some((resource.group.as_str(), resource.plural.as_str()))
}

/// Whether a create may be completed.
pub(super) fn may_preset(request: &Request<'_>) -> bool {
    matches!(
        kind(request),
        Some(
            ("", "nodes" | "persistentvolumeclaims" | "persistentvolumes" | "pods")
                | ("networking.k8s.io", "ingresses")
                | ("storage.k8s.io", "volumeattributesclasses")
        )
    )
}

/// Completes what is written. The caches must hold what was committed before the write began.
///
/// # Errors
/// 403 when what it names is not there or contradicts it.
pub(super) async fn preset(
    registry: &Registry,
    request: &Request<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let create = request.operation == Operation::Create;
    let protects = registry.has(Switchable::StorageObjectInUseProtection);
    match kind(request) {
        Some(("", "pods")) => preset_pod(registry, request, object, old).await?,
        Some(("", "persistentvolumeclaims")) if create => {
            if registry.has(Switchable::DefaultStorageClass) {
                classes::of_claim(registry, object).await?;
            }
            if protects {
                volumes::protect(object, volumes::CLAIM);
            }
        }
        Some(("", "nodes")) if create && registry.has(Switchable::TaintNodesByCondition) => {
            nodes::taint(object);
        }
        Some(("", "persistentvolumes")) if create && protects => {
            volumes::protect(object, volumes::VOLUME);
        }
        Some(("storage.k8s.io", "volumeattributesclasses")) if create && protects => {
            volumes::protect(object, volumes::CLASS);
        }
        Some(("networking.k8s.io", "ingresses"))
            if create && registry.has(Switchable::DefaultIngressClass) =>
        {
            classes::of_ingress(registry, object).await?;
        }
        _ => {}
    }
    Ok(())
}

async fn preset_pod(
    registry: &Registry,
    request: &Request<'_>,
    pod: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let create = request.operation == Operation::Create;
    if create && registry.has(Switchable::ServiceAccount) {
        accounts::mount(registry, request, pod).await?;
    }
    if registry.has(Switchable::Priority) {
        match old {
            _ if create => priority::resolve(registry, request, pod).await?,
            Some(old) => priority::keep(pod, old),
            None => {}
        }
    }
    if registry.has(Switchable::DefaultTolerationSeconds) {
        tolerations::preset(pod);
    }
    if create && registry.has(Switchable::RuntimeClass) {
        runtime_class::preset(registry, request, pod).await?;
    }
    if create && registry.has(Switchable::PodTopologyLabels) {
        nodes::label_pod(registry, pod).await?;
    }
    Ok(())
}

/// Refuses what may not be written so. Deletes are nobody's here.
///
/// # Errors
/// 403, or 422 for labels of a namespace that say nothing.
pub(super) async fn check(
    registry: &Registry,
    request: &Request<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Status> {
    let Some(object) = object else { return Ok(()) };
    if registry.has(Switchable::PodSecurity) {
        pod_security::check(registry, request, object, old).await?;
    }
    match kind(request) {
        Some(("scheduling.k8s.io", "priorityclasses")) if registry.has(Switchable::Priority) => {
            priority::check(registry, request, object).await?;
        }
        Some(("", "persistentvolumeclaims"))
            if registry.has(Switchable::PersistentVolumeClaimResize) =>
        {
            volumes::check_size(registry, request, object, old).await?;
        }
        Some(("", "pods"))
            if request.operation == Operation::Create && registry.has(Switchable::RuntimeClass) =>
        {
            runtime_class::check(registry, request, object).await?;
        }
        _ => {}
    }
    owners::check(registry, request, object, old)?;
    certificates::check(registry, request, object, old)
}

/// An object as the caches have it, if it is there and its kind is served.
async fn find(
    registry: &Registry,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(None) };
    match registry.get_at(&resource, namespace, name, Version::Any).await {
        Ok(found) => Ok(Some(found.value())),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(status),
    }
}

/// All objects of a kind in all namespaces, as the caches have them.
async fn all(registry: &Registry, group: &str, plural: &str) -> Result<Vec<Value>, Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(Vec::new()) };
    let query = ListQuery { version: Version::Any, ..ListQuery::all("") };
    let list = registry.list(&resource, &query).await?;
    Ok(list.items.iter().map(|found| found.value()).collect())
}
