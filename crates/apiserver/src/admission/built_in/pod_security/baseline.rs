//! The level `baseline`: forbids what is known to allow an escape from a container.

use std::collections::BTreeSet;
use std::iter;

use serde_json::Value;

use super::checks::{
    Checked, LATEST, PodCheck, USER_NAMESPACES, Violation, containers, forbidden_values, plural,
    quoted, setters, violation,
};
use crate::fields::{items, str_of};

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Kernel parameters that pods may set, and the minor version since which each is allowed.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];
/// SELinux types that pods may have, and the minor version since which each is allowed.
const SELINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];
const APPARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The minor version since which fields replace the seccomp annotations.
const SECCOMP_FIELDS: u32 = 19;
/// The minor version since which probes may only address their own pod.
const PROBE_HOSTS: u32 = 34;
/// The checks in the order in which violations are reported. The number is the minor version since
/// which a stricter check replaces this one at the level `restricted`.
pub(super) const CHECKS: [(PodCheck, u32); 12] = [
    (app_armor, LATEST),
    (capabilities, 22),
    (host_namespaces, LATEST),
    (host_paths, 0),
    (host_ports, LATEST),
    (probe_hosts, LATEST),
    (privileged, LATEST),
    (proc_mount, USER_NAMESPACES),
    (selinux, LATEST),
    (seccomp, SECCOMP_FIELDS),
    (sysctls, LATEST),
    (windows_host_process, LATEST),
];

fn app_armor(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let known = |kind: &str| ["Localhost", "RuntimeDefault"].contains(&kind);
    let (setters, types) = forbidden_values(pod, |c| &c["appArmorProfile"]["type"], known);
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let annotations = annotations.filter(|(key, _)| key.starts_with(APPARMOR_PREFIX));
    let mut notes: Vec<String> = annotations
        .map(|(key, value)| (key, str_of(value)))
        .filter(|(_, profile)| {
            !matches!(*profile, "" | "runtime/default") && !profile.starts_with("localhost/")
        })
        .map(|(key, profile)| format!("{key}={profile:?}"))
        .collect();
    notes.sort();
    let noted = plural("annotation", "annotations", notes.len());
    let all = [setters.as_str(), if notes.is_empty() { "" } else { noted }];
    let all: Vec<&str> = all.into_iter().filter(|text| !text.is_empty()).collect();
    if all.is_empty() {
        return None;
    }
    let values: Vec<&str> = types.into_iter().chain(notes.iter().map(String::as_str)).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let (all, values) = (all.join(" and "), quoted(values));
    violation(reason, format!("{all} must not set AppArmor profile type to {values}"))
}

/// Describes the containers that add other capabilities than `allowed`, and those capabilities.
pub(super) fn added_capabilities(pod: &Checked<'_>, allowed: &[&str]) -> Option<String> {
    fn added(container: &Value) -> &[Value] {
        items(&container["securityContext"]["capabilities"]["add"])
    }
    let bad = |capability: &&Value| !allowed.contains(&str_of(capability));
    let names = pod.containers().filter(|container| added(container).iter().any(|one| bad(&one)));
    let names: Vec<&str> = names.map(|container| str_of(&container["name"])).collect();
    let all: BTreeSet<&str> = pod.containers().flat_map(added).filter(bad).map(str_of).collect();
    let names = (!names.is_empty()).then(|| containers(&names))?;
    Some(format!("{names} must not include {} in securityContext.capabilities.add", quoted(all)))
}

fn capabilities(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    violation("non-default capabilities", added_capabilities(pod, &CAPABILITIES)?)
}

fn host_namespaces(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = shared.filter(|field| pod.spec[*field] == true);
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| violation("host namespaces", shared.join(", ")))?
}

fn host_paths(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let volumes = items(&pod.spec["volumes"]).iter().filter(|one| !one["hostPath"].is_null());
    let names: Vec<&str> = volumes.map(|volume| str_of(&volume["name"])).collect();
    let what = plural("volume", "volumes", names.len());
    (!names.is_empty())
        .then(|| violation("hostPath volumes", format!("{what} {}", quoted(names))))?
}

fn host_ports(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let used = |container: &Value| -> Vec<String> {
        let ports = items(&container["ports"]).iter().filter_map(|port| port["hostPort"].as_i64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let names = pod.names_where(|container| !used(container).is_empty());
    if names.is_empty() {
        return None;
    }
    let ports: BTreeSet<String> = pod.containers().flat_map(used).collect();
    let text = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", ports.len()),
        ports.into_iter().collect::<Vec<_>>().join(", ")
    );
    violation("hostPort", text)
}

fn probe_hosts(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version < PROBE_HOSTS {
        return None;
    }
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].into_iter();
        let lifecycle = ["postStart", "preStop"].into_iter();
        let probes = probes.map(|field| &container[field]);
        let all = probes.chain(lifecycle.map(|field| &container["lifecycle"][field]));
        let hosts = all.flat_map(|one| [&one["httpGet"]["host"], &one["tcpSocket"]["host"]]);
        hosts.map(str_of).filter(|host| !host.is_empty())
    }
    let names: BTreeSet<&str> =
        pod.names_where(|container| hosts(container).next().is_some()).into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let all: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let text = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("probe or lifecycle host", "probe or lifecycle hosts", all.len()),
        quoted(all)
    );
    violation("probe or lifecycle host", text)
}

