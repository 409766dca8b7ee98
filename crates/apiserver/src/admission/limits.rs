//! LimitRanger: containers get the default resources of their namespace's LimitRanges, and pods and
//! claims that exceed a limit are refused. Messages follow kube-apiserver.

use api_meta::object::ObjectExt;
use api_meta::quantity::Quantity;
use api_meta::status::Status;
use serde_json::{Map, Value};

use crate::built_in_plugins::Switchable;
use crate::fields::{each, ensure, items, map, str_of};
use crate::quota::amounts::{self, Amounts};
use crate::quota::pod::all_containers;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::registry::{ListQuery, Registry};

/// The annotation that records the defaults that were set in a pod.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitedKind {
    Pod,
    Claim,
}

/// The kind of limits that apply to the write. The resources of a pod only change through a
/// subresource, so its updates are not limited.
fn limited_kind(request: &AdmissionRequest<'_>) -> Option<LimitedKind> {
    if !request.resource.group.is_empty() || !request.subresource.is_empty() {
        return None;
    }
    match (request.resource.plural.as_str(), request.operation) {
        ("pods", AdmissionOperation::Create) => Some(LimitedKind::Pod),
        ("persistentvolumeclaims", AdmissionOperation::Create | AdmissionOperation::Update) => {
            Some(LimitedKind::Claim)
        }
        _ => None,
    }
}

/// Sets the default resources of the namespace's LimitRanges in a new pod. Brings the caches up to
/// date.
///
/// # Errors
/// The LimitRanges cannot be read.
pub(super) async fn preset(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: &mut Value,
) -> Result<(), Status> {
    if registry.has(Switchable::LimitRanger) && limited_kind(request) == Some(LimitedKind::Pod) {
        for range in ranges(registry, request.namespace).await? {
            preset_pod(&range, object);
        }
    }
    Ok(())
}

