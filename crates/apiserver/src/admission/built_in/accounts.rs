//! ServiceAccount: every pod runs as an account of its namespace, with its token, the authority and
//! the namespace in a volume, and pulls images with the account's secrets.

use std::time::Duration;

use api_meta::names;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::find;
use crate::fields::{Object, each, items, map, preset, text};
use crate::registry::Registry;
use crate::registry::admission::Request;
use crate::service_accounts::DEFAULT_ACCOUNT;

const TOKEN_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How volumes with tokens begin.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Seconds of a mounted token's life; kubelets renew at 80 %.
const TOKEN_SECONDS: i64 = 3607;
/// Pods that a kubelet makes of its own files. Nothing is added to them.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// How long a pod waits for the account that every namespace is given.
const ACCOUNT_WAIT_MAX: Duration = Duration::from_millis(1500);

/// Gives a new pod its account and what comes with it.
///
/// # Errors
/// 403: there is no such account.
pub(super) async fn mount(
    registry: &Registry,
    request: &Request<'_>,
    pod: &mut Value,
) -> Result<(), Status> {
    if !pod["metadata"]["annotations"][MIRROR].is_null() {
        return check_mirror(request, pod);
    }
    let Some(spec) = pod.get_mut("spec").and_then(map) else { return Ok(()) };
    default_account(spec);
    let name = text(spec, "serviceAccountName").to_owned();
    let Some(account) = account(registry, request.namespace, &name).await? else {
        let place = format!("{}/{name}", request.namespace);
        let text =
            format!("error looking up service account {place}: serviceaccount {name:?} not found");
        return Err(request.forbidden(Some(pod), &text));
    };
    let Some(spec) = pod.get_mut("spec").and_then(map) else { return Ok(()) };
    give(spec, &account);
    Ok(())
}

/// What a pod takes of its account.
pub fn give(spec: &mut Object, account: &Value) {
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

pub fn default_account(spec: &mut Object) {
    if text(spec, "serviceAccountName").is_empty() {
        spec.insert("serviceAccountName".to_owned(), DEFAULT_ACCOUNT.into());
        spec.insert("serviceAccount".to_owned(), DEFAULT_ACCOUNT.into());
    }
}

/// The account. That which every namespace is given is waited for.
async fn account(
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

fn check_mirror(request: &Request<'_>, pod: &Value) -> Result<(), Status> {
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

/// Mounts the token into every container that has nothing else in its place.
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
