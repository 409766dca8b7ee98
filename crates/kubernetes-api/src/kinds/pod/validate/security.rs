//! Security contexts of a pod and of its containers.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::{Value, json};

use super::{each, every_container, int, one_of, require_one_of, windows};

const ID_TEXT: &str = "must be between 0 and 2147483647, inclusive";
const ID_RANGE: std::ops::RangeInclusive<i64> = 0..=2_147_483_647;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const PROC_MOUNTS: [&str; 2] = ["Default", "Unmasked"];
const GROUP_CHANGES: [&str; 2] = ["Always", "OnRootMismatch"];
const GROUP_POLICIES: [&str; 2] = ["Merge", "Strict"];
/// `MountOption` is behind a feature gate that is disabled.
const LABEL_CHANGES: [&str; 1] = ["Recursive"];
const SYSCTL_LENGTH_MAX: usize = 253;
const SYSCTL_TEXT: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const LOCAL_PROFILE_LENGTH_MAX: usize = 4095;

/// Validates the `securityContext` of the pod whose spec is at `field`.
pub fn of_pod(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["hostNetwork"] == true {
        host_network(field, spec, causes);
    }
    let context = &spec["securityContext"];
    let path = format!("{field}.securityContext");
    let at = |name: &str| format!("{path}.{name}");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        super::within(&at(name), &context[name], ID_RANGE, ID_TEXT, causes);
    }
    for (path, group) in each(&at("supplementalGroups"), &context["supplementalGroups"]) {
        super::within(&path, group, ID_RANGE, ID_TEXT, causes);
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let text = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(Cause::invalid(at("shareProcessNamespace"), &true.into(), text));
    }
    sysctls(&at("sysctls"), spec, causes);
    one_of(&path, context, "fsGroupChangePolicy", &GROUP_CHANGES, causes);
    seccomp(&at("seccompProfile"), &context["seccompProfile"], causes);
    windows::options(&at("windowsOptions"), &context["windowsOptions"], causes);
    app_armor(&at("appArmorProfile"), &context["appArmorProfile"], causes);
    one_of(&path, context, "supplementalGroupsPolicy", &GROUP_POLICIES, causes);
    one_of(&path, context, "seLinuxChangePolicy", &LABEL_CHANGES, causes);
}

/// In the host network a port is the same inside and outside.
fn host_network(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    for (path, container) in each(&format!("{field}.containers"), &spec["containers"]) {
        for (path, port) in each(&format!("{path}.ports"), &container["ports"]) {
            let number = int(&port["hostPort"]);
            if number != 0 && number != int(&port["containerPort"]) {
                let text = "must match `containerPort` when `hostNetwork` is true";
                let path = format!("{path}.hostPort");
                causes.push(Cause::invalid(path, &port["hostPort"], text));
            }
        }
    }
}

fn sysctls(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (path, sysctl) in each(field, &spec["securityContext"]["sysctls"]) {
        let (path, name) = (format!("{path}.name"), str_of(&sysctl["name"]));
        if !super::require_text(&path, &sysctl["name"], causes) {
            continue;
        }
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = |part: &str| {
            let part = part.as_bytes();
            part.first().is_some_and(is_end)
                && part.last().is_some_and(is_end)
                && part.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
        };
        if name.len() > SYSCTL_LENGTH_MAX || !name.split(['.', '/']).all(fits) {
            causes.push(Cause::invalid(&path, &name.into(), SYSCTL_TEXT));
        }
        if spec["hostNetwork"] == true && to_dotted(name).starts_with("net.") {
            let text = "may not be specified when 'hostNetwork' is true";
            causes.push(Cause::invalid(&path, &name.into(), text));
        }
        if !seen.insert(name) {
            causes.push(Cause::duplicate(path, &name.into()));
        }
    }
}

/// Converts a name with slashes as separators to dots. The first separator decides which of both
/// separates; the other is then part of a segment.
fn to_dotted(name: &str) -> String {
    match name.find(['.', '/']).map(|at| &name[at..=at]) {
        Some("/") => {
            let swap = |character| match character {
                '/' => '.',
                '.' => '/',
                other => other,
            };
            name.chars().map(swap).collect()
        }
        _ => name.to_owned(),
    }
}