/// Refuses an object that exceeds the limits of its namespace.
///
/// # Errors
/// 403 with each limit that the object exceeds, or the status of a failed read of the LimitRanges.
pub(super) async fn validate(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Status> {
    let (Some(limited_kind), Some(object)) = (limited_kind(request), object) else { return Ok(()) };
    let is_bounded = registry.has(Switchable::LimitRanger);
    if !is_bounded || old.is_some_and(|old| old.is_terminating()) {
        return Ok(());
    }
    for range in ranges(registry, request.namespace).await? {
        let mut problems: Vec<String> = Vec::new();
        for limit in items(&range["spec"]["limits"]) {
            let found = match (limited_kind, str_of(&limit["type"])) {
                (LimitedKind::Pod, "Container") => container_problems(limit, &object["spec"]),
                (LimitedKind::Pod, "Pod") => {
                    let spec = &object["spec"];
                    let requests = all_containers(spec, "requests");
                    exceeded_limits(limit, &requests, &all_containers(spec, "limits"))
                }
                (LimitedKind::Claim, "PersistentVolumeClaim") => claim_problems(limit, object),
                _ => Vec::new(),
            };
            for problem in found {
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        match problems.as_slice() {
            [] => {}
            [one] => return Err(request.forbidden(Some(object), one)),
            many => {
                let text = format!("[{}]", many.join(", "));
                return Err(request.forbidden(Some(object), &text));
            }
        }
    }
    Ok(())
}

async fn ranges(registry: &Registry, namespace: &str) -> Result<Vec<Value>, Status> {
    let Some(ranges) = registry.find("", "limitranges") else { return Ok(Vec::new()) };
    let list = registry.list(&ranges, &ListQuery::all(namespace)).await?;
    Ok(list.items.iter().map(|range| range.value()).collect())
}

fn preset_pod(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in items(&range["spec"]["limits"]).iter().filter(|one| one["type"] == "Container") {
        let entries = |field: &str| limit[field].as_object().cloned().unwrap_or_default();
        requests.extend(entries("defaultRequest"));
        limits.extend(entries("default"));
    }
    let mut details = Vec::new();
    let Some(spec) = pod.get_mut("spec").and_then(map) else { return };
    for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
        each(spec, field, |container| {
            let name = container.get("name").map(str_of).unwrap_or_default().to_owned();
            let Some(resources) = ensure(container, "resources") else { return };
            let kinds = [("limits", "limit", &limits), ("requests", "request", &requests)];
            let mut set = Vec::new();
            for (field, kind, presets) in kinds {
                let names = fill(resources, field, presets);
                if !names.is_empty() {
                    set.push(format!("{} {kind} for {what} {name}", names.join(", ")));
                }
            }
            // Requests are reported first.
            details.extend(set.into_iter().rev());
        });
    }
    if !details.is_empty() {
        let text = format!("LimitRanger plugin set: {}", details.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = text.into();
    }
}

/// Sets the absent amounts; returns the names of those that were set.
fn fill(
    resources: &mut Map<String, Value>,
    field: &str,
    presets: &Map<String, Value>,
) -> Vec<String> {
    let absent = |name: &&String| resources.get(field).is_none_or(|have| have[*name].is_null());
    let names: Vec<String> = presets.keys().filter(absent).cloned().collect();
    if names.is_empty() {
        return names;
    }
    if let Some(have) = ensure(resources, field) {
        for name in &names {
            have.insert(name.clone(), presets[name].clone());
        }
    }
    names
}

fn container_problems(limit: &Value, spec: &Value) -> Vec<String> {
    let all = ["containers", "initContainers"].into_iter().flat_map(|field| items(&spec[field]));
    let problems = all.flat_map(|container| {
        let resources = &container["resources"];
        let (requests, limits) =
            (amounts::of(&resources["requests"]), amounts::of(&resources["limits"]));
        exceeded_limits(limit, &requests, &limits)
    });
    problems.collect()
}

/// The limits that these requests and limits exceed.
fn exceeded_limits(limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let kind = str_of(&limit["type"]);
    let mut problems = Vec::new();
    for (name, bound) in &amounts::of(&limit["min"]) {
        let usage = format!("minimum {name} usage per {kind} is {bound}");
        problems.extend(match (requests.get(name), limits.get(name)) {
            (None, _) => Some(format!("{usage}.  No request is specified")),
            (Some(request), _) if request < bound => {
                Some(format!("{usage}, but request is {request}"))
            }
            (_, Some(limit)) if limit < bound => Some(format!("{usage}, but limit is {limit}")),
            _ => None,
        });
    }
    for (name, bound) in &amounts::of(&limit["max"]) {
        let usage = format!("maximum {name} usage per {kind} is {bound}");
        problems.extend(match (requests.get(name), limits.get(name)) {
            (_, None) => Some(format!("{usage}.  No limit is specified")),
            (_, Some(limit)) if limit > bound => Some(format!("{usage}, but limit is {limit}")),
            (Some(request), _) if request > bound => {
                Some(format!("{usage}, but request is {request}"))
            }
            _ => None,
        });
    }
    for (name, bound) in &amounts::of(&limit["maxLimitRequestRatio"]) {
        let usage = format!("{name} max limit to request ratio per {kind} is {bound}");
        let positive = |amounts: &Amounts| {
            amounts.get(name).filter(|amount| !amounts::is_zero(amount)).map(Quantity::to_f64)
        };
        problems.extend(match (positive(requests), positive(limits)) {
            (None, _) => Some(format!("{usage}, but no request is specified or request is 0")),
            (_, None) => Some(format!("{usage}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) if limit / request > bound.to_f64() => {
                Some(format!("{usage}, but provided ratio is {:.6}", limit / request))
            }
            _ => None,
        });
    }
    problems
}

/// The limits that a claim exceeds. Only requests of claims are limited.
fn claim_problems(limit: &Value, object: &Value) -> Vec<String> {
    let kind = str_of(&limit["type"]);
    let requests = amounts::of(&object["spec"]["resources"]["requests"]);
    let mut problems = Vec::new();
    let bounds = [("min", "minimum"), ("max", "maximum")];
    for (field, what) in bounds {
        for (name, bound) in &amounts::of(&limit[field]) {
            let usage = format!("{what} {name} usage per {kind} is {bound}");
            match requests.get(name) {
                None => problems.push(format!("{usage}.  No request is specified")),
                Some(request)
                    if field == "min" && request < bound || field == "max" && request > bound =>
                {
                    problems.push(format!("{usage}, but request is {request}"));
                }
                _ => {}
            }
        }
    }
    problems
}
