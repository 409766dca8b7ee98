//! Validation of a pod's status and of its changes.

use std::collections::HashSet;
use std::net::IpAddr;

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::{Value, json};

use super::{each, items, name};
use crate::kinds::ip;

/// Conditions of the system, whose names are not validated.
const OF_THE_SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const CLAIM_TEXT: &str = "must match the name of an entry in `spec.resourceClaims`";
const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
const HEALTH_MESSAGE_LENGTH_MAX: usize = 1024;
/// Lists of statuses of containers, and of the containers in the spec.
const CONTAINERS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// Returns all causes to refuse the status of `object`. `old` is the pod before the write.
pub fn status(object: &Value, old: &Value) -> Vec<Cause> {
    let (spec, new, before) = (&object["spec"], &object["status"], &old["status"]);
    let mut causes = Vec::new();
    conditions(&new["conditions"], &mut causes);
    nominated_node(spec, new, before, &mut causes);
    generation("status.observedGeneration", &new["observedGeneration"], &mut causes);
    if new["qosClass"] != before["qosClass"] {
        let class = str_of(&new["qosClass"]).into();
        causes.push(Cause::invalid("status.qosClass", &class, "field is immutable"));
    }
    for (list, containers) in CONTAINERS {
        let containers = &spec[containers];
        restarts(list, containers, spec, (&new[list], &before[list]), &mut causes);
    }
    claims(&new["resourceClaimStatuses"], spec, &mut causes);
    addresses("podIPs", new, before, &mut causes);
    host_addresses(new, before, &mut causes);
    for (list, _) in CONTAINERS {
        users(list, &new[list], spec, &mut causes);
    }
    for (list, containers) in CONTAINERS {
        validate_allocated(list, &new[list], &spec[containers], &mut causes);
    }
    causes
}

fn generation(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|value| value < 0) {
        causes.push(Cause::invalid(field, value, "must be a non-negative integer"));
    }
}

fn conditions(list: &Value, causes: &mut Vec<Cause>) {
    for (path, condition) in each("status.conditions", list) {
        generation(&format!("{path}.observedGeneration"), &condition["observedGeneration"], causes);
        let kind = str_of(&condition["type"]);
        if !OF_THE_SYSTEM.contains(&kind) {
            name(&format!("{path}.Type"), &kind.into(), names::qualified_name, causes);
        }
    }
}

fn nominated_node(spec: &Value, new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let field = "status.nominatedNodeName";
    let node = &new["nominatedNodeName"];
    if str_of(node).is_empty() || node == &old["nominatedNodeName"] {
        return;
    }
    name(field, node, names::dns1123_subdomain, causes);
    if !str_of(&spec["nodeName"]).is_empty() {
        let text = "may not be set on pods that are already bound to a node";
        causes.push(Cause::forbidden(field, text));
    }
}

/// A terminated container restarts only if its policies allow it.
fn restarts(
    list: &str,
    containers: &Value,
    spec: &Value,
    (new, old): (&Value, &Value),
    causes: &mut Vec<Cause>,
) {
    let is_ephemeral = list == "ephemeralContainerStatuses";
    if !is_ephemeral && any_restarts_all(spec) {
        return;
    }
    for (index, before) in items(old).iter().enumerate() {
        let ended = &before["state"]["terminated"];
        let now = items(new).iter().find(|now| now["name"] == before["name"]);
        let runs = now.is_some_and(|now| now["state"]["terminated"].is_null());
        if ended.is_null() || !runs {
            continue;
        }
        let container = items(containers).iter().find(|one| one["name"] == before["name"]);
        let may = !is_ephemeral
            && container.is_some_and(|container| {
                restarts_after(ended["exitCode"].as_i64().unwrap_or_default(), container, spec)
            });
        if !may {
            let text = "may not be transitioned to non-terminated state";
            causes.push(Cause::forbidden(format!("status.{list}[{index}].state"), text));
        }
    }
}

fn any_restarts_all(spec: &Value) -> bool {
    ["initContainers", "containers"]
        .iter()
        .flat_map(|kind| items(&spec[kind]))
        .flat_map(|container| items(&container["restartPolicyRules"]))
        .any(|rule| rule["action"] == "RestartAllContainers")
}

