//! PodSecurityPolicyTemplate: what pods may do, in the words of PodSecurityPolicy, which Kubernetes
//! has no more. Cluster-scoped. What stands for it in a cluster is a Pod Security level.

use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// What pods may do.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityPolicyTemplate {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub spec: PodSecurityPolicySpec,
}

kind!(PodSecurityPolicyTemplate, "podsecuritypolicytemplates", "podsecuritypolicytemplate",
    Cluster, ClusterResourceScope, status: false, short: [], columns: [
    ("Privileged", "boolean", ".spec.privileged", false),
]);

/// As PodSecurityPolicy of `policy/v1beta1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityPolicySpec {
    pub privileged: bool,
    pub host_network: bool,
    #[serde(rename = "hostPID")]
    pub host_pid: bool,
    #[serde(rename = "hostIPC")]
    pub host_ipc: bool,
    pub read_only_root_filesystem: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_ports: Vec<NumberRange>,
    /// Absent: containers may gain privileges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_add_capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_drop_capabilities: Vec<String>,
    /// Kinds of volumes; `*` is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    #[serde(rename = "allowedCSIDrivers", skip_serializing_if = "Vec::is_empty")]
    pub allowed_csi_drivers: Vec<DriverName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_flex_volumes: Vec<FlexDriver>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_host_paths: Vec<AllowedHostPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_unsafe_sysctls: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden_sysctls: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_proc_mount_types: Vec<String>,
    pub run_as_user: IdRule,
    pub run_as_group: IdRule,
    pub fs_group: IdRule,
    pub supplemental_groups: IdRule,
    pub se_linux: SeLinuxRule,
    pub runtime_class: RuntimeClassRule,
}

/// From one number to another, both included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumberRange {
    pub min: i64,
    pub max: i64,
}

/// A driver of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverName {
    pub name: String,
}

/// A driver of FlexVolumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlexDriver {
    pub driver: String,
}

/// Folders of the node that may be mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedHostPath {
    pub path_prefix: String,
    pub read_only: bool,
}

/// Which ids of users or groups may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IdRule {
    /// `MustRunAs`, `MustRunAsNonRoot`, `MayRunAs` or `RunAsAny`.
    pub rule: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<NumberRange>,
}

/// Which SELinux contexts may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SeLinuxRule {
    /// `MustRunAs` or `RunAsAny`.
    pub rule: String,
    pub se_linux_options: SeLinuxContext,
}

/// A context of SELinux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SeLinuxContext {
    pub user: String,
    pub role: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub level: String,
}

/// Which runtime classes may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeClassRule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_runtime_class_names: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_runtime_class_name: String,
}

impl ObjectRules for PodSecurityPolicyTemplate {}
