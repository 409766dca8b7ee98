//! Objects inside clusters in the REST view: objects of a downstream cluster, read and written as
//! the caller.
//!
//! The client of the caller reaches a cluster below `/k8s/clusters/<id>`, like the `kubectl` of the
//! caller: the authentication proxy impersonates the caller there, and the cluster authorizes the
//! request. This module evaluates no rights. In addition, the caller must be able to see the
//! cluster or project itself.
//!
//! [`ClusterStore`] is for types of `/v3/clusters/<id>/…`, [`ProjectStore`] for types of
//! `/v3/projects/<id>/…`: objects in the namespaces of the project, which are those whose
//! annotation `field.cattle.io/projectId` names it. The latter adds the id of the project at
//! [`PROJECT_ID`] of each object, so that a table shows it by `projectId reference[project] CN
//! @projectId`. [`ProjectHome`] is for objects of the project itself, in the management API.
//!
//! Changes are watched with the rights of the agent; changed objects are read as the caller. Roles
//! and bindings of the cluster are watched too, because they determine what the caller may see.

mod cluster_store;
mod project_store;

use std::time::Duration;

use api_management::project::BACKING_NAMESPACE_CREATED;
use api_management::{Cluster, Condition, Project, condition};
use kube::Client;
use rest_view::store::{call, client_below};
use rest_view::urls::encode;
use rest_view::{
    ApiError, ChangeEffect, Context, Inside, Key, KubeResource, KubeStore, MayChange, Store,
    WatchDetail, WatchedResource,
};
use serde_json::Value;

pub use cluster_store::ClusterStore;
pub use project_store::{NAMESPACES_AT_ONCE, NAMESPACES_ONE_BY_ONE_MAX, PROJECT_ID, ProjectStore};

use crate::view::resource_of;

/// Longest wait for a cluster, over all requests of one operation.
pub const CLUSTER_TIME_MAX: Duration = Duration::from_secs(30);
/// Statuses of the proxy that mean that the cluster cannot be reached or does not respond.
const UNAVAILABLE: [u16; 3] = [502, 503, 504];

/// Kinds that determine who may see what: plural, kind, whether they are namespaced.
const RIGHTS: [(&str, &str, bool); 4] = [
    ("clusterroles", "ClusterRole", false),
    ("clusterrolebindings", "ClusterRoleBinding", false),
    ("roles", "Role", true),
    ("rolebindings", "RoleBinding", true),
];

/// The cluster of a request, and its project if the path is inside of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Id of the cluster.
    pub cluster: String,
    /// Full id of the project, `c-abcde:p-abcde`.
    pub project: Option<String>,
}

impl Location {
    /// The location that the path names. Does not check that it exists.
    ///
    /// # Errors
    /// 404 outside of clusters and projects, and for text that cannot be their id.
    pub fn of(context: &Context<'_>) -> Result<Self, ApiError> {
        let Some(Inside { kind, id }) = context.inside else { return Err(ApiError::no_such_id()) };
        let parts: Vec<&str> = id.split(':').collect();
        if !parts.iter().all(|part| is_name(part)) {
            return Err(ApiError::no_such_id());
        }
        match (kind.as_str(), parts.as_slice()) {
            ("cluster", [cluster]) => Ok(Self { cluster: (*cluster).to_owned(), project: None }),
            ("project", [cluster, _]) => {
                Ok(Self { cluster: (*cluster).to_owned(), project: Some(id.clone()) })
            }
            _ => Err(ApiError::no_such_id()),
        }
    }

    /// Like [`Self::of`], for a cluster or project that the caller may see.
    ///
    /// # Errors
    /// 404 when it does not exist, 403 when the caller may not see it.
    pub async fn enter(context: &Context<'_>) -> Result<Self, ApiError> {
        let location = Self::of(context)?;
        match &location.project {
            Some(project) => require_project(context, project).await?,
            None => {
                let key = Key { name: location.cluster.clone(), ..Key::default() };
                call(context, "GET", &resource_of::<Cluster>().object_path(&key), None).await?;
            }
        }
        Ok(location)
    }

