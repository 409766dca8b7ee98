//! The owners of objects. In a downstream cluster, everything that the server creates is owned by
//! its one namespace there and deleted with it. In the management API, a namespace belongs to the
//! object whose uid it refers to.

use api_management::{Cluster, Project, keys};
use controller::{Attempt, ReconcileError};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource};

/// A reference to Drover's namespace in the cluster of `client`, for cluster-scoped objects and
/// objects in any namespace.
///
/// # Errors
/// The cluster refused, or the namespace is being deleted: objects that are created now would be
/// deleted at once. Retry later.
pub async fn our_namespace(client: &Client) -> Result<OwnerReference, ReconcileError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = namespaces.get_metadata(keys::SYSTEM_NS).await;
    let namespace = read.attempt(|| format!("read namespace \"{}\"", keys::SYSTEM_NS))?;
    if namespace.metadata.deletion_timestamp.is_some() {
        return Err(ReconcileError::other("own objects", "Drover's namespace is being deleted"));
    }
    Ok(owner_reference(&namespace))
}

/// Whether the object refers to the object with this uid as its owner. A name is not sufficient: an
/// object can be deleted, and another one created under its name.
pub fn is_owned_by(metadata: &ObjectMeta, uid: Option<&str>) -> bool {
    let Some(uid) = uid.filter(|uid| !uid.is_empty()) else { return false };
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// Whether the namespace of the management API belongs to the cluster, and is not being deleted.
pub fn is_namespace_of(namespace: &ObjectMeta, cluster: &Cluster) -> bool {
    namespace.deletion_timestamp.is_none()
        && is_owned_by(namespace, cluster.metadata.uid.as_deref())
}

/// Whether the namespace of the management API belongs to this project, and not to an earlier one
/// with its name. Namespaces cannot refer to a namespaced owner, so annotations record it.
pub fn is_namespace_of_project(namespace: &ObjectMeta, project: &Project) -> bool {
    let of = &project.metadata;
    let id = of.namespace.as_deref().zip(of.name.as_deref());
    if id.is_none() || keys::project_of(namespace) != id {
        return false;
    }
    match namespace.annotations.as_ref().and_then(|all| all.get(keys::PROJECT_UID)) {
        Some(uid) => of.uid.as_ref() == Some(uid),
        // An earlier version created it: for this project if the project already existed.
        None => namespace.creation_timestamp >= of.creation_timestamp,
    }
}

/// A reference to an object that was read from the API, for what is to be deleted with it. It does
/// not delay the owner's deletion.
pub fn owner_reference(owner: &impl Resource<DynamicType = ()>) -> OwnerReference {
    owner.owner_ref(&()).unwrap_or_default()
}
