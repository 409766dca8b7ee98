//! Setting: the table of defaults, how they are put there, and which cannot be changed. [`view`] is
//! their place in the REST view.

pub mod view;

use std::collections::BTreeMap;

use api_management::{Setting, setting as names};
use api_meta::status::Status;
use controller::{Attempt, ReconcileError, ensure};
use feature_kit::{Admit, Review, ReviewOperation, Seed};
use futures::future::BoxFuture;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::SettingsConfig;

/// Name to default of every setting we know.
pub fn defaults(config: &SettingsConfig) -> BTreeMap<&'static str, String> {
    let fixed = [
        (names::FIRST_LOGIN, "true"),
        (names::AUTH_TOKEN_MAX_TTL_MINUTES, "0"),
        (names::AUTH_USER_SESSION_TTL_MINUTES, "960"),
        (names::AUTH_USER_INFO_MAX_AGE_SECONDS, "3600"),
        (names::KUBECONFIG_GENERATE_TOKEN, "true"),
        (names::KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES, "0"),
        (names::KUBECONFIG_TOKEN_TTL_MINUTES, "960"),
        (names::KUBECTL_SHELL, "true"),
        (names::PASSWORD_MIN_LENGTH, "12"),
        (names::SHELL_IMAGE, concat!("drover-shell:", env!("CARGO_PKG_VERSION"))),
        (
            names::SYSTEM_NAMESPACES,
            "kube-system,kube-public,kube-node-lease,cattle-system,cattle-global-data,\
             cattle-global-nt,cattle-impersonation-system,cattle-logging,cattle-prometheus,\
             cattle-alerting,cattle-istio,cert-manager,ingress-nginx,security-scan",
        ),
        ("agent-rollout-timeout", "300s"),
        ("agent-rollout-wait", "true"),
        ("engine-install-url", ""),
        ("hide-local-cluster", "false"),
        ("ingress-ip-domain", "sslip.io"),
        ("k8s-version", ""),
        ("k8s-versions-current", ""),
        (names::SYSTEM_DEFAULT_REGISTRY, ""),
        ("telemetry-opt", "out"),
        ("ui-brand", ""),
        ("ui-default-landing", "vue"),
        ("ui-index", ""),
        ("ui-pl", "drover"),
    ];
    let mut defaults: BTreeMap<&'static str, String> =
        fixed.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    // Without a newline at its end: agents add exactly one before they hash it.
    let ca_certs = config.ca_certs.trim_end().to_owned();
    defaults.insert(names::CACERTS, ca_certs);
    defaults.insert(names::SERVER_URL, config.server_url.clone());
    defaults.insert(names::SERVER_VERSION, config.server_version.clone());
    defaults.insert(names::AGENT_IMAGE, config.agent_image.clone());
    defaults.insert(names::INSTALL_UUID, config.install_uuid.clone());
    defaults
}

/// What of a stored setting must change. Pure.
///
/// The administrator's value stays, unless the environment gives one. A value that came from the
/// environment and is no longer there goes.
pub(crate) fn change(stored: &Setting, default: &str, env: Option<&str>) -> Option<Value> {
    let from_env = stored.source == names::SOURCE_ENV;
    let mut patch = json!({});
    if stored.default != default {
        patch["default"] = default.into();
    }
    match env {
        Some(value) if from_env && stored.value == value => {}
        Some(value) => {
            patch["value"] = value.into();
            patch["source"] = names::SOURCE_ENV.into();
        }
        None if from_env => {
            patch["value"] = "".into();
            patch["source"] = names::SOURCE_DEFAULT.into();
        }
        None => {}
    }
    patch.as_object().is_some_and(|map| !map.is_empty()).then_some(patch)
}

/// Puts one setting there and keeps its default and its value from the environment current.
pub fn seed(name: &'static str, default: &str, env: Option<&str>) -> Seed {
    let (default, env) = (default.to_owned(), env.map(str::to_owned));
    Seed::custom(format!("setting \"{name}\""), move |client| {
        let (default, env) = (default.clone(), env.clone());
        Box::pin(async move { put(client, name, &default, env.as_deref()).await })
    })
}

async fn put(
    client: Client,
    name: &str,
    default: &str,
    env: Option<&str>,
) -> Result<bool, ReconcileError> {
    let api: Api<Setting> = Api::all(client);
    let stored = api.get_opt(name).await.attempt(|| format!("read setting \"{name}\""))?;
    let Some(stored) = stored else {
        let mut setting = Setting { default: default.to_owned(), ..Setting::default() };
        setting.metadata.name = Some(name.to_owned());
        if let Some(value) = env {
            setting.value = value.to_owned();
            setting.source = names::SOURCE_ENV.to_owned();
        }
        return ensure::created(&api, &setting).await;
    };
    let Some(patch) = change(&stored, default, env) else { return Ok(false) };
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.attempt(|| format!("update setting \"{name}\""))?;
    Ok(true)
}

/// People cannot change what the server or its environment says: the certificates that agents pin,
/// and values from the environment.
pub struct SettingRules;

fn check(review: &Review<'_>) -> Result<(), Status> {
    let by_a_person = !review.user.starts_with("system:");
    let changes = review.operation == ReviewOperation::Delete
        || review.object.map(|object| &object["value"]) != review.old.map(|old| &old["value"]);
    if !by_a_person || !changes {
        return Ok(());
    }
    let from_env = review.old.is_some_and(|old| old["source"] == names::SOURCE_ENV);
    let why = if review.name == names::CACERTS {
        "it follows the server's certificate"
    } else if from_env {
        "it is set by the environment of the server; change it there"
    } else {
        return Ok(());
    };
    let name = review.name;
    Err(Status::not_allowed_because(&format!("setting \"{name}\" is readOnly: {why}")))
}

impl Admit for SettingRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { check(review) })
    }
}
