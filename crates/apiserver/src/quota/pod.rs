//! The usage of a pod: the requests and limits of its containers, until it has ended.

use std::collections::{BTreeMap, BTreeSet};

use api_meta::quantity::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::amounts::{self, Amounts};
use crate::fields::{items, str_of};

const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";
/// Resources that quotas limit as requests and as limits; a bare name is the request.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Quotas of these require that every container specifies them.
const STATED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Whether the pod has a deadline: the scope `Terminating`.
pub fn is_bounded(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether pods can use the resource of this name.
pub fn is_measured(name: &str) -> bool {
    let request = name.strip_prefix(REQUESTS);
    let limit = name.strip_prefix(LIMITS);
    name == "pods"
        || COMPUTE.contains(&request.or(limit).unwrap_or(name))
        || request.unwrap_or(name).starts_with(HUGE_PAGES)
        || request.is_some_and(is_extended)
}

/// Resources that are not defined by Kubernetes itself, such as devices.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
        || name.starts_with("deviceclass.resource.kubernetes.io/")
}

/// Adds what a pod uses, under the names of quotas; nothing once it has ended.
pub fn add_usage(pod: &Value, taken: &mut Amounts) {
    if has_ended(pod) {
        return;
    }
    let spec = &pod["spec"];
    let overhead = amounts::of(&spec["overhead"]);
    let mut requests = all_containers(spec, "requests");
    amounts::add(&mut requests, &overhead);
    let mut limits = all_containers(spec, "limits");
    for (name, limit) in limits.iter_mut().filter(|(_, limit)| !amounts::is_zero(limit)) {
        if let Some(more) = overhead.get(name) {
            *limit = limit.plus(more);
        }
    }
    taken.insert("pods".to_owned(), Quantity::from_whole(1));
    taken.extend(quota_names(&requests, &limits));
}

/// Ended, or terminating beyond its grace period.
fn has_ended(pod: &Value) -> bool {
    if matches!(str_of(&pod["status"]["phase"]), "Failed" | "Succeeded") {
        return true;
    }
    let metadata = &pod["metadata"];
    let deleted = str_of(&metadata["deletionTimestamp"]).parse::<Timestamp>();
    let (Ok(deleted), Some(grace)) = (deleted, metadata["deletionGracePeriodSeconds"].as_i64())
    else {
        return false;
    };
    let end = deleted.saturating_add(SignedDuration::from_secs(grace));
    end.is_ok_and(|end| Timestamp::now() > end)
}

/// The amounts under the names that quotas use.
fn quota_names(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut all = Amounts::new();
    for (name, amount) in requests {
        let counted = COMPUTE.contains(&name.as_str()) || name.starts_with(HUGE_PAGES);
        if counted {
            all.insert(name.clone(), *amount);
        }
        if counted || is_extended(name) {
            all.insert(format!("{REQUESTS}{name}"), *amount);
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        all.insert(format!("{LIMITS}{name}"), *amount);
    }
    all
}

/// The most that is used at once: all containers together with the sidecars, or one of the other
/// init containers together with the sidecars started before it. What the pod specifies as a whole
/// replaces it. `field` is `requests` or `limits`.
pub fn all_containers(spec: &Value, field: &str) -> Amounts {
    let own = |container: &Value| amounts::of(&container["resources"][field]);
    let mut total = Amounts::new();
    for container in items(&spec["containers"]) {
        amounts::add(&mut total, &own(container));
    }
    let (mut staying, mut peak) = (Amounts::new(), Amounts::new());
    for container in items(&spec["initContainers"]) {
        let mut at_once = own(container);
        if container["restartPolicy"] == "Always" {
            amounts::add(&mut total, &at_once);
            amounts::add(&mut staying, &at_once);
            amounts::raise(&mut peak, &staying);
        } else {
            amounts::add(&mut at_once, &staying);
            amounts::raise(&mut peak, &at_once);
        }
    }
    amounts::raise(&mut total, &peak);
    let whole = amounts::of(&spec["resources"][field]);
    total.extend(whole.into_iter().filter(|(name, _)| is_of_whole_pods(name)));
    total
}

/// Resources that can be specified for a pod as a whole.
fn is_of_whole_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// The limited resources that containers do not specify: `limits.cpu for: a,b; …`; empty when none
/// is missing.
pub fn missing_amounts(pod: &Value, limited: &[&String]) -> String {
    let spec = &pod["spec"];
    let whole = ["requests", "limits"]
        .iter()
        .filter_map(|field| spec["resources"][*field].as_object())
        .any(|stated| stated.keys().any(|name| is_of_whole_pods(name)));
    if whole {
        return String::new();
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"].iter().flat_map(|field| items(&spec[*field]))
    {
        let resources = &container["resources"];
        let stated =
            quota_names(&amounts::of(&resources["requests"]), &amounts::of(&resources["limits"]));
        let required = limited.iter().filter(|name| STATED.contains(&name.as_str()));
        for name in required.filter(|name| !stated.contains_key(name.as_str())) {
            missing.entry(name).or_default().insert(str_of(&container["name"]));
        }
    }
    let parts = missing.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    parts.collect::<Vec<_>>().join("; ")
}