fn restarts_after(exit_code: i64, container: &Value, spec: &Value) -> bool {
    let matches = |rule: &&Value| {
        let codes = &rule["exitCodes"];
        let is_listed = items(&codes["values"]).contains(&exit_code.into());
        match str_of(&codes["operator"]) {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    };
    let own = &container["restartPolicy"];
    let rule = items(&container["restartPolicyRules"]).iter().find(matches);
    if !own.is_null() && rule.is_some_and(|rule| rule["action"] == "Restart") {
        return true;
    }
    let policy = if own.is_null() { &spec["restartPolicy"] } else { own };
    match str_of(policy) {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}

fn claims(list: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for (path, status) in each("status.resourceClaimStatuses", list) {
        let claim = str_of(&status["name"]);
        let field = format!("{path}.name");
        if !items(&spec["resourceClaims"]).iter().any(|one| one["name"] == claim) {
            causes.push(Cause::invalid(&*field, &claim.into(), CLAIM_TEXT));
        }
        if !seen.insert(claim) {
            causes.push(Cause::duplicate(field, &claim.into()));
        }
        let made = &status["resourceClaimName"];
        if !made.is_null() {
            name(&format!("{path}.resourceClaimName"), made, names::dns1123_subdomain, causes);
        }
    }
}

fn host_addresses(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if let Some(first) = items(&new["hostIPs"]).first()
        && str_of(&first["ip"]) != str_of(&new["hostIP"])
    {
        let text = "must be equal to `hostIP`";
        causes.push(Cause::invalid("status.hostIPs[0].ip", &first["ip"], text));
    }
    addresses("hostIPs", new, old, causes);
}

/// One address, or one of each family.
fn addresses(list: &str, new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let field = format!("status.{list}");
    let before = items(&old[list]).iter().map(|one| str_of(&one["ip"])).collect();
    for (path, address) in each(&field, &new[list]) {
        causes.extend(ip::new_address(&path, &address["ip"], &before));
    }
    let given: Vec<&str> = items(&new[list]).iter().map(|one| str_of(&one["ip"])).collect();
    if given.len() < 2 {
        return;
    }
    let read: Vec<Option<IpAddr>> = given.iter().map(|text| text.parse().ok()).collect();
    if let Some(at) = read.iter().position(Option::is_none) {
        let message = format!(
            "Internal error: failed to check for dual stack with error:invalid IP[{at}]: {}",
            given[at]
        );
        causes.push(Cause::new("InternalError", &field, message));
    }
    let are_two_families = match read[..] {
        [Some(one), Some(other)] => one.is_ipv4() != other.is_ipv4(),
        _ => false,
    };
    if !are_two_families {
        // In the notation of upstream's internal type.
        let shown: Value = given.iter().map(|ip| json!({"IP": ip})).collect();
        let text = "may specify no more than one IP for each IP family";
        causes.push(Cause::invalid(field, &shown, text));
    }
}

fn users(list: &str, statuses: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    for (path, status) in each(&format!("status.{list}"), statuses) {
        let (field, user) = (format!("{path}.user.linux"), &status["user"]["linux"]);
        if user.is_null() {
            continue;
        }
        if spec["os"]["name"] == "windows" {
            causes.push(Cause::forbidden(field, "cannot be set for a windows pod"));
            continue;
        }
        let mut check = |path: String, id: &Value| {
            let ids = 0..=i64::from(i32::MAX);
            if id.as_i64().is_some_and(|id| !ids.contains(&id)) {
                let text = "must be between 0 and 2147483647, inclusive";
                causes.push(Cause::invalid(path, id, text));
            }
        };
        check(format!("{field}.uid"), &user["uid"]);
        check(format!("{field}.gid"), &user["gid"]);
        for (path, group) in
            each(&format!("{field}.supplementalGroups"), &user["supplementalGroups"])
        {
            check(path, group);
        }
    }
}

/// Devices and other resources that are allocated to containers.
fn validate_allocated(list: &str, statuses: &Value, containers: &Value, causes: &mut Vec<Cause>) {
    for (path, status) in each(&format!("status.{list}"), statuses) {
        let (field, resources) =
            (format!("{path}.allocatedResourcesStatus"), &status["allocatedResourcesStatus"]);
        if list == "ephemeralContainerStatuses" {
            if !items(resources).is_empty() {
                let text = "must not be specified in container status";
                causes.push(Cause::forbidden(field, text));
            }
            continue;
        }
        let container = items(containers).iter().find(|one| one["name"] == status["name"]);
        for (path, resource) in each(&field, resources) {
            if let Some(container) = container {
                is_requested(&format!("{path}.name"), &resource["name"], container, causes);
            }
            healths(&format!("{path}.resources"), &resource["resources"], causes);
        }
    }
}

fn is_requested(field: &str, resource: &Value, container: &Value, causes: &mut Vec<Cause>) {
    let (text, requests) = (str_of(resource), &container["resources"]);
    let (found, problem) = match text.strip_prefix("claim:") {
        Some(claim) => {
            let is = |one: &Value| match (str_of(&one["name"]), str_of(&one["request"])) {
                (name, "") => claim == name,
                (name, request) => claim == format!("{name}/{request}"),
            };
            let problem = "must match one of the container's resource claims in a format \
                           'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (items(&requests["claims"]).iter().any(is), problem)
        }
        None => {
            let problem = "must match one of the container's resource requests";
            (requests["requests"].get(text).is_some(), problem)
        }
    };
    if !found {
        causes.push(Cause::invalid(field, resource, problem));
    }
}

fn healths(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for (path, resource) in each(field, list) {
        if !HEALTH.contains(&str_of(&resource["health"])) {
            let given = str_of(&resource["health"]).into();
            causes.push(Cause::not_supported(format!("{path}.health"), &given, &HEALTH));
        }
        match resource["message"].as_str().map(str::len) {
            Some(0) => {
                let text = "must be non-empty if specified";
                causes.push(Cause::required(format!("{path}.message"), text));
            }
            Some(length) if length > HEALTH_MESSAGE_LENGTH_MAX => {
                let field = format!("{path}.message");
                causes.push(Cause::too_long(field, HEALTH_MESSAGE_LENGTH_MAX));
            }
            _ => {}
        }
        if !seen.insert(str_of(&resource["resourceID"])) {
            causes.push(Cause::duplicate(format!("{path}.resourceID"), &resource["resourceID"]));
        }
    }
}
