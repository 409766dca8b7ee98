//! Token: a key that identifies a user. Cluster-scoped; fields at the top level.
//!
//! Presented as `name:key`. Only a hash of the key is stored; the key is shown once, to its
//! creator.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::{
    ApiVersion, KindName, ObjectRules, default_field, immutable, kind, other_fields,
};
use crate::{keys, schema};

/// [`keys::TOKEN_KIND`] of a login.
pub const KIND_SESSION: &str = "session";
/// [`keys::TOKEN_KIND`] of a token inside a kubeconfig.
pub const KIND_KUBECONFIG: &str = "kubeconfig";
/// [`keys::TOKEN_KIND`] of the token of a shell in a cluster, which ends with the shell.
pub const KIND_KUBECTL_SHELL: &str = "kubectl-shell";
/// [`keys::TOKEN_KIND`] of a token that a user created for a program.
pub const KIND_API: &str = "api";

/// A key by which a user is known.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Token {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Hash of the key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Id of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// Identity provider of the login it came from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub auth_provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub user_principal: Option<Value>,
    /// Milliseconds from creation to expiry; 0 is never.
    #[serde(rename = "ttl")]
    pub ttl_millis: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Made from another token, not by a login.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_derived: bool,
    /// The only cluster it is good for, when set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// The only project that it is good for, when set: `<cluster>:<project>`, of the same cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project_name: String,
    /// Principal ids of the user's groups at the provider of the login.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_principals: Vec<String>,
    /// When the groups were read, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_update_time: String,
    /// When it was last used, to ten minutes, RFC 3339; empty: never.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_used_at: String,
    /// False: the token does not hold. By default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The fields that no code reads: users read their tokens from what the server has cached.
    #[serde(flatten, deserialize_with = "other_fields")]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

kind!(Token, "tokens", "token", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("User", "string", ".userId", false),
    ("Cluster", "string", ".clusterName", false),
    ("TTL", "integer", ".ttl", true),
]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.metadata.name)
            .field("user_id", &self.user_id)
            .field("token", &"[redacted]")
            .finish_non_exhaustive()
    }
}

impl Token {
    /// Unix milliseconds at which the token expires; `None`: never.
    pub fn expires_at_millis(&self) -> Option<i64> {
        let created = self.metadata.creation_timestamp.as_ref()?.0.as_millisecond();
        (self.ttl_millis > 0).then(|| created.saturating_add(self.ttl_millis))
    }
    /// Whether the token has expired at `now_millis`, Unix milliseconds.
    pub fn is_expired(&self, now_millis: i64) -> bool {
        self.expires_at_millis().is_some_and(|at| at <= now_millis)
    }
    /// Whether the token was not disabled.
    pub fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }
}

impl ObjectRules for Token {
    fn fill_defaults(object: &mut Value) {
        default_field(object, "enabled", true);
        default_field(object, "ttl", 0);
        default_field(object, "authProvider", "local");
    }

    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.user_id.is_empty() {
            causes.push(Cause::required("userId", ""));
        }
        let hashed = self.metadata.annotations.as_ref().is_some_and(|annotations| {
            annotations.get(keys::TOKEN_HASHED).is_some_and(|value| value == "true")
        });
        if self.token.is_empty() {
            causes.push(Cause::required("token", "the hash of the key"));
        } else if !hashed || !self.token.starts_with('$') {
            let detail = "must be a hash; make tokens with POST /v3/tokens";
            causes.push(Cause::forbidden("token", detail));
        }
        if self.ttl_millis < 0 {
            let detail = "must not be negative";
            causes.push(Cause::invalid("ttl", &Value::from(self.ttl_millis), detail));
        }
        causes.extend(immutable("userId", &self.user_id, old.map(|old| old.user_id.as_str())));
        let cluster = old.map(|old| old.cluster_name.as_str());
        causes.extend(immutable("clusterName", &self.cluster_name, cluster));
        let project = old.map(|old| old.project_name.as_str());
        causes.extend(immutable("projectName", &self.project_name, project));
        let of = self.project_name.split_once(':').map(|(cluster, _)| cluster);
        if !self.project_name.is_empty() && of != Some(&self.cluster_name) {
            let detail = "must be the id of a project of the cluster in clusterName";
            let value = Value::from(self.project_name.as_str());
            causes.push(Cause::invalid("projectName", &value, detail));
        }
        if old.is_some_and(|old| old.token != self.token) {
            causes.push(Cause::forbidden("token", "field is immutable"));
        }
        causes
    }
}