    /// A client of the cluster that acts as the caller. Must be called inside a tokio runtime.
    pub fn client(&self, context: &Context<'_>) -> Client {
        client_below(context.client, format!("/k8s/clusters/{}", encode(&self.cluster)))
    }
}

/// Checks that the project exists and that the caller may see it.
///
/// # Errors
/// 404 when it does not exist, 403 when the caller may not see it.
pub async fn require_project(context: &Context<'_>, id: &str) -> Result<(), ApiError> {
    read_project(context, id).await.map(drop)
}

async fn read_project(context: &Context<'_>, id: &str) -> Result<Value, ApiError> {
    let (cluster, name) = id.split_once(':').ok_or_else(ApiError::no_such_id)?;
    if !is_name(cluster) || !is_name(name) {
        return Err(ApiError::no_such_id());
    }
    let key = Key { namespace: cluster.to_owned(), name: name.to_owned() };
    call(context, "GET", &resource_of::<Project>().object_path(&key), None).await
}

/// The project of a request, and the namespace of the management API with the project's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectHome {
    /// Full id of the project, `c-abcde:p-abcde`.
    pub project: String,
    /// `None` until the namespace exists and belongs to this project.
    pub namespace: Option<String>,
}

impl ProjectHome {
    /// The home of the project of the request, which the caller must be able to see.
    ///
    /// # Errors
    /// 404 outside of projects and when it does not exist, 403 when the caller may not see it.
    pub async fn enter(context: &Context<'_>) -> Result<Self, ApiError> {
        let project = Location::of(context)?.project.ok_or_else(ApiError::no_such_id)?;
        let stored = read_project(context, &project).await?;
        let conditions: Vec<Condition> =
            serde_json::from_value(stored["status"]["conditions"].clone()).unwrap_or_default();
        let is_there = condition::is_true(&conditions, BACKING_NAMESPACE_CREATED);
        let namespace = is_there.then(|| Key::of(&stored).name);
        Ok(Self { project, namespace })
    }
}

/// Limits a request to a cluster to [`CLUSTER_TIME_MAX`], and maps every failure to reach the
/// cluster to `ClusterUnavailable`. A write without a response may have taken effect.
///
/// # Errors
/// Those of `request`, or 503.
pub async fn with_cluster_timeout<T>(
    request: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(CLUSTER_TIME_MAX, request).await {
        Ok(Err(error)) if UNAVAILABLE.contains(&error.status) => {
            Err(ApiError::cluster_unavailable(error.message))
        }
        Ok(response) => response,
        Err(_) => Err(ApiError::cluster_unavailable(format!(
            "the cluster did not respond within {} s; see the cluster's conditions",
            CLUSTER_TIME_MAX.as_secs()
        ))),
    }
}

/// What the caller may do with objects of the cluster that the request is inside of.
async fn may_change(
    kube: &KubeStore,
    context: &Context<'_>,
    keys: &[Key],
) -> Result<Vec<MayChange>, ApiError> {
    let client = Location::of(context)?.client(context);
    with_cluster_timeout(kube.may_change(&context.through(&client), keys)).await
}

/// The watches for the objects of a resource in the cluster of the request, and for who may see
/// them.
fn watched_resources(context: &Context<'_>, resource: &KubeResource) -> Vec<WatchedResource> {
    let Ok(location) = Location::of(context) else { return Vec::new() };
    let follow = |resource: KubeResource, effect: ChangeEffect| WatchedResource {
        cluster: Some(location.cluster.clone()),
        resource,
        detail: WatchDetail::Metadata,
        effect,
    };
    let rights = RIGHTS.map(|(plural, kind, namespaced)| {
        let group = "rbac.authorization.k8s.io";
        follow(KubeResource::new(group, "v1", plural, kind, namespaced), ChangeEffect::Visibility)
    });
    rights
        .into_iter()
        .chain([follow(resource.clone(), ChangeEffect::Object(String::new()))])
        .collect()
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(fits)
}
