//! ProjectRoleTemplateBinding: gives a role template to a user, group or service account in one
//! project. In the namespace of the project. All its fields are fixed once they have a value
//! ([`crate::bindings`]).

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bindings::{Target, check_target};
use crate::ids;
use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// Gives a role template to a user, group or service account in one project.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectRoleTemplateBinding {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Id of the project: `<cluster>:<project>`. The namespace of the object is that of the
    /// project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project_name: String,
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
    /// A service account of the cluster: `<namespace>:<name>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account: String,
}

kind!(ProjectRoleTemplateBinding, "projectroletemplatebindings", "projectroletemplatebinding",
    Namespaced, NamespaceResourceScope, status: false, short: ["prtb"], columns: [
    ("Project", "string", ".projectName", false),
    ("Role", "string", ".roleTemplateName", false),
    ("User", "string", ".userName", false),
    ("Group", "string", ".groupPrincipalName", false),
]);

impl ProjectRoleTemplateBinding {
    /// Ids of the cluster and of the project in it; `None` when the name is no such pair.
    pub fn project(&self) -> Option<(&str, &str)> {
        ids::split(&self.project_name)
    }
}

impl ObjectRules for ProjectRoleTemplateBinding {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let given = Value::from(self.project_name.as_str());
        match self.project() {
            None if self.project_name.is_empty() => {
                causes.push(Cause::required("projectName", ""));
            }
            None => {
                let detail = "must be <cluster>:<project>, as in c-abcde:p-fghij";
                causes.push(Cause::invalid("projectName", &given, detail));
            }
            Some((_, project)) => {
                if self.metadata.namespace.as_deref().is_some_and(|ns| ns != project) {
                    let detail = "must be the project whose namespace the object is in";
                    causes.push(Cause::invalid("projectName", &given, detail));
                }
            }
        }
        if self.role_template_name.is_empty() {
            causes.push(Cause::required("roleTemplateName", ""));
        }
        causes.extend(check_target(&Target {
            user: &self.user_name,
            user_principal: &self.user_principal_name,
            group: &self.group_name,
            group_principal: &self.group_principal_name,
            service_account: &self.service_account,
        }));
        let account = self.service_account.as_str();
        let is_pair = account.split_once(':').is_some_and(|(namespace, name)| {
            !namespace.is_empty() && !name.is_empty() && !name.contains(':')
        });
        if !account.is_empty() && !is_pair {
            let detail = "must be <namespace>:<name>";
            causes.push(Cause::invalid("serviceAccount", &Value::from(account), detail));
        }
        causes
    }
}
