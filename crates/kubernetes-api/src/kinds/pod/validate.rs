//! Validation of a pod spec, in pods and in templates, with the messages and order of
//! kube-apiserver 1.36.

mod affinity;
mod container;
mod environment;
mod field_reference;
mod mount;
mod network;
mod placement;
mod probe;
mod resource_claim;
mod resources;
mod security;
mod status;
pub mod volume;
mod windows;

use std::collections::BTreeSet;

use api_meta::names::{self, NameCheck};
use api_meta::status::Cause;
use serde_json::Value;

pub use affinity::node_selector;
pub use container::ephemeral_container;
pub(super) use resources::requests_of_containers;
pub use resources::{
    container_name_problems, is_compressible, is_native, is_of_quotas, name_problems, of_container,
    of_node, of_quota,
};
pub use status::status;

use super::super::networking::port_problem;
use apiserver::fields::{items, str_of};

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: &[&str] = &["PreemptLowerPriority", "Never"];
const PRESENT_MIN: &str = "must be greater than or equal to 0";

/// Returns all causes to refuse the spec at `field`.
pub fn spec(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let volumes = volume::all(&format!("{field}.volumes"), &spec["volumes"], &mut causes);
    let claims_field = format!("{field}.resourceClaims");
    let claims = resource_claim::all(&claims_field, &spec["resourceClaims"], &mut causes);
    let pod = Pod { spec, volumes, claims };
    container::all(field, &pod, &mut causes);
    resources::of_pod(&format!("{field}.resources"), &pod, &mut causes);
    one_of(field, spec, "restartPolicy", RESTART_POLICIES, &mut causes);
    network::dns_policy(field, spec, &mut causes);
    let selector = format!("{field}.nodeSelector");
    causes.extend(api_meta::labels::validate_labels(&selector, &spec["nodeSelector"]));
    security::of_pod(field, spec, &mut causes);
    affinity::all(&format!("{field}.affinity"), &spec["affinity"], &mut causes);
    network::dns_config(&format!("{field}.dnsConfig"), spec, &mut causes);
    placement::gates(field, spec, &mut causes);
    placement::spread(field, spec, &mut causes);
    windows::host_processes(field, spec, &mut causes);
    security::host_users(field, spec, &mut causes);
    network::hostname_override(field, spec, &mut causes);
    lone_fields(field, spec, &mut causes);
    windows::operating_system(field, spec, &mut causes);
    causes
}

/// Returns all causes to refuse the template at `field`.
pub fn template(field: &str, template: &Value) -> Vec<Cause> {
    let mut causes = template_metadata(field, template);
    causes.extend(spec(&format!("{field}.spec"), &template["spec"]));
    if !items(&template["spec"]["ephemeralContainers"]).is_empty() {
        let text = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(format!("{field}.spec.ephemeralContainers"), text));
    }
    causes
}

/// Causes for the labels and annotations of a template, at the fields where upstream reports them.
pub fn template_metadata(field: &str, template: &Value) -> Vec<Cause> {
    let metadata = &template["metadata"];
    let mut causes =
        api_meta::labels::validate_labels(&format!("{field}.labels"), &metadata["labels"]);
    let path = format!("{field}.annotations");
    causes.extend(api_meta::labels::validate_annotations(&path, &metadata["annotations"]));
    causes
}

/// Causes that apply only to pods and not to templates.
pub fn pod_only(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for kind in ["containers", "initContainers"] {
        for (path, container) in each(&format!("spec.{kind}"), &spec[kind]) {
            container::image_is_trimmed(&path, container, &mut causes);
        }
    }
    causes
}

/// Causes for the images of containers at `field`.
pub fn images(field: &str, containers: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (path, container) in each(field, containers) {
        require_text(&format!("{path}.image"), &container["image"], &mut causes);
        container::image_is_trimmed(&path, container, &mut causes);
    }
    causes
}

/// Causes for a list of tolerations at `field`.
pub fn tolerations(field: &str, list: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    placement::tolerations(field, list, &mut causes);
    causes
}

/// A pod's spec, and the names in it that containers refer to.
struct Pod<'a> {
    spec: &'a Value,
    /// Only valid volumes.
    volumes: volume::Volumes<'a>,
    claims: resource_claim::Names<'a>,
}

