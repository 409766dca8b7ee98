//! User: a user account of a human or a program. Cluster-scoped.
//!
//! The password is not here: its hash is in a Secret of the same name in
//! [`crate::keys::PASSWORDS_NS`], so that users who may list users learn nothing that helps an
//! attack.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ids;
use crate::kind::{ApiVersion, KindName, ObjectRules, default_field, kind, other_fields};

/// Condition: the initial roles of the user were created.
pub const INITIAL_ROLES_POPULATED: &str = "InitialRolesPopulated";
/// Prefix of the principal id that every local user has.
pub const LOCAL_PRINCIPAL: &str = "local://";
/// Longest user name, in characters.
pub const USERNAME_MAX: usize = 128;

/// A user account of a human or a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The name that users see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The name typed at login; empty for users who cannot log in locally.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Never stored: set it with the action setpassword.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// The user must set a new password at the next login.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub must_change_password: bool,
    /// Who the user is at each identity provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principal_ids: Vec<String>,
    /// False: no login, and no token of the user holds. By default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The fields that no code reads: users read their own object from what the server has cached.
    #[serde(flatten, deserialize_with = "other_fields")]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

kind!(User, "users", "user", Cluster, ClusterResourceScope,
    status: true, short: [], columns: [
    ("Username", "string", ".username", false),
    ("Display Name", "string", ".displayName", false),
    ("Enabled", "boolean", ".enabled", false),
]);

impl User {
    /// Whether the user may log in, and tokens of the user are valid. Who is being deleted may not.
    pub fn is_enabled(&self) -> bool {
        self.enabled != Some(false) && self.metadata.deletion_timestamp.is_none()
    }
    /// Created by and for the server itself; hidden in lists of users.
    pub fn is_system(&self) -> bool {
        self.principal_ids.iter().any(|id| id.starts_with("system://"))
    }
}

impl ObjectRules for User {
    fn fill_defaults(object: &mut Value) {
        default_field(object, "enabled", true);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let local = object["username"].as_str().is_some_and(|username| !username.is_empty());
        if name.is_empty() || !local {
            return;
        }
        let principal = Value::from(format!("{LOCAL_PRINCIPAL}{name}"));
        match object["principalIds"].as_array_mut() {
            Some(list) if list.contains(&principal) => {}
            Some(list) => list.push(principal),
            None => object["principalIds"] = json!([principal]),
        }
    }

    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if old.is_none() && !name.is_empty() && !ids::is_user_name(name) {
            let detail = "the user's namespace has the same name, so it must be a DNS label that begins \
                          with \"u-\" or \"user-\"; or leave it empty and set generateName to \"u-\"";
            causes.push(Cause::invalid("metadata.name", &Value::from(name), detail));
        }
        if !self.password.is_empty() {
            let detail = "a password is not stored in the user object; create the user without one \
                          and use the action setpassword";
            causes.push(Cause::forbidden("password", detail));
        }
        let username = self.username.as_str();
        if username.chars().count() > USERNAME_MAX {
            causes.push(Cause::too_long("username", USERNAME_MAX));
        }
        if username.chars().any(|c| c.is_control() || c.is_whitespace() || c == ':') {
            let detail = "must not have blanks, control characters or ':'";
            causes.push(Cause::invalid("username", &Value::from(username), detail));
        }
        causes
    }
}
