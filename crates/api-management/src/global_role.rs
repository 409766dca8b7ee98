//! GlobalRole: a named set of rights in the management API. Cluster-scoped.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};
use crate::role_template::{PolicyRule, check_rules};

/// Everything, in the management API and in every cluster.
pub const ADMIN: &str = "admin";
/// Everything on Drover's own kinds, and in every cluster but `local`.
pub const RESTRICTED_ADMIN: &str = "restricted-admin";

/// A named set of rights in the management API.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalRole {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The name that users see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
    /// Given to new users.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub new_user_default: bool,
    /// Shipped with the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub builtin: bool,
}

kind!(GlobalRole, "globalroles", "globalrole", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("Name", "string", ".displayName", false),
    ("New user default", "boolean", ".newUserDefault", false),
    ("Builtin", "boolean", ".builtin", false),
]);

impl ObjectRules for GlobalRole {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        check_rules(&self.rules)
    }
}
