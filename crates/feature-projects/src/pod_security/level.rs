//! The Pod Security level that stands for a PodSecurityPolicy (ADR 27): the strictest one that
//! every pod meets which the policy lets run. What the policy demands beyond that level nobody
//! checks any more; [`not_covered`] names it.
//!
//! Profiles of seccomp and AppArmor are annotations of a policy, which templates cannot have, so
//! they do not count. Nor does SELinux under the rule `RunAsAny`, which says nothing on nodes
//! without it.

use api_management::pod_security_policy_template::{IdRule, PodSecurityPolicySpec, SeLinuxRule};

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    /// Its name in labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// Capabilities that the level baseline lets containers add.
const BASELINE_CAPABILITIES: [&str; 13] = [
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
/// Those that the level restricted lets containers add.
const RESTRICTED_CAPABILITIES: [&str; 1] = ["NET_BIND_SERVICE"];
/// Types of SELinux contexts that the level baseline lets containers have.
const BASELINE_SELINUX_TYPES: [&str; 4] =
    ["", "container_t", "container_init_t", "container_kvm_t"];
/// The kinds of volumes of the level restricted.
const RESTRICTED_VOLUMES: [&str; 8] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const ALL: &str = "*";
const HOST_PATH: &str = "hostPath";
const MUST_RUN_AS: &str = "MustRunAs";
const NOT_AS_ROOT: &str = "MustRunAsNonRoot";
const MAY_RUN_AS: &str = "MayRunAs";

/// The level that stands for the policy.
pub fn level_of(spec: &PodSecurityPolicySpec) -> Level {
    if !is_baseline(spec) {
        Level::Privileged
    } else if !is_restricted(spec) {
        Level::Baseline
    } else {
        Level::Restricted
    }
}

fn is_baseline(spec: &PodSecurityPolicySpec) -> bool {
    let has_host = spec.host_network || spec.host_pid || spec.host_ipc;
    let has_host_ports = spec.host_ports.iter().any(|range| range.max > 0);
    let has_host_paths = spec.volumes.iter().any(|kind| kind == ALL || kind == HOST_PATH);
    let proc_mounts = &spec.allowed_proc_mount_types;
    !(spec.privileged || has_host || has_host_ports || has_host_paths)
        && adds_only(spec, &BASELINE_CAPABILITIES)
        && spec.allowed_unsafe_sysctls.is_empty()
        && proc_mounts.iter().all(|kind| kind == "Default")
        && is_baseline_selinux(&spec.se_linux)
}

fn is_baseline_selinux(rule: &SeLinuxRule) -> bool {
    let context = &rule.se_linux_options;
    rule.rule != MUST_RUN_AS
        || (BASELINE_SELINUX_TYPES.contains(&context.type_.as_str())
            && context.user.is_empty()
            && context.role.is_empty())
}

fn is_restricted(spec: &PodSecurityPolicySpec) -> bool {
    let drops = &spec.required_drop_capabilities;
    spec.allow_privilege_escalation == Some(false)
        && drops.iter().any(|capability| capability.eq_ignore_ascii_case("ALL"))
        && adds_only(spec, &RESTRICTED_CAPABILITIES)
        && is_never_root(&spec.run_as_user)
        && spec.volumes.iter().all(|kind| RESTRICTED_VOLUMES.contains(&kind.as_str()))
}

fn adds_only(spec: &PodSecurityPolicySpec, allowed: &[&str]) -> bool {
    let added = spec.allowed_capabilities.iter().chain(&spec.default_add_capabilities);
    added.into_iter().all(|capability| allowed.contains(&capability.as_str()))
}

fn is_never_root(rule: &IdRule) -> bool {
    match rule.rule.as_str() {
        NOT_AS_ROOT => true,
        MUST_RUN_AS => !rule.ranges.is_empty() && rule.ranges.iter().all(|range| range.min > 0),
        _ => false,
    }
}

/// The fields of the policy whose demands the level does not make, as the REST view names them.
pub fn not_covered(spec: &PodSecurityPolicySpec) -> Vec<&'static str> {
    let level = level_of(spec);
    let (is_privileged, is_restricted) = (level == Level::Privileged, level == Level::Restricted);
    let demands_ids = |rule: &IdRule| [MUST_RUN_AS, MAY_RUN_AS].contains(&rule.rule.as_str());
    let has_all_volumes = spec.volumes.iter().any(|kind| kind == ALL);
    let has_level_volumes = is_restricted
        && RESTRICTED_VOLUMES.iter().all(|kind| spec.volumes.iter().any(|known| known == kind));
    let user_is_covered = is_restricted && spec.run_as_user.rule == NOT_AS_ROOT;
    let drops = &spec.required_drop_capabilities;
    let class = &spec.runtime_class;
    let fields = [
        ("privileged", is_privileged && !spec.privileged),
        ("hostNetwork", is_privileged && !spec.host_network),
        ("hostPID", is_privileged && !spec.host_pid),
        ("hostIPC", is_privileged && !spec.host_ipc),
        ("hostPorts", is_privileged && !opens_all_ports(spec)),
        (
            "allowPrivilegeEscalation",
            !is_restricted && spec.allow_privilege_escalation == Some(false),
        ),
        (
            "allowedCapabilities",
            is_privileged && !spec.allowed_capabilities.iter().any(|it| it == ALL),
        ),
        ("requiredDropCapabilities", !is_restricted && !drops.is_empty()),
        ("volumes", !has_all_volumes && !has_level_volumes),
        ("allowedCSIDrivers", !spec.allowed_csi_drivers.is_empty()),
        ("allowedFlexVolumes", !spec.allowed_flex_volumes.is_empty()),
        ("allowedHostPaths", !spec.allowed_host_paths.is_empty()),
        ("forbiddenSysctls", !spec.forbidden_sysctls.is_empty()),
        ("readOnlyRootFilesystem", spec.read_only_root_filesystem),
        (
            "runAsUser",
            !spec.run_as_user.rule.is_empty()
                && spec.run_as_user.rule != "RunAsAny"
                && !user_is_covered,
        ),
        ("runAsGroup", demands_ids(&spec.run_as_group)),
        ("fsGroup", demands_ids(&spec.fs_group)),
        ("supplementalGroups", demands_ids(&spec.supplemental_groups)),
        ("seLinux", spec.se_linux.rule == MUST_RUN_AS),
        ("runtimeClass", !class.allowed_runtime_class_names.is_empty()),
    ];
    fields.into_iter().filter(|(_, is_lost)| *is_lost).map(|(field, _)| field).collect()
}

