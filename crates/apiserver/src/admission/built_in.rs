//! The admission plugins of kube-apiserver that need no configuration, in its order. They set
//! fields on writes of certain kinds and refuse others. Messages follow kube-apiserver.
//!
//! Each module is one plugin, or two that share a kind. [`preset`] runs the mutating plugins,
//! before any webhook is called. [`validate`] runs the validating ones, on the object as it will be
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
pub mod volumes;

pub use nodes::topology_labels;

use api_meta::status::Status;
use serde_json::Value;

use crate::built_in_plugins::Switchable;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::registry::{ListQuery, ReadVersion, Registry};

/// The group and plural of the written resource; `None` for subresources.
fn kind<'a>(request: &AdmissionRequest<'a>) -> Option<(&'a str, &'a str)> {
    let resource = request.resource;
    request.subresource.is_empty().then_some((resource.group.as_str(), resource.plural.as_str()))
}

/// Whether a mutating plugin may set fields of the object.
pub(super) fn may_preset(request: &AdmissionRequest<'_>) -> bool {
    matches!(
        kind(request),
        Some(
            ("", "nodes" | "persistentvolumeclaims" | "persistentvolumes" | "pods")
                | ("networking.k8s.io", "ingresses")
                | ("storage.k8s.io", "volumeattributesclasses")
        )
    )
}

/// Runs the mutating plugins on an object. The caches must already hold everything that was
/// committed before the write began.
///
/// # Errors
/// 403 when the object names something that does not exist or that contradicts it; the status of a
/// failed read.
pub(super) async fn preset(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let create = request.operation == AdmissionOperation::Create;
    let protects = registry.has(Switchable::StorageObjectInUseProtection);
    match kind(request) {
        Some(("", "pods")) => preset_pod(registry, request, object, old).await?,
        Some(("", "persistentvolumeclaims")) if create => {
            if registry.has(Switchable::DefaultStorageClass) {
                classes::set_for_claim(registry, object).await?;
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
            classes::set_for_ingress(registry, object).await?;
        }
        _ => {}
    }
    Ok(())
}

async fn preset_pod(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    pod: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let create = request.operation == AdmissionOperation::Create;
    if create && registry.has(Switchable::ServiceAccount) {
        accounts::set_account(registry, request, pod).await?;
    }
    if registry.has(Switchable::Priority) {
        match old {
            _ if create => priority::set_from_class(registry, request, pod).await?,
            Some(old) => priority::retain_unstated(pod, old),
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

/// Runs the validating plugins. A delete, which has no object, always passes.
///
/// # Errors
/// 403 with the reason of the plugin, or 422 for PodSecurity labels of a namespace that cannot be
/// parsed.
pub(super) async fn validate(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
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
            if request.operation == AdmissionOperation::Create
                && registry.has(Switchable::RuntimeClass) =>
        {
            runtime_class::check(registry, request, object).await?;
        }
        _ => {}
    }
    owners::check(registry, request, object, old)?;
    certificates::check(registry, request, object, old)
}

/// Reads an object from the caches. `None` when it does not exist or its kind is not served.
async fn find(
    registry: &Registry,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(None) };
    match registry.get_at(&resource, namespace, name, ReadVersion::Any).await {
        Ok(found) => Ok(Some(found.value())),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(status),
    }
}

/// Reads all objects of a kind in all namespaces from the caches.
async fn all(registry: &Registry, group: &str, plural: &str) -> Result<Vec<Value>, Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(Vec::new()) };
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
    let list = registry.list(&resource, &query).await?;
    Ok(list.items.iter().map(|found| found.value()).collect())
}
