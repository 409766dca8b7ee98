//! Amounts of resources that containers and pods request, and how they may change.

use std::collections::BTreeMap;

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::{PRESENT_MIN, Pod, each, items, resource_claim};

const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources that a quota may limit, besides those of containers.
const OF_QUOTAS: [&str; 7] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];
/// Resources that a quota counts in whole numbers.
const WHOLE: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
/// Known without a group, but neither in containers nor in quotas.
const ELSEWHERE: [&str; 3] = ["storage", "count", "volumeattributesclass"];
const PAGES: &str = "hugepages-";
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];
const NO_LIMIT: &str = "Limit must be set for non overcommitable resources";

fn quantity(value: &Value) -> Option<Quantity> {
    str_of(value).parse().ok()
}

fn entries(amounts: &Value) -> impl Iterator<Item = (&String, &Value)> {
    amounts.as_object().into_iter().flatten()
}

/// Whether all nodes know the resource. Others are extended resources.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a quota may limit a resource without a group.
pub fn is_of_quotas(name: &str) -> bool {
    let requested = name.strip_prefix("requests.").unwrap_or(name);
    is_of_containers(requested) || OF_QUOTAS.contains(&name) || WHOLE.contains(&name)
}

fn is_of_containers(name: &str) -> bool {
    OF_CONTAINERS.contains(&name) || name.starts_with(PAGES)
}

