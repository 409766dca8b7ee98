//! Setting: one value that concerns the whole server. Cluster-scoped; fields at the top level.

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{ApiVersion, KindName, Rules, kind};

pub const SERVER_URL: &str = "server-url";
pub const SERVER_VERSION: &str = "server-version";
pub const CACERTS: &str = "cacerts";
pub const AGENT_IMAGE: &str = "agent-image";
pub const INSTALL_UUID: &str = "install-uuid";
pub const FIRST_LOGIN: &str = "first-login";
pub const AUTH_TOKEN_MAX_TTL_MINUTES: &str = "auth-token-max-ttl-minutes";
pub const AUTH_USER_SESSION_TTL_MINUTES: &str = "auth-user-session-ttl-minutes";
pub const KUBECONFIG_GENERATE_TOKEN: &str = "kubeconfig-generate-token";
pub const KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES: &str = "kubeconfig-default-token-ttl-minutes";
pub const KUBECONFIG_TOKEN_TTL_MINUTES: &str = "kubeconfig-token-ttl-minutes";
pub const PASSWORD_MIN_LENGTH: &str = "password-min-length";
pub const SYSTEM_NAMESPACES: &str = "system-namespaces";

/// [`Setting::source`] of a value that comes from the environment and cannot be changed.
pub const SOURCE_ENV: &str = "env";
/// [`Setting::source`] of a value that somebody set.
pub const SOURCE_DB: &str = "db";
/// [`Setting::source`] of a value that nobody set.
pub const SOURCE_DEFAULT: &str = "default";

/// One value that concerns the whole server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Setting {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// What somebody set; empty to have the default.
    pub value: String,
    /// What holds when nobody set anything.
    pub default: String,
    /// Whether somebody set it.
    pub customized: bool,
    /// Where the value comes from: env, db or default.
    pub source: String,
}

kind!(Setting, "settings", "setting", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("Value", "string", ".value", false),
    ("Source", "string", ".source", false),
]);

impl Setting {
    /// The value that holds.
    pub fn effective(&self) -> &str {
        if self.value.is_empty() { &self.default } else { &self.value }
    }
}

impl Rules for Setting {
    fn fill_defaults(object: &mut Value) {
        for field in ["value", "default"] {
            if object[field].is_null() {
                object[field] = "".into();
            }
        }
        let set = object["value"].as_str().is_some_and(|value| !value.is_empty());
        let env = object["source"].as_str() == Some(SOURCE_ENV);
        object["customized"] = (set && !env).into();
        if !env {
            object["source"] = if set { SOURCE_DB } else { SOURCE_DEFAULT }.into();
        }
    }

    fn validate(&self, _old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let value = Value::from(self.value.as_str());
        if name == SERVER_URL && !self.value.is_empty() && !self.value.starts_with("https://") {
            causes.push(Cause::invalid("value", &value, "must begin with https://"));
        }
        if name.ends_with("-minutes") && !self.value.is_empty() {
            let whole = self.value.parse::<u32>().is_ok();
            if !whole {
                let detail = "must be a whole number of minutes, 0 or more";
                causes.push(Cause::invalid("value", &value, detail));
            }
        }
        causes
    }
}
