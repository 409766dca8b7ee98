//! The configured identity providers outside of this server, from the watch of their
//! configurations.
//!
//! [`Providers`] answers from memory which are enabled, and opens them. [`run`] keeps true that no
//! token stays of a provider that is not: none of them holds anyway.

use std::collections::HashMap;
use std::sync::Arc;

use api_management::{GROUP, Token, VERSION, keys, setting};
use controller::{Reflector, Whole, ensure};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, CredentialStore, ManagementContext, Settings};
use identity::provider::{CALLBACK_PATH, Problem};
use k8s_openapi::ClusterResourceScope;
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::directory::Directory;
use crate::provider_kind::{Backend, ProviderKind};

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
    pub kind: &'static ProviderKind,
    pub backend: Backend,
    pub access: AccessRule,
}

/// A provider as it was opened, and from what.
struct Opened {
    /// The version of its configuration.
    version: Option<String>,
    callback: String,
    provider: Arc<OpenProvider>,
}

/// See the module.
pub struct Providers {
    configs: Arc<Reflector<Whole<AuthConfig>>>,
    credentials: Arc<CredentialStore>,
    settings: Settings,
    /// By name. A credential has another reference with each change, so the version covers it.
    opened: Mutex<HashMap<&'static str, Opened>>,
}

impl Providers {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext) -> Self {
        let configs = context.scope.reflectors.get();
        let (credentials, settings) = (context.credentials.clone(), context.settings.clone());
        Self { configs, credentials, settings, opened: Mutex::default() }
    }

    pub(crate) async fn synced(&self) {
        self.configs.synced().await;
    }

    /// Whether people may log in through the provider, and tokens of such logins hold.
    pub fn is_enabled(&self, name: &str) -> bool {
        name == LOCAL || name.is_empty() || {
            let config = self.configs.named(name);
            ProviderKind::of_name(name).is_some()
                && config.is_some_and(|config| config.is_enabled())
        }
    }

    /// The providers that are enabled, but for this server itself.
    pub fn enabled(&self) -> impl Iterator<Item = &'static ProviderKind> {
        ProviderKind::ALL.into_iter().filter(|kind| self.is_enabled(kind.name))
    }

    /// The provider with its stored configuration.
    ///
    /// # Errors
    /// It is not enabled, or its configuration is not right or cannot be read.
    pub async fn open(&self, name: &str) -> Result<Arc<OpenProvider>, String> {
        let config = self.configs.named(name).filter(|config| config.is_enabled());
        let (Some(kind), Some(config)) = (ProviderKind::of_name(name), config) else {
            return Err(format!("provider \"{name}\" is not enabled"));
        };
        let version = config.metadata.resource_version.clone();
        let callback = self.callback();
        if let Some(opened) = self.opened.lock().get(kind.name)
            && opened.version == version
            && opened.callback == callback
        {
            return Ok(opened.provider.clone());
        }
        let object = serde_json::to_value(&*config).map_err(|error| error.to_string())?;
        let object = self.with_credentials(object).await?;
        let backend =
            kind.open(&object, callback.clone()).map_err(|problems| describe(&problems))?;
        let access = AccessRule::of(&config.fields);
        let provider = Arc::new(OpenProvider { kind, backend, access });
        let opened = Opened { version, callback, provider: provider.clone() };
        self.opened.lock().insert(kind.name, opened);
        Ok(provider)
    }

    /// Where providers send browsers back to.
    pub(crate) fn callback(&self) -> String {
        let server = self.settings.get(setting::SERVER_URL);
        format!("{}{CALLBACK_PATH}", server.trim_end_matches('/'))
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
