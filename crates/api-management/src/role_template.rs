//! RoleTemplate: a named set of rights, given in a cluster or a project. Cluster-scoped.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// `context` of a role template for clusters.
pub const CONTEXT_CLUSTER: &str = "cluster";
/// `context` of a role template for projects.
pub const CONTEXT_PROJECT: &str = "project";
/// Everything in a cluster.
pub const CLUSTER_OWNER: &str = "cluster-owner";
/// See the cluster, make projects.
pub const CLUSTER_MEMBER: &str = "cluster-member";
/// Everything in a project.
pub const PROJECT_OWNER: &str = "project-owner";

/// A rule of Kubernetes' RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    pub verbs: Vec<String>,
}

/// A named set of rights.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleTemplate {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The name that users see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// `cluster` or `project`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// What it allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
    /// Role templates whose rights it has too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub role_template_names: Vec<String>,
    /// Shipped with the server.
    pub builtin: bool,
    /// The rights are those of the cluster role of this name, which exists downstream.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Left out of lists of roles to give.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Not to be used in new bindings.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub administrative: bool,
    /// Whoever makes a cluster gets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cluster_creator_default: bool,
    /// Whoever makes a project gets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub project_creator_default: bool,
}

kind!(RoleTemplate, "roletemplates", "roletemplate", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("Name", "string", ".displayName", false),
    ("Context", "string", ".context", false),
    ("Builtin", "boolean", ".builtin", false),
]);

impl ObjectRules for RoleTemplate {
    fn validate(&self, _old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let known = ["", CONTEXT_CLUSTER, CONTEXT_PROJECT];
        if !known.contains(&self.context.as_str()) {
            let context = Value::from(self.context.as_str());
            causes.push(Cause::not_supported("context", &context, &known[1..]));
        }
        if self.administrative && self.context != CONTEXT_CLUSTER {
            let detail = "Only cluster roles can be administrative";
            causes.push(Cause::invalid("administrative", &Value::from(true), detail));
        }
        causes.extend(check_rules(&self.rules));
        causes
    }
}

/// Violations in the rules of a role.
pub(crate) fn check_rules(rules: &[PolicyRule]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if rule.verbs.is_empty() {
            causes.push(Cause::required(format!("rules[{index}].verbs"), ""));
        }
        if rule.resources.is_empty() && rule.non_resource_urls.is_empty() {
            let detail = "a rule needs resources or nonResourceURLs";
            causes.push(Cause::required(format!("rules[{index}].resources"), detail));
        }
    }
    causes
}
