//! What is ours in a downstream cluster is owned by our one namespace there and goes with it.

use api_management::keys;
use controller::{Attempt, ReconcileError};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client};

/// A reference to our namespace in the cluster of `client`, for cluster-scoped objects and those of any
/// namespace.
///
/// # Errors
/// The cluster refused, or our namespace is going: what is made now would be taken along at once.
pub async fn our_namespace(client: &Client) -> Result<OwnerReference, ReconcileError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = namespaces.get_metadata(keys::SYSTEM_NS).await;
    let namespace = read.attempt(|| format!("read namespace \"{}\"", keys::SYSTEM_NS))?;
    if namespace.metadata.deletion_timestamp.is_some() {
        return Err(ReconcileError::other("own objects", "our namespace is going"));
    }
    Ok(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: keys::SYSTEM_NS.to_owned(),
        uid: namespace.metadata.uid.unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    })
}
