//! The level `restricted`: what it forbids beyond `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline::{added_capabilities, is_sound_seccomp, masked_proc};
use super::checks::{
    Checked, PodCheck, USER_NAMESPACES, Violation, containers, forbidden_values, plural, quoted,
    setters, violation,
};
use crate::fields::{items, str_of};

/// The minor versions since which the fields exist that a check is about.
const ESCALATION_SINCE: u32 = 8;
const SECCOMP_SINCE: u32 = 19;
const CAPABILITIES_SINCE: u32 = 22;
const USER_SINCE: u32 = 23;
/// The minor version since which pods for Windows need not set fields that Windows does not have.
const WINDOWS_SINCE: u32 = 25;

/// Volumes that any pod may have.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The checks in the order in which violations are reported.
pub(super) const CHECKS: [PodCheck; 7] = [
    privilege_escalation,
    capabilities,
    proc_mount,
    volumes,
    run_as_non_root,
    run_as_user,
    seccomp,
];

fn is_for_windows(pod: &Checked<'_>, version: u32) -> bool {
    version >= WINDOWS_SINCE && pod.spec["os"]["name"] == "windows"
}

fn privilege_escalation(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version < ESCALATION_SINCE || is_for_windows(pod, version) {
        return None;
    }
    let names = pod
        .names_where(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    let text = || {
        let names = containers(&names);
        format!("{names} must set securityContext.allowPrivilegeEscalation=false")
    };
    (!names.is_empty()).then(|| violation("allowPrivilegeEscalation != false", text()))?
}

fn capabilities(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version < CAPABILITIES_SINCE || is_for_windows(pod, version) {
        return None;
    }
    let not_dropping = pod.names_where(|container| {
        let dropped = items(&container["securityContext"]["capabilities"]["drop"]);
        !dropped.iter().any(|one| one == "ALL")
    });
    let mut details = Vec::new();
    if !not_dropping.is_empty() {
        let names = containers(&not_dropping);
        details.push(format!("{names} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    details.extend(added_capabilities(pod, &["NET_BIND_SERVICE"]));
    (!details.is_empty()).then(|| violation("unrestricted capabilities", details.join("; ")))?
}

fn proc_mount(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    (version >= USER_NAMESPACES).then(|| masked_proc(pod))?
}

fn volumes(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let source = |volume: &'_ Value| -> Option<String> {
        let fields = volume.as_object().into_iter().flatten();
        let mut sources = fields.filter(|(key, value)| *key != "name" && !value.is_null());
        sources.next().map(|(key, _)| key.clone())
    };
    let bad =
        |volume: &&Value| source(volume).is_none_or(|source| !VOLUMES.contains(&source.as_str()));
    let bad: Vec<&Value> = items(&pod.spec["volumes"]).iter().filter(bad).collect();
    if bad.is_empty() {
        return None;
    }
    let types: BTreeSet<String> =
        bad.iter().map(|volume| source(volume).unwrap_or_else(|| "unknown".to_owned())).collect();
    let text = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", bad.len()),
        quoted(bad.iter().map(|volume| str_of(&volume["name"]))),
        plural("uses", "use", bad.len()),
        plural("restricted volume type", "restricted volume types", types.len()),
        quoted(types.iter().map(String::as_str))
    );
    violation("restricted volume types", text)
}

fn run_as_non_root(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if version >= USER_NAMESPACES && pod.has_own_users() {
        return None;
    }
    let own = |owner: &Value| owner["securityContext"]["runAsNonRoot"].as_bool();
    let by_pod = own(pod.spec);
    let root = |owner: &Value| own(owner) == Some(false);
    let setters = setters(root(pod.spec), &pod.names_where(root));
    if !setters.is_empty() {
        let text = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return violation(REASON, text);
    }
    if by_pod == Some(true) {
        return None;
    }
    let names = pod.names_where(|container| own(container).is_none());
    let text = || {
        let names = containers(&names);
        format!("pod or {names} must set securityContext.runAsNonRoot=true")
    };
    (!names.is_empty()).then(|| violation(REASON, text()))?
}

fn run_as_user(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version < USER_SINCE || version >= USER_NAMESPACES && pod.has_own_users() {
        return None;
    }
    let root = |owner: &Value| owner["securityContext"]["runAsUser"] == 0;
    let setters = setters(root(pod.spec), &pod.names_where(root));
    (!setters.is_empty())
        .then(|| violation("runAsUser=0", format!("{setters} must not set runAsUser=0")))?
}

fn seccomp(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    const REASON: &str = "seccompProfile";
    if version < SECCOMP_SINCE || is_for_windows(pod, version) {
        return None;
    }
    let (setters, types) =
        forbidden_values(pod, |c| &c["seccompProfile"]["type"], is_sound_seccomp);
    if !setters.is_empty() {
        let types = quoted(types);
        let text = format!("{setters} must not set securityContext.seccompProfile.type to {types}");
        return violation(REASON, text);
    }
    let is_set = |owner: &Value| !owner["securityContext"]["seccompProfile"].is_null();
    if is_set(pod.spec) {
        return None;
    }
    let names = pod.names_where(|container| !is_set(container));
    let text = || {
        let names = containers(&names);
        format!(
            "pod or {names} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        )
    };
    (!names.is_empty()).then(|| violation(REASON, text()))?
}
