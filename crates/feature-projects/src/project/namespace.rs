//! Keeps true: every project has a namespace of its own name in the management API, where what
//! belongs to the project lies, and the namespace goes when the project has gone.
//!
//! Owns the project's condition BackingNamespaceCreated. Watches projects (own key) and namespaces
//! (one says in annotations which project's it is, and a namespace that does not is left alone).

use std::sync::Arc;
use std::time::Duration;

use api_management::{Project, keys};
use controller::{
    ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError, Reflector,
    Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use feature_kit::ownership::is_namespace_of_project;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext, system_namespace};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ObjectMeta;
use kube::{Api, Client};

const NAMESPACE: OwnedCondition = OwnedCondition::of("Project", "BackingNamespaceCreated");

/// Until a namespace that somebody else has just created is seen.
const TAKEN_RETRY: Duration = Duration::from_millis(200);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "project-namespace",
        vec![
            ours(&["projects"], &["get"]),
            ours(&["projects/status"], &["patch"]),
            rule("", &["namespaces"], &["create", "delete"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let projects = scope.reflectors.get::<Whole<Project>>();
    let namespaces = scope.reflectors.get::<Metadata<Namespace>>();
    // Before that, a project that was not heard of yet would look like one that has gone.
    projects.synced().await;
    let backing = Backing { client, projects: projects.clone(), namespaces: namespaces.clone() };
    let runner = Runner::new(Arc::new(backing));
    runner.watch_own(&projects);
    runner.watch(&namespaces, |change| {
        let (controller::Change::Applied { new: object, .. }
        | controller::Change::Deleted { old: object, .. }) = change;
        project_of(object)
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Backing {
    client: Client,
    projects: Arc<Reflector<Whole<Project>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
}

/// The project that a namespace is for.
pub(crate) fn project_of(namespace: &ObjectMeta) -> Option<Key> {
    let (cluster, project) = keys::project_of(namespace)?;
    Some(Key::namespaced(cluster, project))
}

/// The namespace of a project of this uid.
pub(crate) fn desired(project: &Key, uid: &str) -> Namespace {
    let id = format!("{}:{}", project.namespace, project.name);
    let mut namespace = system_namespace(&project.name);
    let annotations = namespace.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::PROJECT_OF_NAMESPACE.to_owned(), id);
    annotations.insert(keys::PROJECT_UID.to_owned(), uid.to_owned());
    namespace
}

/// What to say of a project whose namespace is not its own.
fn name_taken(name: &str, other: Option<Key>) -> ConditionState {
    let holder = other.map_or_else(
        || "was there before the project".to_owned(),
        |other| format!("is that of project \"{other}\""),
    );
    let text = format!(
        "namespace \"{name}\" {holder} and is not this project's; delete the project and create it anew, \
         under a generated name"
    );
    ConditionState::no("NameTaken", text)
}

impl Backing {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let namespace = self.namespaces.named(&key.name);
        let own = namespace.as_deref().is_some_and(|found| project_of(found).as_ref() == Some(key));
        let Some(project) = self.projects.get(key) else {
            if own {
                ensure::absent(&api, &key.name).await?;
            }
            return Ok(Outcome::Done);
        };
        if project.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::WaitingFor("removal".to_owned()));
        }
        let state = match namespace {
            None => {
                let uid = project.metadata.uid.clone().unwrap_or_default();
                if !ensure::created(&api, &desired(key, &uid)).await? {
                    return Ok(Outcome::RequeueAfter(TAKEN_RETRY));
                }
                ConditionState::yes()
            }
            Some(found) if found.deletion_timestamp.is_some() => ConditionState::no(
                "Terminating",
                "the namespace of the project's name is being deleted",
            ),
            Some(found) if is_namespace_of_project(&found, &project) => ConditionState::yes(),
            Some(_) if own => {
                ensure::absent(&api, &key.name).await?;
                let text = "the namespace of an earlier project of this name is being deleted";
                ConditionState::no("Terminating", text)
            }
            Some(found) => name_taken(&key.name, project_of(&found)),
        };
        let target = StatusTarget::of::<Project>(&key.namespace, &key.name);
        StatusPatch::new().condition(NAMESPACE, state).write(&self.client, &target).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for Backing {
    fn name(&self) -> &'static str {
        "project-namespace"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
