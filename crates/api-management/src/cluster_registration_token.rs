//! ClusterRegistrationToken: admits the agent of one cluster, once. In the namespace of the
//! cluster.
//!
//! Valid until a first key is registered with it or it expires. The secret is shown, in status, to
//! users who may read the object: clients build their commands from it.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{
    ApiVersion, KindName, ObjectRules, default_field, immutable, kind, object_field,
};

/// Default lifetime of a token, in hours.
pub const TTL_HOURS: i64 = 24;
/// Name of the token that every cluster gets automatically.
pub const DEFAULT_NAME: &str = "default-token";

/// Lets one cluster's agent in, once.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRegistrationToken {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    pub spec: ClusterRegistrationTokenSpec,
    pub status: ClusterRegistrationTokenStatus,
}

kind!(ClusterRegistrationToken, "clusterregistrationtokens", "clusterregistrationtoken",
    Namespaced, NamespaceResourceScope, status: true, short: ["crt"], columns: [
    ("Cluster", "string", ".spec.clusterName", false),
    ("Expires", "string", ".status.expiresAt", false),
    ("Used", "string", ".status.usedAt", false),
]);

/// The cluster of a registration token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRegistrationTokenSpec {
    /// Id of the cluster; the namespace of the object has the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
}

/// The secret of a registration token, the commands that use it, and its validity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRegistrationTokenStatus {
    /// The secret itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// From when on the token lets nobody in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expires_at: String,
    /// When an agent registered its key with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub used_at: String,
}

impl ObjectRules for ClusterRegistrationToken {
    fn fill_defaults(object: &mut Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let Some(spec) = object_field(object, "spec") else { return };
        if !namespace.is_empty() {
            default_field(spec, "clusterName", namespace);
        }
    }

    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let cluster = self.spec.cluster_name.as_str();
        let mut causes = Vec::new();
        if cluster.is_empty() {
            causes.push(Cause::required("spec.clusterName", ""));
        } else if self.metadata.namespace.as_deref().is_some_and(|ns| ns != cluster) {
            let detail = "must be the name of the object's namespace";
            causes.push(Cause::invalid("spec.clusterName", &Value::from(cluster), detail));
        }
        let stored = old.map(|old| old.spec.cluster_name.as_str());
        causes.extend(immutable("spec.clusterName", cluster, stored));
        causes
    }
}