fn lone_fields(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let mut check = |name: &str, check: NameCheck| {
        name_if_any(&format!("{field}.{name}"), &spec[name], check, causes);
    };
    check("serviceAccountName", names::dns1123_subdomain);
    check("nodeName", names::dns1123_subdomain);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let text = "must be between 1 and 2147483647, inclusive";
        let path = format!("{field}.activeDeadlineSeconds");
        causes.push(Cause::invalid(path, &seconds.into(), text));
    }
    let mut check = |name: &str, check: NameCheck| {
        name_if_any(&format!("{field}.{name}"), &spec[name], check, causes);
    };
    check("hostname", names::dns1123_label);
    check("subdomain", names::dns1123_label);
    placement::tolerations(&format!("{field}.tolerations"), &spec["tolerations"], causes);
    network::host_aliases(&format!("{field}.hostAliases"), &spec["hostAliases"], causes);
    name_if_any(
        &format!("{field}.priorityClassName"),
        &spec["priorityClassName"],
        names::dns1123_subdomain,
        causes,
    );
    if spec["runtimeClassName"].is_string() {
        let path = format!("{field}.runtimeClassName");
        name(&path, &spec["runtimeClassName"], names::dns1123_subdomain, causes);
    }
    match &spec["preemptionPolicy"] {
        Value::String(policy) if policy.is_empty() => {
            causes.push(Cause::required(format!("{field}.preemptionPolicy"), ""));
        }
        _ => one_of(field, spec, "preemptionPolicy", PREEMPTION_POLICIES, causes),
    }
    resources::overhead(&format!("{field}.overhead"), &spec["overhead"], causes);
}

/// The items of a list with their paths.
fn each<'a>(field: &str, list: &'a Value) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    let field = field.to_owned();
    let at = move |(index, value)| (format!("{field}[{index}]"), value);
    items(list).iter().enumerate().map(at)
}

/// All init, regular and ephemeral containers.
fn every_container<'a>(field: &str, spec: &'a Value) -> Vec<(String, &'a Value)> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds.iter().flat_map(|kind| each(&format!("{field}.{kind}"), &spec[kind])).collect()
}

/// A text of a set. An empty text has a default.
fn one_of(field: &str, object: &Value, name: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    let value = str_of(&object[name]);
    if !value.is_empty() && !allowed.contains(&value) {
        causes.push(Cause::not_supported(format!("{field}.{name}"), &object[name], allowed));
    }
}

/// A required text of a set; appends a cause for each problem.
pub fn require_one_of(path: &str, value: &Value, allowed: &[&str], causes: &mut Vec<Cause>) {
    let value = str_of(value);
    if !allowed.contains(&value) {
        causes.push(Cause::not_supported(path, &value.into(), allowed));
    }
}

/// Returns whether the text is set; appends a cause when it is not.
pub fn require_text(path: &str, value: &Value, causes: &mut Vec<Cause>) -> bool {
    let is_empty = str_of(value).is_empty();
    if is_empty {
        causes.push(Cause::required(path, ""));
    }
    !is_empty
}

/// Validates a required name with `check`; appends a cause for each problem.
pub fn name(path: &str, value: &Value, check: NameCheck, causes: &mut Vec<Cause>) {
    let text = str_of(value);
    causes.extend(check(text).iter().map(|why| Cause::invalid(path, &text.into(), why)));
}

fn name_if_any(path: &str, value: &Value, check: NameCheck, causes: &mut Vec<Cause>) {
    if !str_of(value).is_empty() {
        name(path, value, check, causes);
    }
}

fn required_name(path: &str, value: &Value, check: NameCheck, causes: &mut Vec<Cause>) {
    if require_text(path, value, causes) {
        name(path, value, check, causes);
    }
}

fn not_found(path: &str, value: &str) -> Cause {
    Cause::new("FieldValueNotFound", path, format!("Not found: {}", Value::from(value)))
}

/// A number. Like in Go, an absent one is zero.
fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Checks that a number, if it is set, is within `range`.
fn within(
    path: &str,
    value: &Value,
    range: std::ops::RangeInclusive<i64>,
    text: &str,
    causes: &mut Vec<Cause>,
) {
    if value.as_i64().is_some_and(|number| !range.contains(&number)) {
        causes.push(Cause::invalid(path, value, text));
    }
}

fn port_number(path: &str, number: i64, causes: &mut Vec<Cause>) {
    causes.extend(port_problem(path, &number.into()));
}

/// A relative path without `..`.
fn descending_path(path: &str, value: &Value, causes: &mut Vec<Cause>) {
    if str_of(value).starts_with('/') {
        causes.push(Cause::invalid(path, value, "must be a relative path"));
    }
    no_backsteps(path, value, causes);
}

/// Checks that a path has no segment `..`; appends a cause when it has.
pub fn no_backsteps(path: &str, value: &Value, causes: &mut Vec<Cause>) {
    if str_of(value).split('/').any(|part| part == "..") {
        causes.push(Cause::invalid(path, value, "must not contain '..'"));
    }
}

/// A relative path without `..` that differs from the kubelet's own names.
fn free_path(path: &str, value: &Value, causes: &mut Vec<Cause>) {
    descending_path(path, value, causes);
    let text = str_of(value);
    if text.starts_with("..") && !text.starts_with("../") && text != ".." {
        causes.push(Cause::invalid(path, value, "must not start with '..'"));
    }
}

/// Reports duplicate texts, and adds new ones to `seen`.
fn duplicate<'a>(
    path: &str,
    value: &'a str,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    if !seen.insert(value) {
        causes.push(Cause::duplicate(path, &value.into()));
    }
}
