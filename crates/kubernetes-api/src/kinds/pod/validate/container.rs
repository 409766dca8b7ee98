//! Init, regular and ephemeral containers.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::{
    Pod, each, int, not_found, one_of, port_number, require_one_of, require_text, required_name,
};
use super::{environment, mount, probe, resource_claim, resources, security};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
pub const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RULE_ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const RULE_OPERATORS: [&str; 2] = ["In", "NotIn"];
const GRACE_SECONDS_PRESET: i64 = 30;
/// Fields that an ephemeral container cannot have, in the order of their causes.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
];
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";

/// Validates all containers of the spec at `field`.
pub(super) fn all(field: &str, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let spec = pod.spec;
    let grace = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(GRACE_SECONDS_PRESET);
    let path = format!("{field}.containers");
    if items(&spec["containers"]).is_empty() {
        causes.push(Cause::required(&path, ""));
    }
    let mut seen = BTreeSet::new();
    for (path, container) in each(&path, &spec["containers"]) {
        common(&path, container, pod, causes);
        let name = str_of(&container["name"]);
        super::duplicate(&format!("{path}.name"), name, &mut seen, causes);
        probe::all(&path, container, grace, causes);
        restart(&path, container, causes);
    }
    host_ports(each(&path, &spec["containers"]), causes);
    for (path, container) in each(&format!("{field}.initContainers"), &spec["initContainers"]) {
        common(&path, container, pod, causes);
        restart(&path, container, causes);
        let name = str_of(&container["name"]);
        super::duplicate(&format!("{path}.name"), name, &mut seen, causes);
        host_ports([(path.clone(), container)].into_iter(), causes);
        if container["restartPolicy"] == "Always" {
            probe::all(&path, container, grace, causes);
            continue;
        }
        let of_sidecars = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];
        for name in of_sidecars.iter().filter(|name| container[name].is_object()) {
            causes.push(Cause::forbidden(format!("{path}.{name}"), ONLY_SIDECARS));
        }
    }
    let ephemeral = format!("{field}.ephemeralContainers");
    for (path, container) in each(&ephemeral, &spec["ephemeralContainers"]) {
        common(&path, container, pod, causes);
        of_ephemeral(&path, container, spec, &mut seen, causes);
    }
}

/// Validates an ephemeral container that is added to a running pod with `spec`. `seen` are the
/// names in use.
pub fn ephemeral_container<'a>(
    path: &str,
    container: &'a Value,
    spec: &Value,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let mut ignored = Vec::new();
    let volumes = super::volume::all("", &spec["volumes"], &mut ignored);
    let claims = resource_claim::all("", &spec["resourceClaims"], &mut ignored);
    common(path, container, &Pod { spec, volumes, claims }, causes);
    of_ephemeral(path, container, spec, seen, causes);
}

fn of_ephemeral<'a>(
    path: &str,
    container: &'a Value,
    spec: &Value,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    super::duplicate(&format!("{path}.name"), str_of(&container["name"]), seen, causes);
    let target = str_of(&container["targetContainerName"]);
    let mut others =
        ["containers", "initContainers"].into_iter().flat_map(|kind| items(&spec[kind]));
    if !target.is_empty() && !others.any(|other| other["name"] == target) {
        causes.push(not_found(&format!("{path}.targetContainerName"), target));
    }
    let is_set = |name: &&str| match &container[name] {
        Value::Null => false,
        Value::Object(map) => !(map.is_empty() && *name == "resources"),
        _ => true,
    };
    for name in NOT_EPHEMERAL.into_iter().filter(is_set) {
        let text = "cannot be set for an Ephemeral Container";
        causes.push(Cause::forbidden(format!("{path}.{name}"), text));
    }
    image_is_trimmed(path, container, causes);
    for (mount_path, given) in each(&format!("{path}.volumeMounts"), &container["volumeMounts"]) {
        for name in ["subPath", "subPathExpr"] {
            if !str_of(&given[name]).is_empty() {
                let text = "cannot be set for an Ephemeral Container";
                causes.push(Cause::forbidden(format!("{mount_path}.{name}"), text));
            }
        }
    }
}

