//! ClusterRoleTemplateBinding: gives a role template to a user or group in one cluster. In the
//! namespace of the cluster. All its fields are fixed once they have a value ([`crate::bindings`]).

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bindings::{Target, check_target};
use crate::kind::{ApiVersion, KindName, ObjectRules, default_field, kind};

/// Gives a role template to a user or group in one cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRoleTemplateBinding {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Id of the cluster; the namespace of the object has the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Name of the role template.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role_template_name: String,
    /// Id of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// The user as an identity provider knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_principal_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_name: String,
    /// The group as an identity provider knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_principal_name: String,
}

kind!(ClusterRoleTemplateBinding, "clusterroletemplatebindings", "clusterroletemplatebinding",
    Namespaced, NamespaceResourceScope, status: false, short: ["crtb"], columns: [
    ("Cluster", "string", ".clusterName", false),
    ("Role", "string", ".roleTemplateName", false),
    ("User", "string", ".userName", false),
    ("Group", "string", ".groupPrincipalName", false),
]);

impl ObjectRules for ClusterRoleTemplateBinding {
    fn fill_defaults(object: &mut Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        if !namespace.is_empty() {
            default_field(object, "clusterName", namespace);
        }
    }

    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let cluster = self.cluster_name.as_str();
        if cluster.is_empty() {
            causes.push(Cause::required("clusterName", ""));
        } else if self.metadata.namespace.as_deref().is_some_and(|ns| ns != cluster) {
            let detail = "must be the name of the object's namespace";
            causes.push(Cause::invalid("clusterName", &Value::from(cluster), detail));
        }
        if self.role_template_name.is_empty() {
            causes.push(Cause::required("roleTemplateName", ""));
        }
        causes.extend(check_target(&Target {
            user: &self.user_name,
            user_principal: &self.user_principal_name,
            group: &self.group_name,
            group_principal: &self.group_principal_name,
            service_account: "",
        }));
        causes
    }
}
