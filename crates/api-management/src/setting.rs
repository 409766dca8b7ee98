//! Setting: one value that concerns the whole server. Cluster-scoped; fields at the top level.

mod value_type;

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{ApiVersion, KindName, ObjectRules, kind};
pub use value_type::{ValueType, minutes_as_millis};

/// URL under which clients and agents reach the server.
pub const SERVER_URL: &str = "server-url";
/// Version of the running server. Read-only.
pub const SERVER_VERSION: &str = "server-version";
/// Certificate authority of the server, PEM.
pub const CACERTS: &str = "cacerts";
/// Image of the agent.
pub const AGENT_IMAGE: &str = "agent-image";
/// Image of kubectl shells.
pub const SHELL_IMAGE: &str = "shell-image";
/// Whether people can open shells in clusters.
pub const KUBECTL_SHELL: &str = "kubectl-shell";
/// Random id of this installation.
pub const INSTALL_UUID: &str = "install-uuid";
/// Whether no user has logged in yet.
pub const FIRST_LOGIN: &str = "first-login";
/// Longest lifetime of tokens, in minutes; 0: unlimited.
pub const AUTH_TOKEN_MAX_TTL_MINUTES: &str = "auth-token-max-ttl-minutes";
/// Lifetime of logins, in minutes.
pub const AUTH_USER_SESSION_TTL_MINUTES: &str = "auth-user-session-ttl-minutes";
/// Age at which the groups of a user are read from the provider anew, in seconds; 0: never.
pub const AUTH_USER_INFO_MAX_AGE_SECONDS: &str = "auth-user-info-max-age-seconds";
/// Whether kubeconfig files contain a token.
pub const KUBECONFIG_GENERATE_TOKEN: &str = "kubeconfig-generate-token";
/// Default lifetime of tokens in kubeconfig files, in minutes; 0: unlimited.
pub const KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES: &str = "kubeconfig-default-token-ttl-minutes";
/// Lifetime of tokens in kubeconfig files without a generated token, in minutes.
pub const KUBECONFIG_TOKEN_TTL_MINUTES: &str = "kubeconfig-token-ttl-minutes";
/// Shortest password, in characters.
pub const PASSWORD_MIN_LENGTH: &str = "password-min-length";
/// Namespaces that go into a cluster's System project, separated by commas.
pub const SYSTEM_NAMESPACES: &str = "system-namespaces";
/// Registry of images that name none; empty for the default of the container runtime.
pub const SYSTEM_DEFAULT_REGISTRY: &str = "system-default-registry";

/// [`Setting::source`] of a value that comes from the environment and cannot be changed.
pub const SOURCE_ENV: &str = "env";
/// [`Setting::source`] of a value that a user set.
pub const SOURCE_DB: &str = "db";
/// [`Setting::source`] of a value that no user set.
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
    /// Where the value comes from: env, db or default.
    pub source: String,
}

kind!(Setting, "settings", "setting", Cluster, ClusterResourceScope,
    status: false, short: [], columns: [
    ("Value", "string", ".value", false),
    ("Source", "string", ".source", false),
]);

impl Setting {
    /// The value in force: the one that was set, else the default.
    pub fn effective(&self) -> &str {
        if self.value.is_empty() { &self.default } else { &self.value }
    }
}

impl ObjectRules for Setting {
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

    /// Validates only a value that changes: one that an earlier version accepted must not prevent
    /// the server from writing its default.
    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        if self.value.is_empty() || old.is_some_and(|old| old.value == self.value) {
            return Vec::new();
        }
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let problem = ValueType::of(name).check(&self.value).err();
        let value = Value::from(self.value.as_str());
        problem.map(|problem| Cause::invalid("value", &value, &problem)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(name: &str, value: &str) -> bool {
        let mut setting = Setting { value: value.to_owned(), ..Setting::default() };
        setting.metadata.name = Some(name.to_owned());
        setting.validate(None).is_empty()
    }

    #[test]
    fn images_and_registries_that_no_runtime_takes_are_refused() {
        for value in ["", "drover-agent:1", "registry.example:5000/team/agent:1"] {
            assert!(is_taken(AGENT_IMAGE, value), "{value}");
        }
        for value in ["Agent", "https://registry.example/agent", "agent:"] {
            assert!(!is_taken(AGENT_IMAGE, value), "{value}");
        }
        for value in ["", "registry.example", "registry.example:5000/mirror", "localhost"] {
            assert!(is_taken(SYSTEM_DEFAULT_REGISTRY, value), "{value}");
        }
        for value in ["https://registry.example", "registry", "registry.example/", "a b.c"] {
            assert!(!is_taken(SYSTEM_DEFAULT_REGISTRY, value), "{value}");
        }
    }

    #[test]
    fn a_value_that_stays_is_not_checked_again() {
        let mut setting = Setting { value: "abc".to_owned(), ..Setting::default() };
        setting.metadata.name = Some(PASSWORD_MIN_LENGTH.to_owned());
        assert_eq!(setting.validate(None).len(), 1);
        assert!(setting.validate(Some(&setting.clone())).is_empty());
        assert_eq!(setting.validate(Some(&Setting::default())).len(), 1);
    }
}