/// Validates the `securityContext` of a container in a pod with `spec`.
pub fn of_container(path: &str, container: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    let context = &container["securityContext"];
    let at = |name: &str| format!("{path}.{name}");
    for name in ["runAsUser", "runAsGroup"] {
        super::within(&at(name), &context[name], ID_RANGE, ID_TEXT, causes);
    }
    let mount = &context["procMount"];
    if mount.is_string() {
        require_one_of(&at("procMount"), mount, &PROC_MOUNTS, causes);
    }
    if mount == "Unmasked" && spec["hostUsers"] != false {
        let text = "`hostUsers` must be false to use `Unmasked`";
        causes.push(Cause::invalid(at("procMount"), mount, text));
    }
    seccomp(&at("seccompProfile"), &context["seccompProfile"], causes);
    if context["allowPrivilegeEscalation"] == false {
        let mut contradiction = |what: &str| {
            let message = format!(
                "Invalid value: {}: cannot set `allowPrivilegeEscalation` to false and {what}",
                format_context(context)
            );
            causes.push(Cause::new("FieldValueInvalid", path, message));
        };
        if context["privileged"] == true {
            contradiction("`privileged` to true");
        }
        if items(&context["capabilities"]["add"]).iter().any(|add| add == "CAP_SYS_ADMIN") {
            contradiction("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    windows::options(&at("windowsOptions"), &context["windowsOptions"], causes);
    app_armor(&at("appArmorProfile"), &context["appArmorProfile"], causes);
}

/// A security context in the notation in which upstream prints its own struct: every field, in its
/// order.
fn format_context(context: &Value) -> String {
    let object = |value: &Value, fields: &[(&str, &Value)]| {
        if value.is_null() {
            return "null".to_owned();
        }
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    };
    let profile = |value: &Value| {
        let (kind, local) = (json!(str_of(&value["type"])), &value["localhostProfile"]);
        object(value, &[("Type", &kind), ("LocalhostProfile", local)])
    };
    let capabilities = &context["capabilities"];
    let labels = &context["seLinuxOptions"];
    let label = |name: &str| json!(str_of(&labels[name]));
    let options = &context["windowsOptions"];
    let of_labels = [
        ("User", &label("user")),
        ("Role", &label("role")),
        ("Type", &label("type")),
        ("Level", &label("level")),
    ];
    let of_options = [
        ("GMSACredentialSpecName", &options["gmsaCredentialSpecName"]),
        ("GMSACredentialSpec", &options["gmsaCredentialSpec"]),
        ("RunAsUserName", &options["runAsUserName"]),
        ("HostProcess", &options["hostProcess"]),
    ];
    let of_capabilities = [("Add", &capabilities["add"]), ("Drop", &capabilities["drop"])];
    let plain = |name: &str| context[name].to_string();
    let fields = [
        ("Capabilities", object(capabilities, &of_capabilities)),
        ("Privileged", plain("privileged")),
        ("SELinuxOptions", object(labels, &of_labels)),
        ("WindowsOptions", object(options, &of_options)),
        ("RunAsUser", plain("runAsUser")),
        ("RunAsGroup", plain("runAsGroup")),
        ("RunAsNonRoot", plain("runAsNonRoot")),
        ("ReadOnlyRootFilesystem", plain("readOnlyRootFilesystem")),
        ("AllowPrivilegeEscalation", plain("allowPrivilegeEscalation")),
        ("ProcMount", plain("procMount")),
        ("SeccompProfile", profile(&context["seccompProfile"])),
        ("AppArmorProfile", profile(&context["appArmorProfile"])),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn profile_type(path: &str, field: &str, profile: &Value, causes: &mut Vec<Cause>) {
    let path = format!("{path}.type");
    if str_of(&profile["type"]).is_empty() {
        let text = format!("type is required when {field} is set");
        causes.push(Cause::required(path, &text));
    } else {
        require_one_of(&path, &profile["type"], &PROFILE_TYPES, causes);
    }
}

fn seccomp(path: &str, profile: &Value, causes: &mut Vec<Cause>) {
    if !profile.is_object() {
        return;
    }
    profile_type(path, "seccompProfile", profile, causes);
    let (path, local) = (format!("{path}.localhostProfile"), &profile["localhostProfile"]);
    if profile["type"] == "Localhost" {
        if local.is_null() {
            causes.push(Cause::required(path, "must be set when seccomp type is Localhost"));
        } else {
            super::descending_path(&path, local, causes);
        }
    } else if !local.is_null() {
        let message = format!(
            "Invalid value: {{\"Type\":{},\"LocalhostProfile\":{local}}}: can only be set when \
             seccomp type is Localhost",
            json!(str_of(&profile["type"]))
        );
        causes.push(Cause::new("FieldValueInvalid", path, message));
    }
}

fn app_armor(path: &str, profile: &Value, causes: &mut Vec<Cause>) {
    if !profile.is_object() {
        return;
    }
    profile_type(path, "appArmorProfile", profile, causes);
    let (path, local) = (format!("{path}.localhostProfile"), &profile["localhostProfile"]);
    let text = str_of(local);
    if profile["type"] != "Localhost" {
        if !local.is_null() {
            let text = "can only be set when AppArmor type is Localhost";
            causes.push(Cause::invalid(path, local, text));
        }
    } else if text.trim().is_empty() {
        causes.push(Cause::required(path, "must be set when AppArmor type is Localhost"));
    } else {
        if text != text.trim() {
            causes.push(Cause::invalid(&path, local, "must not be padded with whitespace"));
        }
        if text.len() > LOCAL_PROFILE_LENGTH_MAX {
            causes.push(Cause::too_long(path, LOCAL_PROFILE_LENGTH_MAX));
        }
    }
}

/// Validates `hostUsers`: fields that cannot be combined with a user namespace.
pub fn host_users(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["hostUsers"] != false {
        return;
    }
    let text = "when `hostUsers` is false";
    // Two of them are reported by upstream's own names.
    for (name, shown) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if spec[name] == true {
            causes.push(Cause::forbidden(format!("{field}.{shown}"), text));
        }
    }
    for (path, container) in every_container(field, spec) {
        if !items(&container["volumeDevices"]).is_empty() {
            causes.push(Cause::forbidden(format!("{path}.volumeDevices"), text));
        }
    }
}
