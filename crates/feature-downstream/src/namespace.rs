//! Namespaces, and the project that each is in.
//!
//! The annotation `field.cattle.io/projectId` says which: `c-abcde:p-abcde`. A label of the same
//! key with the project's name alone is for selectors and always follows it. A namespace gets its
//! project when it is made, and another one by the action `move`; an update leaves it where it is.

use api_management::keys::PROJECT_ID;
use api_meta::object::ObjectExt;
use feature_kit::downstream::{ClusterStore, Location, require_project};
use futures::future::BoxFuture;
use http::StatusCode;
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Context, Key, Store};
use serde_json::{Map, Value};

pub const TYPE: &str = "namespace";
pub const MOVE_INPUT: &str = "namespaceMove";
/// Attempts of a move that meets concurrent writes.
const MOVE_ATTEMPTS_MAX: usize = 5;

/// Namespaces of the cluster that the path is inside of.
pub struct NamespaceStore {
    cluster: ClusterStore,
}

impl NamespaceStore {
    /// A store of the namespaces in one cluster.
    pub fn new(cluster: ClusterStore) -> Self {
        Self { cluster }
    }
}

/// A project that a namespace of the cluster may be put into: one of the cluster that the caller
/// may see.
async fn check_project(context: &Context<'_>, id: &str) -> Result<(), ApiError> {
    let location = Location::of(context)?;
    let wrong = |why: &str| {
        let text =
            format!("project \"{id}\" {why}; use the id of a project, as in c-abcde:p-abcde");
        ApiError::invalid_field("InvalidReference", "projectId", text)
    };
    match id.split_once(':') {
        Some((cluster, _)) if cluster != location.cluster => Err(wrong("is of another cluster")),
        _ => match require_project(context, id).await {
            Err(error) if error.is_not_found() || error.is_forbidden() => {
                Err(wrong("does not exist, or you may not see it"))
            }
            other => other,
        },
    }
}

/// Puts a namespace into a project, or with `None` into no project.
fn assign(namespace: &mut Value, project: Option<&str>) {
    let name = project.and_then(|id| id.rsplit(':').next());
    for (map, value) in [("annotations", project), ("labels", name)] {
        let entries = namespace.meta_mut().entry(map).or_insert_with(|| Map::new().into());
        if !entries.is_object() {
            *entries = Map::new().into();
        }
        let Some(entries) = entries.as_object_mut() else { continue };
        match value {
            Some(value) => entries.insert(PROJECT_ID.to_owned(), value.into()),
            None => entries.remove(PROJECT_ID),
        };
    }
}

fn project_of(namespace: &Value) -> Option<String> {
    let id = namespace.annotation(PROJECT_ID).filter(|id| !id.is_empty());
    id.map(str::to_owned)
}

impl Store for NamespaceStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.cluster)
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let project = project_of(&object);
            if let Some(project) = &project {
                check_project(context, project).await?;
            }
            assign(&mut object, project.as_deref());
            self.cluster.create(context, object).await
        })
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let current = self.cluster.get(context, key).await?;
            assign(&mut object, project_of(&current).as_deref());
            self.cluster.replace(context, key, object).await
        })
    }
}

/// The action `move {projectId}`, with the caller's own right to update the namespace. No project:
/// the namespace is in none afterwards.
pub struct Move(pub ClusterStore);

impl Move {
    async fn to(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let context = request.context;
        let project = request.input.get("projectId").and_then(Value::as_str);
        let project = project.filter(|id| !id.is_empty());
        if let Some(project) = project {
            check_project(context, project).await?;
        }
        let namespace = request.object.ok_or_else(ApiError::no_such_id)?;
        let (key, mut namespace) = (Key::of(namespace), namespace.clone());
        let mut attempt = 1;
        loop {
            assign(&mut namespace, project);
            match self.0.replace(context, &key, namespace).await {
                Ok(_) => return Ok(ActionResponse::Empty(StatusCode::NO_CONTENT)),
                Err(error) if error.is_conflict() && attempt < MOVE_ATTEMPTS_MAX => attempt += 1,
                Err(error) => return Err(error),
            }
            namespace = self.0.get(context, &key).await?;
        }
    }
}

impl ActionHandler for Move {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.to(request))
    }
}
