//! What is inside clusters, in the REST view: objects of a downstream cluster, read and written as the
//! caller.
//!
//! The caller's own client reaches a cluster below `/k8s/clusters/<id>`, as the caller's `kubectl`
//! would: the authentication proxy says there who asks, and the cluster decides what they may. Nothing
//! here knows anybody's rights. Beyond those, the cluster or project itself must be one that the caller
//! may see.
//!
//! [`ClusterStore`] is for types of `/v3/clusters/<id>/…`, [`ProjectStore`] for those of
//! `/v3/projects/<id>/…`: objects in the namespaces of the project, which are those whose annotation
//! `field.cattle.io/projectId` names it. The latter puts the project's id at [`PROJECT_ID`] of each
//! object, so that a table shows it by `projectId reference[project] CN @projectId`. [`ProjectHome`] is for
//! what is a project's own and lies in the management API.
//!
//! Changes are followed with the agent's rights; what changed is read as the caller. Roles and bindings
//! of the cluster are followed too, since they say what the caller may see.

mod cluster_store;
mod project_store;

use std::time::Duration;

use api_management::project::BACKING_NAMESPACE_CREATED;
use api_management::{Cluster, Condition, Project, condition};
use http::{Request, Uri};
use kube::Client;
use rest_view::store::call;
use rest_view::urls::encode;
use rest_view::{
    ApiError, Context, Followed, Form, Inside, Key, KubeResource, KubeStore, MayChange, Store,
    Tells,
};
use serde_json::Value;

pub use cluster_store::ClusterStore;
pub use project_store::{NAMESPACES_AT_ONCE, NAMESPACES_ONE_BY_ONE_MAX, PROJECT_ID, ProjectStore};

use crate::view::resource_of;

/// Longest wait for a cluster, over all that one operation asks of it.
pub const CLUSTER_TIME_MAX: Duration = Duration::from_secs(30);
/// Answers of the proxy that say that the cluster could not be asked, or of one that cannot answer.
const UNAVAILABLE: [u16; 3] = [502, 503, 504];

/// Kinds that say who may see what: plural, kind, whether it is in namespaces.
const RIGHTS: [(&str, &str, bool); 4] = [
    ("clusterroles", "ClusterRole", false),
    ("clusterrolebindings", "ClusterRoleBinding", false),
    ("roles", "Role", true),
    ("rolebindings", "RoleBinding", true),
];

/// The cluster that a request is inside of, and the project, when it is inside of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub cluster: String,
    /// Its whole id, `c-abcde:p-abcde`.
    pub project: Option<String>,
}

impl Location {
    /// Where the path is. Says nothing about whether it exists.
    ///
    /// # Errors
    /// 404 outside of clusters and projects, and for what cannot be their id.
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

    /// As [`Self::of`], of a cluster or project that the caller may see.
    ///
    /// # Errors
    /// 404 when there is none, 403 when the caller may not see it.
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
        let (own, root) =
            (context.client.clone(), format!("/k8s/clusters/{}", encode(&self.cluster)));
        let service = move |mut request: Request<kube::client::Body>| {
            let (own, path) = (own.clone(), format!("{root}{}", request.uri()));
            async move {
                *request.uri_mut() =
                    path.parse::<Uri>().map_err(|error| kube::Error::HttpError(error.into()))?;
                own.send(request).await
            }
        };
        Client::new(tower::service_fn(service), "default")
    }
}

/// Whether there is such a project and the caller may see it.
///
/// # Errors
/// 404 when there is none, 403 when the caller may not see it.
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

/// The project that a request is inside of, and the namespace of the management API that holds what is
/// the project's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectHome {
    /// Its whole id, `c-abcde:p-abcde`.
    pub project: String,
    /// `None` while there is no namespace that is this project's and no other's.
    pub namespace: Option<String>,
}

impl ProjectHome {
    /// Of a project that the caller may see.
    ///
    /// # Errors
    /// 404 outside of projects and when there is none, 403 when the caller may not see it.
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

/// Bounds what a cluster is asked for: whatever keeps it from answering is `ClusterUnavailable`. A
/// write that was not answered may have taken effect.
///
/// # Errors
/// Those of `asked`, or 503.
pub async fn answered<T>(asked: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
    match tokio::time::timeout(CLUSTER_TIME_MAX, asked).await {
        Ok(Err(error)) if UNAVAILABLE.contains(&error.status) => {
            Err(ApiError::cluster_unavailable(error.message))
        }
        Ok(answer) => answer,
        Err(_) => Err(ApiError::cluster_unavailable(format!(
            "the cluster did not answer within {} s; see the cluster's conditions",
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
    answered(kube.may_change(&context.through(&client), keys)).await
}

/// What tells of the objects of a resource in the cluster that the request is inside of, and of who may
/// see them.
fn followed(context: &Context<'_>, resource: &KubeResource) -> Vec<Followed> {
    let Ok(location) = Location::of(context) else { return Vec::new() };
    let follow = |resource: KubeResource, tells: Tells| Followed {
        cluster: Some(location.cluster.clone()),
        resource,
        form: Form::Metadata,
        tells,
    };
    let rights = RIGHTS.map(|(plural, kind, namespaced)| {
        let group = "rbac.authorization.k8s.io";
        follow(KubeResource::new(group, "v1", plural, kind, namespaced), Tells::Sight)
    });
    rights.into_iter().chain([follow(resource.clone(), Tells::Object(String::new()))]).collect()
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(fits)
}
