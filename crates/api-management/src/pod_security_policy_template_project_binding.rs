//! PodSecurityPolicyTemplateProjectBinding: which PodSecurityPolicyTemplate holds in one project.
//! In the namespace of the cluster.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids;
use crate::kind::{ApiVersion, KindName, ObjectRules, kind};

/// Which PodSecurityPolicyTemplate holds in one project.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityPolicyTemplateProjectBinding {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Name of the template.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_security_policy_template_name: String,
    /// Id of the project: `<cluster>:<project>`, of the cluster whose namespace the object is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_project_name: String,
}

kind!(PodSecurityPolicyTemplateProjectBinding, "podsecuritypolicytemplateprojectbindings",
    "podsecuritypolicytemplateprojectbinding", Namespaced, NamespaceResourceScope,
    status: false, short: [], columns: [
    ("Project", "string", ".targetProjectName", false),
    ("Template", "string", ".podSecurityPolicyTemplateName", false),
]);

impl PodSecurityPolicyTemplateProjectBinding {
    /// Ids of the cluster and of the project in it; `None` when the name is no such pair.
    pub fn project(&self) -> Option<(&str, &str)> {
        ids::split(&self.target_project_name)
    }
}

impl ObjectRules for PodSecurityPolicyTemplateProjectBinding {
    fn validate(&self, _: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.pod_security_policy_template_name.is_empty() {
            causes.push(Cause::required("podSecurityPolicyTemplateName", ""));
        }
        let namespace = self.metadata.namespace.as_deref();
        match self.project() {
            Some((cluster, _)) if namespace.is_none_or(|namespace| namespace == cluster) => {}
            _ => {
                let given = Value::from(self.target_project_name.as_str());
                let detail = "must be <cluster>:<project>, of the cluster whose namespace the \
                              object is in";
                causes.push(Cause::invalid("targetProjectName", &given, detail));
            }
        }
        causes
    }
}