fn opens_all_ports(spec: &PodSecurityPolicySpec) -> bool {
    spec.host_ports.iter().any(|range| range.min <= 1 && range.max >= 65535)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn restricted() -> Value {
        json!({
            "allowPrivilegeEscalation": false, "requiredDropCapabilities": ["ALL"],
            "runAsUser": {"rule": "MustRunAsNonRoot"}, "seLinux": {"rule": "RunAsAny"},
            "fsGroup": {"rule": "RunAsAny"}, "supplementalGroups": {"rule": "RunAsAny"},
            "volumes": RESTRICTED_VOLUMES,
        })
    }

    fn with(field: &str, value: Value) -> PodSecurityPolicySpec {
        let mut spec = restricted();
        spec[field] = value;
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn one_demand_less_than_a_level_makes_it_the_level_below() {
        let same = with("privileged", false.into());
        assert_eq!((level_of(&same), not_covered(&same)), (Level::Restricted, vec![]));
        for (field, value) in [
            ("allowPrivilegeEscalation", Value::Null),
            ("requiredDropCapabilities", json!(["NET_RAW"])),
            ("runAsUser", json!({"rule": "RunAsAny"})),
            ("runAsUser", json!({"rule": "MustRunAs", "ranges": [{"min": 0, "max": 9}]})),
            ("allowedCapabilities", json!(["CHOWN"])),
            ("volumes", json!(["nfs"])),
        ] {
            assert_eq!(level_of(&with(field, value)), Level::Baseline, "{field}");
        }
        for (field, value) in [
            ("privileged", true.into()),
            ("hostNetwork", true.into()),
            ("hostPID", true.into()),
            ("hostIPC", true.into()),
            ("hostPorts", json!([{"min": 80, "max": 80}])),
            ("volumes", json!(["*"])),
            ("volumes", json!(["hostPath"])),
            ("allowedCapabilities", json!(["*"])),
            ("defaultAddCapabilities", json!(["SYS_ADMIN"])),
            ("allowedUnsafeSysctls", json!(["kernel.*"])),
            ("allowedProcMountTypes", json!(["Unmasked"])),
            ("seLinux", json!({"rule": "MustRunAs", "seLinuxOptions": {"type": "spc_t"}})),
        ] {
            assert_eq!(level_of(&with(field, value)), Level::Privileged, "{field}");
        }
    }

    #[test]
    fn what_no_level_demands_is_named() {
        for (field, value) in [
            ("readOnlyRootFilesystem", true.into()),
            ("runAsUser", json!({"rule": "MustRunAs", "ranges": [{"min": 1000, "max": 1000}]})),
            ("fsGroup", json!({"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]})),
            ("volumes", json!(["secret"])),
            ("forbiddenSysctls", json!(["kernel.shm_rmid_forced"])),
            ("runtimeClass", json!({"allowedRuntimeClassNames": ["kata"]})),
        ] {
            let spec = with(field, value);
            assert_eq!((level_of(&spec), not_covered(&spec)), (Level::Restricted, vec![field]));
        }
        let open = json!({
            "privileged": true, "hostNetwork": true, "hostPID": true, "hostIPC": true,
            "hostPorts": [{"min": 0, "max": 65535}], "allowedCapabilities": ["*"],
            "allowPrivilegeEscalation": true, "volumes": ["*"], "runAsUser": {"rule": "RunAsAny"},
        });
        let mut open: PodSecurityPolicySpec = serde_json::from_value(open).unwrap();
        assert_eq!((level_of(&open), not_covered(&open)), (Level::Privileged, vec![]));
        open.host_pid = false;
        assert_eq!((level_of(&open), not_covered(&open)), (Level::Privileged, vec!["hostPID"]));
    }
}
