//! GlobalRoleBinding: gives a global role to a user or group. Cluster-scoped. All its fields are
//! fixed once they have a value ([`crate::bindings`]).

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// Gives a global role to a user or group.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalRoleBinding {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Name of the global role.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub global_role_name: String,
    /// Id of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// The group as an identity provider knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_principal_name: String,
}

kind!(GlobalRoleBinding, "globalrolebindings", "globalrolebinding", Cluster, ClusterResourceScope,
    status: false, short: ["grb"], columns: [
    ("Role", "string", ".globalRoleName", false),
    ("User", "string", ".userName", false),
    ("Group", "string", ".groupPrincipalName", false),
]);

impl ObjectRules for GlobalRoleBinding {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.global_role_name.is_empty() {
            causes.push(Cause::required("globalRoleName", ""));
        }
        if self.user_name.is_empty() == self.group_principal_name.is_empty() {
            let detail = "must target a user [userId] OR a group [groupPrincipalId]";
            let given = Value::from(self.user_name.as_str());
            causes.push(Cause::invalid("userName", &given, detail));
        }
        causes
    }
}
