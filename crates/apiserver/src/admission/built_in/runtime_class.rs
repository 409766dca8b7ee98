//! RuntimeClass: a pod gets the overhead, the node selector and the tolerations of its class.

use api_meta::status::Status;
use serde_json::Value;

use super::{find, tolerations};
use crate::fields::{items, str_of};
use crate::quota::amounts;
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;

/// The class that a pod names; `None` when it names none.
///
/// # Errors
/// 403: the class does not exist.
async fn class_of(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    pod: &Value,
) -> Result<Option<Value>, Status> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let class = find(registry, ("node.k8s.io", "runtimeclasses"), "", name).await?;
    class.map(Some).ok_or_else(|| {
        let text = format!("pod rejected: RuntimeClass {name:?} not found");
        request.forbidden(Some(pod), &text)
    })
}

/// Sets overhead, node selector and tolerations of its class in a new pod.
///
/// # Errors
/// 403: the class does not exist, or the pod states another value.
pub(super) async fn preset(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    pod: &mut Value,
) -> Result<(), Status> {
    let Some(class) = class_of(registry, request, pod).await? else { return Ok(()) };
    let fixed = &class["overhead"]["podFixed"];
    if class["overhead"].is_object() {
        let stated = amounts::of(&pod["spec"]["overhead"]);
        if !stated.is_empty() && stated != amounts::of(fixed) {
            return Err(mismatch(request, pod));
        }
        if fixed.is_object() {
            pod["spec"]["overhead"] = fixed.clone();
        }
    }
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let own = &pod["spec"]["nodeSelector"][key];
        if !own.is_null() && own != value {
            let (value, own) = (str_of(value), str_of(own));
            let text = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                 pod.spec.nodeSelector[{key}] = {own}"
            );
            return Err(request.forbidden(Some(pod), &text));
        }
        pod["spec"]["nodeSelector"][key] = value.clone();
    }
    if scheduling.is_object() {
        let own = items(&pod["spec"]["tolerations"]);
        let merged = tolerations::merge(own, items(&scheduling["tolerations"]));
        pod["spec"]["tolerations"] = merged.into();
    }
    Ok(())
}

/// Refuses a pod whose overhead differs from that of its class.
///
/// # Errors
/// 403 with the reason.
pub(super) async fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    pod: &Value,
) -> Result<(), Status> {
    let class = class_of(registry, request, pod).await?;
    let overhead = &pod["spec"]["overhead"];
    match class.as_ref().map(|class| &class["overhead"]).filter(|overhead| overhead.is_object()) {
        Some(expected) if amounts::of(&expected["podFixed"]) != amounts::of(overhead) => {
            Err(mismatch(request, pod))
        }
        None if !overhead.is_null() => {
            let text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                        Overhead";
            Err(request.forbidden(Some(pod), text))
        }
        _ => Ok(()),
    }
}

fn mismatch(request: &AdmissionRequest<'_>, pod: &Value) -> Status {
    let text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    request.forbidden(Some(pod), text)
}
