//! The configured identity providers outside of this server, from the watch of their
//! configurations.
//!
//! [`Providers`] answers from memory which are enabled, and opens them. [`run`] keeps true that no
//! token stays of a provider that is not: none of them holds anyway.

use std::sync::Arc;

use api_management::{GROUP, Token, VERSION, keys};
use controller::{Reflector, Whole, ensure};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, CredentialStore, ManagementContext};
use identity::IdentityProvider;
use identity::provider::ldap::{self, Flavour, LdapConfig, Problem};
use k8s_openapi::ClusterResourceScope;
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::directory::Directory;

/// The provider that is this server itself.
pub const LOCAL: &str = "local";
pub(crate) const KIND: &str = "AuthConfig";
pub(crate) const PLURAL: &str = "authconfigs";

/// A configuration as it is stored; its credentials are references.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthConfig {
    pub metadata: ObjectMeta,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Resource for AuthConfig {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        KIND.into()
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        VERSION.into()
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl AuthConfig {
    fn is_enabled(&self) -> bool {
        self.fields.get("enabled") == Some(&Value::Bool(true))
    }
}

/// Who may log in through a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRule {
    /// Only those who are allowed by name.
    pub is_required: bool,
    /// Those who are allowed by name, and members of clusters and projects.
    pub is_restricted: bool,
    /// Principal ids.
    pub allowed: Vec<String>,
}

impl AccessRule {
    /// The rule in a configuration. A mode that is not known allows nobody else than by name.
    pub fn of(fields: &Map<String, Value>) -> Self {
        let mode = fields.get("accessMode").and_then(Value::as_str).unwrap_or_default();
        let allowed = fields.get("allowedPrincipalIds").and_then(Value::as_array);
        let allowed = allowed.into_iter().flatten().filter_map(Value::as_str);
        Self {
            is_required: !matches!(mode, "" | "unrestricted" | "restricted"),
            is_restricted: mode == "restricted",
            allowed: allowed.map(str::to_owned).collect(),
        }
    }
}

/// A provider that is enabled now.
pub struct OpenProvider {
    pub flavour: &'static Flavour,
    pub provider: Arc<dyn IdentityProvider>,
    pub access: AccessRule,
}

/// See the module.
pub struct Providers {
    configs: Arc<Reflector<Whole<AuthConfig>>>,
    credentials: Arc<CredentialStore>,
}

impl Providers {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext) -> Self {
        let configs = context.scope.reflectors.get();
        Self { configs, credentials: context.credentials.clone() }
    }

    pub(crate) async fn synced(&self) {
        self.configs.synced().await;
    }

    /// Whether people may log in through the provider, and tokens of such logins hold.
    pub fn is_enabled(&self, name: &str) -> bool {
        name == LOCAL || name.is_empty() || {
            let config = self.configs.named(name);
            Flavour::of_provider(name).is_some() && config.is_some_and(|config| config.is_enabled())
        }
    }

    /// The directories that are enabled, by name.
    pub fn enabled(&self) -> impl Iterator<Item = &'static Flavour> {
        ldap::FLAVOURS.into_iter().filter(|flavour| self.is_enabled(flavour.provider))
    }

    /// The provider with its stored configuration.
    ///
    /// # Errors
    /// It is not enabled, or its configuration is not right or cannot be read.
    pub async fn open(&self, name: &str) -> Result<OpenProvider, String> {
        let config = self.configs.named(name).filter(|config| config.is_enabled());
        let (Some(flavour), Some(config)) = (Flavour::of_provider(name), config) else {
            return Err(format!("provider \"{name}\" is not enabled"));
        };
        let object = serde_json::to_value(&*config).map_err(|error| error.to_string())?;
        let object = self.with_credentials(object).await?;
        let provider = directory(flavour, &object).map_err(|problems| describe(&problems))?;
        let access = AccessRule::of(&config.fields);
        Ok(OpenProvider { flavour, provider: Arc::new(provider), access })
    }

    /// The stored configuration with its credentials, for use by the server itself.
    ///
    /// # Errors
    /// They cannot be read now.
    pub(crate) async fn with_credentials(&self, object: Value) -> Result<Value, String> {
        let read = self.credentials.with_values(KIND, object).await;
        read.map_err(|status| status.message)
    }
}

/// The directory with the configuration in `object`, which has its credentials.
pub(crate) fn directory(
    flavour: &'static Flavour,
    object: &Value,
) -> Result<ldap::Directory, Vec<Problem>> {
    let config = LdapConfig::read(flavour, object)?;
    ldap::Directory::new(flavour, config).map_err(|problem| vec![problem])
}

fn describe(problems: &[Problem]) -> String {
    let texts = problems.iter().map(|problem| format!("{} {}", problem.field, problem.text));
    texts.collect::<Vec<_>>().join("; ")
}

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new("provider-tokens", vec![ours(&["tokens"], &["delete"])])
}

/// Ends the tokens of providers that are not enabled. Runs until the future is dropped. `client`
/// acts as [`identity()`].
pub async fn run(directory: Arc<Directory>, context: ManagementContext, client: Client) {
    let changed = Arc::new(Notify::new());
    let noted = changed.clone();
    directory.providers.configs.subscribe(move |_| {
        noted.notify_one();
        true
    });
    directory.providers.synced().await;
    directory.tokens().synced().await;
    let api: Api<Token> = Api::all(client);
    loop {
        end_tokens(&directory, &api).await;
        tokio::select! {
            () = context.scope.stop.cancelled() => return,
            () = changed.notified() => {}
        }
    }
}

async fn end_tokens(directory: &Directory, api: &Api<Token>) {
    let mut ended = Vec::new();
    directory.tokens().for_each(|key, token| {
        if !directory.providers.is_enabled(&token.auth_provider) {
            ended.push(key.name.clone());
        }
    });
    for name in ended {
        if let Err(error) = ensure::absent(api, &name).await {
            tracing::warn!(token = %name, error = error.chain(), "a token stays that does not hold");
        }
    }
}

/// Labels of what the server makes for a user of a directory.
pub(crate) fn creator_label() -> (String, String) {
    (keys::CREATOR.to_owned(), keys::CREATOR_NORMAN.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_access_mode_allows_nobody_beyond_the_list() {
        for (mode, required, restricted) in [
            ("unrestricted", false, false),
            ("", false, false),
            ("restricted", false, true),
            ("required", true, false),
            ("open", true, false),
        ] {
            let fields = json!({"accessMode": mode, "allowedPrincipalIds": ["a"]});
            let rule = AccessRule::of(fields.as_object().unwrap());
            assert_eq!((rule.is_required, rule.is_restricted), (required, restricted), "{mode}");
            assert_eq!(rule.allowed, ["a"]);
        }
    }
}
