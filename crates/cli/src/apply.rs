//! A minimal apply: creates the objects of a manifest, or merges them into the existing ones.

use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::error::{CliError, Failure};

/// Wait for a cluster to observe new rights and namespaces.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two attempts during that wait.
const RETRY_EVERY: Duration = Duration::from_millis(200);
/// What to do when a cluster does not respond.
pub const UNREACHABLE_HINT: &str = "check that the cluster runs and that this machine reaches the \
                                    server named in the kubeconfig";
/// The largest manifest, in documents.
const DOCUMENTS_MAX: usize = 1_000;

/// The documents of a manifest in the order in which they must be created.
pub fn documents(manifest: &str) -> Result<Vec<Value>, CliError> {
    let wrong = |why: String| CliError::new(Failure::Other, format!("reading the manifest: {why}"));
    // As Kubernetes reads it: "n" and "yes" are text.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(manifest, options)
        .map_err(|error| wrong(error.to_string()))?;
    let mut documents: Vec<Value> =
        documents.into_iter().filter(|document| !document.is_null()).collect();
    if documents.len() > DOCUMENTS_MAX {
        return Err(wrong(format!("more than {DOCUMENTS_MAX} documents")));
    }
    for document in &documents {
        if !document["kind"].is_string() || !document["metadata"]["name"].is_string() {
            return Err(wrong("a document has no kind or no name".to_owned()));
        }
    }
    documents.sort_by_key(rank);
    Ok(documents)
}

/// Dependencies come first; the sort is stable.
fn rank(document: &Value) -> u8 {
    match document["kind"].as_str().unwrap_or_default() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        "ServiceAccount" => 2,
        "ClusterRole" | "Role" => 3,
        "ClusterRoleBinding" | "RoleBinding" => 4,
        "Secret" | "ConfigMap" => 5,
        _ => 6,
    }
}

/// `kind/name`, for messages.
pub fn title(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&document["kind"]).to_lowercase(), text(&document["metadata"]["name"]))
}

/// Creates the object of a document, or merges the document into the existing object.
///
/// Retries for a few seconds, until the cluster has observed the objects before it.
pub async fn apply(client: &kube::Client, document: &Value) -> Result<(), CliError> {
    let deadline = Instant::now() + SETTLE_WITHIN;
    loop {
        match apply_once(client, document).await {
            Err(error) if is_settling(&error) && Instant::now() < deadline => {
                sleep(RETRY_EVERY).await;
            }
            Err(error) => return Err(refusal(&title(document), &error)),
            Ok(()) => return Ok(()),
        }
    }
}

async fn apply_once(client: &kube::Client, document: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject =
        serde_json::from_value(document.clone()).map_err(kube::Error::SerdeError)?;
    let api = api_of(client, &object).await?;
    let name = object.metadata.name.as_deref().unwrap_or_default();
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "AlreadyExists" => {
            api.patch(name, &PatchParams::default(), &Patch::Merge(document)).await.map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

async fn api_of(
    client: &kube::Client,
    object: &DynamicObject,
) -> Result<Api<DynamicObject>, kube::Error> {
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, scope) = resource_of(client, &gvk).await?;
    Ok(match (scope, object.metadata.namespace.as_deref()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    })
}

/// Returns well-known kinds without a request; others by discovery.
async fn resource_of(
    client: &kube::Client,
    gvk: &GroupVersionKind,
) -> Result<(ApiResource, Scope), kube::Error> {
    let cluster = ["Namespace", "ClusterRole", "ClusterRoleBinding"];
    let namespaced = [
        "ServiceAccount",
        "Secret",
        "ConfigMap",
        "Service",
        "Deployment",
        "DaemonSet",
        "Role",
        "RoleBinding",
    ];
    let groups = ["", "apps", "rbac.authorization.k8s.io"];
    if groups.contains(&gvk.group.as_str()) && gvk.version == "v1" {
        if cluster.contains(&gvk.kind.as_str()) {
            return Ok((ApiResource::from_gvk(gvk), Scope::Cluster));
        }
        if namespaced.contains(&gvk.kind.as_str()) {
            return Ok((ApiResource::from_gvk(gvk), Scope::Namespaced));
        }
    }
    let (resource, capabilities) = pinned_kind(client, gvk).await?;
    Ok((resource, capabilities.scope))
}

/// Whether the error is temporary after a recent creation.
fn is_settling(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => match status.code {
            // The namespace does not exist yet, or is still being deleted.
            404 => status.message.contains("namespaces"),
            403 => status.message.contains("being terminated"),
            409 | 429 | 500 | 503 | 504 => true,
            _ => false,
        },
        _ => false,
    }
}

/// The error for a request that the cluster refused, with what to do about it.
pub fn refusal(what: &str, error: &kube::Error) -> CliError {
    match error {
        kube::Error::Api(status) => {
            let message = format!("{what}: {}", status.message);
            match status.code {
                401 => CliError::new(Failure::Unauthenticated, message)
                    .hint("the credentials in the kubeconfig are not valid; renew them"),
                403 => CliError::new(Failure::Forbidden, message).hint(
                    "use a kubeconfig whose user may create namespaces and cluster roles, such as \
                     a cluster administrator's",
                ),
                404 => CliError::new(Failure::NotFound, message),
                409 => CliError::new(Failure::Conflict, message),
                422 => CliError::new(Failure::Invalid, message),
                _ => CliError::new(Failure::Other, message),
            }
        }
        other => {
            let mut causes = String::new();
            let mut source = std::error::Error::source(other);
            while let Some(cause) = source {
                causes = cause.to_string();
                source = cause.source();
            }
            let message = if causes.is_empty() { other.to_string() } else { causes };
            CliError::new(Failure::Unreachable, format!("{what}: {message}")).hint(UNREACHABLE_HINT)
        }
    }
}

#[cfg(test)]
mod tests;