/// Whether containers may use more of the resource than they requested.
pub fn is_compressible(name: &str) -> bool {
    is_native(name) && !name.starts_with(PAGES)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_standard(name: &str) -> bool {
    is_of_quotas(name) || ELSEWHERE.contains(&name)
}

/// Messages about a name of a resource, in any object; empty for a valid one.
pub fn name_problems(name: &str) -> Vec<String> {
    let problems = names::qualified_name(name);
    let known = name.contains('/') || is_standard(name);
    if problems.is_empty() && !known {
        return vec!["must be a standard resource type or fully qualified".to_owned()];
    }
    problems
}

/// Messages about a name of a resource of a container; empty for a valid one.
pub fn container_name_problems(name: &str) -> Vec<String> {
    let mut problems = name_problems(name);
    if !name.contains('/') && !is_of_containers(name) {
        problems.push("must be a standard resource for containers".to_owned());
    } else if name.contains('/') && !is_native(name) && !is_extended(name) {
        problems.push("doesn't follow extended resource name standard".to_owned());
    }
    problems
}

/// Whether amounts of the resource must be whole numbers.
fn is_whole(name: &str) -> bool {
    WHOLE.contains(&name) || is_extended(name)
}

/// Validates the amounts of a quota at `field`; appends a cause for each problem.
pub fn of_quota(field: &str, amounts: &Value, causes: &mut Vec<Cause>) {
    for (name, value) in entries(amounts) {
        let path = format!("{field}[{name}]");
        let mut problems = name_problems(name);
        if !name.contains('/') && !is_of_quotas(name) {
            problems.push("must be a standard resource for quota".to_owned());
        }
        causes
            .extend(problems.iter().map(|why| Cause::invalid(&*path, &name.as_str().into(), why)));
        validate_whole_number(&path, name, value, causes);
    }
}

/// Validates the amounts of a node at `field`; appends a cause for each problem.
pub fn of_node(field: &str, amounts: &Value, causes: &mut Vec<Cause>) {
    for (name, value) in entries(amounts) {
        validate_whole_number(&format!("{field}.{name}"), name, value, causes);
    }
}

fn validate_whole_number(path: &str, name: &str, value: &Value, causes: &mut Vec<Cause>) {
    let Some(amount) = quantity(value) else { return };
    if amount.is_negative() {
        causes.push(Cause::invalid(path, value, PRESENT_MIN));
    }
    if is_whole(name) && amount.milli_value() % 1000 != 0 {
        causes.push(Cause::invalid(path, value, "must be an integer"));
    }
}

/// Pods as a whole have fewer resources than containers.
fn pod_name(path: &str, name: &str, causes: &mut Vec<Cause>) {
    let problems = name_problems(name);
    if problems.is_empty() && !RESIZABLE.contains(&name) && !name.starts_with(PAGES) {
        causes.push(Cause::not_supported(path, &name.into(), &["cpu", PAGES, "memory"]));
    }
    causes.extend(problems.iter().map(|why| Cause::invalid(path, &name.into(), why)));
}

fn container_name(path: &str, name: &str, causes: &mut Vec<Cause>) {
    super::name(path, &name.into(), container_name_problems, causes);
}

fn amount(path: &str, name: &str, value: &Value, causes: &mut Vec<Cause>) {
    let Some(amount) = quantity(value) else { return };
    if amount.is_negative() {
        causes.push(Cause::invalid(path, value, PRESENT_MIN));
    }
    if is_extended(name) && amount.whole().is_none() {
        causes.push(Cause::invalid(path, value, "must be an integer"));
    }
    if let Some(size) = name.strip_prefix(PAGES) {
        let size = size.parse().ok().and_then(|size: Quantity| size.whole());
        let fits = |size: i64| size > 0 && amount.whole().is_some_and(|all| all % size == 0);
        if !size.is_some_and(fits) {
            let text = format!("{} is not positive integer multiple of {name}", str_of(value));
            causes.push(Cause::invalid(path, value, &text));
        }
    }
}

type NameRule = fn(&str, &str, &mut Vec<Cause>);

/// Limits and requests, each and in relation to each other.
fn amounts(field: &str, resources: &Value, rule: NameRule, causes: &mut Vec<Cause>) {
    for kind in ["limits", "requests"] {
        for (name, value) in entries(&resources[kind]) {
            let path = format!("{field}.{kind}[{name}]");
            rule(&path, name, causes);
            amount(&path, name, value, causes);
            if kind == "requests" {
                validate_request(field, name, value, &resources["limits"][name], causes);
            }
        }
    }
    let has = |fits: fn(&str) -> bool| {
        let kinds = ["limits", "requests"].into_iter();
        kinds.flat_map(|kind| entries(&resources[kind])).any(|(name, _)| fits(name))
    };
    if has(|name| name.starts_with(PAGES)) && !has(|name| RESIZABLE.contains(&name)) {
        causes.push(Cause::forbidden(field, "HugePages require cpu or memory"));
    }
}

/// A request must not exceed its limit.
fn validate_request(
    field: &str,
    name: &str,
    value: &Value,
    limit: &Value,
    causes: &mut Vec<Cause>,
) {
    let (Some(requested), Some(most)) = (quantity(value), quantity(limit)) else {
        if limit.is_null() && !is_compressible(name) {
            causes.push(Cause::required(format!("{field}.limits"), NO_LIMIT));
        }
        return;
    };
    let how = if !is_compressible(name) && requested != most {
        "equal to"
    } else if is_compressible(name) && requested > most {
        "less than or equal to"
    } else {
        return;
    };
    let text = format!("must be {how} {name} limit of {}", str_of(limit));
    causes.push(Cause::invalid(format!("{field}.requests"), value, &text));
}

/// Validates the limits, requests and claims of a container at `field`.
pub fn of_container(field: &str, resources: &Value, causes: &mut Vec<Cause>) {
    amounts(field, resources, container_name, causes);
}

/// Validates the overhead of a pod: what it costs besides its containers.
pub fn overhead(field: &str, overhead: &Value, causes: &mut Vec<Cause>) {
    for (name, value) in entries(overhead) {
        let path = format!("{field}.limits[{name}]");
        container_name(&path, name, causes);
        amount(&path, name, value, causes);
    }
}

/// Amounts of a pod as a whole.
pub(super) fn of_pod(field: &str, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let resources = &pod.spec["resources"];
    if !resources.is_object() {
        return;
    }
    if !items(&resources["claims"]).is_empty() {
        let text = "claims may not be set for Resources at pod-level";
        causes.push(Cause::forbidden(format!("{field}.claims"), text));
    }
    let claims = format!("{field}.claims");
    amounts(field, resources, pod_name, causes);
    resource_claim::uses(&claims, &resources["claims"], &pod.claims, causes);
    let together = requests_of_containers(pod.spec);
    for (name, value) in entries(&resources["requests"]) {
        let Some((requested, sum)) = quantity(value).zip(together.get(name.as_str())) else {
            continue;
        };
        if *sum > requested {
            let text =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            causes.push(Cause::invalid(format!("{field}.requests[{name}]"), value, &text));
        }
    }
    for (path, container) in each(&format!("{field}.containers"), &pod.spec["containers"]) {
        for (name, value) in entries(&container["resources"]["limits"]) {
            let most = &resources["limits"][name];
            if quantity(value).zip(quantity(most)).is_some_and(|(limit, most)| limit > most) {
                let text = format!("must be less than or equal to pod limits of {}", str_of(most));
                causes.push(Cause::invalid(format!("{path}[{name}].limits"), value, &text));
            }
        }
    }
}

/// The requests of running containers: those that run at the same time, or an init container with
/// the sidecars that started before it.
pub(in crate::kinds::pod) fn requests_of_containers(spec: &Value) -> BTreeMap<&str, Quantity> {
    let mut sidecars = BTreeMap::new();
    let mut most: BTreeMap<&str, Quantity> = BTreeMap::new();
    for container in items(&spec["initContainers"]) {
        let mut now = sidecars.clone();
        add(&mut now, container);
        if container["restartPolicy"] == "Always" {
            sidecars = now.clone();
        }
        for (name, amount) in now {
            if most.get(name).is_none_or(|most| amount > *most) {
                most.insert(name, amount);
            }
        }
    }
    let mut all = sidecars;
    items(&spec["containers"]).iter().for_each(|container| add(&mut all, container));
    for (name, amount) in most {
        if all.get(name).is_none_or(|all| amount > *all) {
            all.insert(name, amount);
        }
    }
    all
}

fn add<'a>(sums: &mut BTreeMap<&'a str, Quantity>, container: &'a Value) {
    for (name, value) in entries(&container["resources"]["requests"]) {
        let Some(amount) = quantity(value) else { continue };
        let sum = sums.get(name.as_str()).map_or(amount, |sum| sum.plus(&amount));
        sums.insert(name, sum);
    }
}

/// Validates the effect of a resize on a container. `restart_policy` is the pod's.
pub fn resize_policy(field: &str, list: &Value, restart_policy: &str, causes: &mut Vec<Cause>) {
    let mut seen = std::collections::BTreeSet::new();
    for (path, policy) in each(field, list) {
        super::duplicate(&path, str_of(&policy["resourceName"]), &mut seen, causes);
        let fields = [("resourceName", RESIZABLE), ("restartPolicy", RESIZE_POLICIES)];
        for (name, allowed) in fields {
            if super::require_text(field, &policy[name], causes) {
                super::require_one_of(field, &policy[name], &allowed, causes);
            }
        }
        if restart_policy == "Never" && policy["restartPolicy"] == "RestartContainer" {
            let text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.push(Cause::invalid(field, &policy["restartPolicy"], text));
        }
    }
}