/// Fields of containers of all types.
fn common(path: &str, container: &Value, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let at = |name: &str| format!("{path}.{name}");
    required_name(&at("name"), &container["name"], names::dns1123_label, causes);
    require_text(&at("image"), &container["image"], causes);
    one_of(path, container, "terminationMessagePolicy", &MESSAGE_POLICIES, causes);
    ports(&at("ports"), &container["ports"], causes);
    environment::variables(&at("env"), &container["env"], &pod.volumes, causes);
    environment::sources(&at("envFrom"), &container["envFrom"], causes);
    mount::volumes(path, container, &pod.volumes, causes);
    mount::devices(path, container, &pod.volumes, causes);
    one_of(path, container, "imagePullPolicy", &PULL_POLICIES, causes);
    resources::of_container(&at("resources"), &container["resources"], causes);
    let claims = &container["resources"]["claims"];
    resource_claim::uses(&at("resources.claims"), claims, &pod.claims, causes);
    let policy = str_of(&pod.spec["restartPolicy"]);
    resources::resize_policy(&at("resizePolicy"), &container["resizePolicy"], policy, causes);
    security::of_container(&at("securityContext"), container, pod.spec, causes);
}

/// In pods, image names must not have spaces around them; templates may have them.
pub(super) fn image_is_trimmed(path: &str, container: &Value, causes: &mut Vec<Cause>) {
    let image = str_of(&container["image"]);
    if image != image.trim() {
        let text = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{path}.image"), &container["image"], text));
    }
}

fn ports(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (path, port) in each(field, list) {
        let name = str_of(&port["name"]);
        if !name.is_empty() {
            let problems = names::port_name(name);
            let path = format!("{path}.name");
            if problems.is_empty() {
                super::duplicate(&path, name, &mut seen, causes);
            }
            causes.extend(problems.iter().map(|why| Cause::invalid(&path, &name.into(), why)));
        }
        match int(&port["containerPort"]) {
            0 => causes.push(Cause::required(format!("{path}.containerPort"), "")),
            number => port_number(&format!("{path}.containerPort"), number, causes),
        }
        match int(&port["hostPort"]) {
            0 => {}
            number => port_number(&format!("{path}.hostPort"), number, causes),
        }
        one_of(&path, port, "protocol", &PROTOCOLS, causes);
    }
}

/// A host port is used once for each protocol and address.
fn host_ports<'a>(containers: impl Iterator<Item = (String, &'a Value)>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (path, container) in containers {
        for (path, port) in each(&format!("{path}.ports"), &container["ports"]) {
            let number = int(&port["hostPort"]);
            if number == 0 {
                continue;
            }
            let protocol = match str_of(&port["protocol"]) {
                "" => "TCP",
                protocol => protocol,
            };
            let key = format!("{protocol}/{}/{number}", str_of(&port["hostIP"]));
            if seen.contains(&key) {
                let value = Value::from(key);
                causes.push(Cause::duplicate(format!("{path}.hostPort"), &value));
            } else {
                seen.insert(key);
            }
        }
    }
}

/// The restart policy of a container, apart from the pod's.
fn restart(path: &str, container: &Value, causes: &mut Vec<Cause>) {
    let field = format!("{path}.restartPolicy");
    let rules = &container["restartPolicyRules"];
    match &container["restartPolicy"] {
        Value::Null if !items(rules).is_empty() => {
            let text = "must specify restartPolicy when restart rules are used";
            causes.push(Cause::required(field, text));
            return;
        }
        Value::Null => {}
        policy => require_one_of(&field, policy, &RESTART_POLICIES, causes),
    }
    for (path, rule) in each(&format!("{path}.restartPolicyRules"), rules) {
        require_one_of(&format!("{path}.action"), &rule["action"], &RULE_ACTIONS, causes);
        let codes = &rule["exitCodes"];
        if codes.is_null() {
            causes.push(Cause::required(format!("{path}.exitCodes"), "must be specified"));
        } else {
            let path = format!("{path}.exitCodes.operator");
            require_one_of(&path, &codes["operator"], &RULE_OPERATORS, causes);
        }
    }
}
