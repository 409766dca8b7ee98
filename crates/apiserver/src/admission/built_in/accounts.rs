//! ServiceAccount: every pod runs as a service account of its namespace. The account's token, the
//! CA certificate and the namespace are mounted in a volume, and images are pulled with the
//! account's secrets.

use std::time::Duration;

use api_meta::names;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::find;
use crate::fields::{Object, each, items, map, preset, text};
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;
use crate::service_accounts::DEFAULT_ACCOUNT;

const TOKEN_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Prefix of the names of token volumes.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Lifetime of a mounted token, in seconds; kubelets renew it at 80 %.
const TOKEN_SECONDS: i64 = 3607;
/// The annotation of mirror pods, which a kubelet creates for its static pods. Nothing is added to
/// them.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// How long a pod create waits for the default account, which a controller creates in every
/// namespace.
const ACCOUNT_WAIT_MAX: Duration = Duration::from_millis(1500);

/// Sets the account of a new pod, its token volume and its image pull secrets. Mirror pods are only
/// validated.
///
/// # Errors
/// 403: the account does not exist, or a mirror pod refers to what it may not use.
pub(super) async fn set_account(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    pod: &mut Value,
) -> Result<(), Status> {
    if !pod["metadata"]["annotations"][MIRROR].is_null() {
        return check_mirror(request, pod);
    }
    let Some(spec) = pod.get_mut("spec").and_then(map) else { return Ok(()) };
    default_account(spec);
    let name = text(spec, "serviceAccountName").to_owned();
    let Some(account) = find_account(registry, request.namespace, &name).await? else {
        let path = format!("{}/{name}", request.namespace);
        let text =
            format!("error looking up service account {path}: serviceaccount {name:?} not found");
        return Err(request.forbidden(Some(pod), &text));
    };
    let Some(spec) = pod.get_mut("spec").and_then(map) else { return Ok(()) };
    add_account(spec, &account);
    Ok(())
}

/// Adds to a pod spec what comes with its account: the token volume, unless automounting is off,
/// and the image pull secrets, unless the spec has its own.
pub fn add_account(spec: &mut Object, account: &Value) {
    const AUTOMOUNT: &str = "automountServiceAccountToken";
    let own = spec.get(AUTOMOUNT).and_then(Value::as_bool);
    if own.or_else(|| account[AUTOMOUNT].as_bool()).unwrap_or(true) {
        mount_token(spec);
    }
    let secrets = items(&account["imagePullSecrets"]);
    if !secrets.is_empty() && spec.get("imagePullSecrets").is_none_or(|own| items(own).is_empty()) {
        let named = secrets.iter().map(|secret| json!({"name": secret["name"]}));
        spec.insert("imagePullSecrets".to_owned(), named.collect());
    }
}

/// Sets the account `default` in a pod spec that names none, under both `serviceAccountName` and
/// the deprecated `serviceAccount`.
pub fn default_account(spec: &mut Object) {
    if text(spec, "serviceAccountName").is_empty() {
        spec.insert("serviceAccountName".to_owned(), DEFAULT_ACCOUNT.into());
        spec.insert("serviceAccount".to_owned(), DEFAULT_ACCOUNT.into());
    }
}

/// Finds the account. The default account, which every namespace gets, is waited for.
async fn find_account(
    registry: &Registry,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let kind = ("", "serviceaccounts");
    let mut progress = registry.progress();
    let wait = async {
        loop {
            progress.borrow_and_update();
            match find(registry, kind, namespace, name).await {
                Ok(None) if name == DEFAULT_ACCOUNT && progress.changed().await.is_ok() => {}
                other => return other,
            }
        }
    };
    tokio::time::timeout(ACCOUNT_WAIT_MAX, wait).await.unwrap_or(Ok(None))
}

fn check_mirror(request: &AdmissionRequest<'_>, pod: &Value) -> Result<(), Status> {
    let refused = |text: &str| Err(request.forbidden(Some(pod), text));
    let spec = &pod["spec"];
    if !spec["serviceAccountName"].as_str().unwrap_or_default().is_empty() {
        return refused("a mirror pod may not reference service accounts");
    }
    if names_secret(spec) {
        return refused("a mirror pod may not reference secrets");
    }
    let volumes = items(&spec["volumes"]).iter();
    let mut sources = volumes.flat_map(|volume| items(&volume["projected"]["sources"]));
    if sources.any(|source| source["serviceAccountToken"].is_object()) {
        return refused("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Whether any part of a spec refers to a Secret.
fn names_secret(value: &Value) -> bool {
    const REFERENCES: [&str; 5] =
        ["imagePullSecrets", "secret", "secretKeyRef", "secretName", "secretRef"];
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| REFERENCES.contains(&key.as_str()) || names_secret(value)),
        Value::Array(items) => items.iter().any(names_secret),
        _ => false,
    }
}

/// Mounts the token into every container that has no other mount at its path.
fn mount_token(spec: &mut Object) {
    let mut volumes = spec.get("volumes").map(items).unwrap_or_default().iter();
    let given = volumes.find_map(|volume| {
        volume["name"].as_str().filter(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned)
    });
    let is_new = given.is_none();
    let volume = given.unwrap_or_else(|| names::generate_name(TOKEN_VOLUME, rand::random()));
    let mut used = false;
    for field in ["initContainers", "containers"] {
        each(spec, field, |container| {
            preset(container, "volumeMounts", json!([]));
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut)
            else {
                return;
            };
            if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_DIRECTORY) {
                return;
            }
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": TOKEN_DIRECTORY}));
            used = true;
        });
    }
    if used && is_new {
        preset(spec, "volumes", json!([]));
        if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
            volumes.push(token_volume(&volume));
        }
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
            "defaultMode": 420,
        },
    })
}