fn privileged(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let names = pod.names_where(|container| container["securityContext"]["privileged"] == true);
    let text = || format!("{} must not set securityContext.privileged=true", containers(&names));
    (!names.is_empty()).then(|| violation("privileged", text()))?
}

fn proc_mount(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version >= USER_NAMESPACES && pod.has_own_users() {
        return None;
    }
    masked_proc(pod)
}

/// Finds containers with another `/proc` mount than the default one.
pub(super) fn masked_proc(pod: &Checked<'_>) -> Option<Violation> {
    let is_bad = |container: &Value| {
        !matches!(container["securityContext"]["procMount"].as_str(), None | Some("Default"))
    };
    let names = pod.names_where(is_bad);
    if names.is_empty() {
        return None;
    }
    let bad = pod.containers().filter(|container| is_bad(container));
    let types: BTreeSet<&str> =
        bad.map(|container| str_of(&container["securityContext"]["procMount"])).collect();
    let names = containers(&names);
    let text = format!("{names} must not set securityContext.procMount to {}", quoted(types));
    violation("procMount", text)
}

fn selinux(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    let bad_type = |options: &Value| {
        let known =
            |(name, since): &(&str, u32)| *name == str_of(&options["type"]) && version >= *since;
        !SELINUX_TYPES.iter().any(known)
    };
    let has = |options: &Value, field: &str| !str_of(&options[field]).is_empty();
    let is_bad = |context: &Value| {
        let options = &context["seLinuxOptions"];
        bad_type(options) || has(options, "user") || has(options, "role")
    };
    let by_pod = is_bad(&pod.spec["securityContext"]);
    let names = pod.names_where(|container| is_bad(&container["securityContext"]));
    let setters = setters(by_pod, &names);
    if setters.is_empty() {
        return None;
    }
    let contexts = pod.containers().map(|container| &container["securityContext"]);
    let contexts: Vec<&Value> = iter::once(&pod.spec["securityContext"]).chain(contexts).collect();
    let all = contexts.iter().map(|context| &context["seLinuxOptions"]);
    let types: BTreeSet<&str> =
        all.clone().filter(|one| bad_type(one)).map(|one| str_of(&one["type"])).collect();
    let mut details = Vec::new();
    if !types.is_empty() {
        details.push(format!("{} {}", plural("type", "types", types.len()), quoted(types)));
    }
    for field in ["user", "role"] {
        if all.clone().any(|one| has(one, field)) {
            details.push(format!("{field} may not be set"));
        }
    }
    let text =
        format!("{setters} set forbidden securityContext.seLinuxOptions: {}", details.join("; "));
    violation("seLinuxOptions", text)
}

/// Whether a seccomp profile type is allowed: `Localhost` and `RuntimeDefault` are.
pub(super) fn is_sound_seccomp(kind: &str) -> bool {
    ["Localhost", "RuntimeDefault"].contains(&kind)
}

fn seccomp(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    if version < SECCOMP_FIELDS {
        return seccomp_annotations(pod);
    }
    let (setters, types) =
        forbidden_values(pod, |c| &c["seccompProfile"]["type"], is_sound_seccomp);
    let text = || {
        format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(types))
    };
    (!setters.is_empty()).then(|| violation("seccompProfile", text()))?
}

fn seccomp_annotations(pod: &Checked<'_>) -> Option<Violation> {
    let containers = pod.containers();
    let keys = containers.map(|one| format!("{SECCOMP_PREFIX}{}", str_of(&one["name"])));
    let mut bad = BTreeSet::new();
    for key in iter::once(SECCOMP_POD.to_owned()).chain(keys) {
        let Some(profile) = pod.annotations[key.as_str()].as_str() else { continue };
        let known = matches!(profile, "runtime/default" | "docker/default");
        if !known && !profile.starts_with("localhost/") {
            bad.insert(format!("{key}={profile:?}"));
        }
    }
    let what = plural("annotation", "annotations", bad.len());
    let all = bad.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    (!bad.is_empty()).then(|| violation("seccompProfile", format!("forbidden {what} {all}")))?
}

fn sysctls(pod: &Checked<'_>, version: u32) -> Option<Violation> {
    let known = |name: &str| SYSCTLS.iter().any(|(one, since)| *one == name && version >= *since);
    let set = items(&pod.spec["securityContext"]["sysctls"]).iter();
    let bad: Vec<&str> = set.map(|one| str_of(&one["name"])).filter(|name| !known(name)).collect();
    (!bad.is_empty()).then(|| violation("forbidden sysctls", bad.join(", ")))?
}

fn windows_host_process(pod: &Checked<'_>, _: u32) -> Option<Violation> {
    let is_set = |owner: &Value| owner["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let setters = setters(is_set(pod.spec), &pod.names_where(is_set));
    let text = || format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    (!setters.is_empty()).then(|| violation("hostProcess", text()))?
}
