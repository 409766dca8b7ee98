//! Keeps true: every project has a namespace of its own name in the management API, where what belongs to
//! the project lies, and the namespace goes when the project has gone.
//!
//! Owns the project's condition BackingNamespaceCreated. Watches projects (own key) and namespaces (one
//! says in an annotation which project's it is).

use std::sync::Arc;

use api_management::{Project, keys};
use controller::{
    ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError, Reflector,
    Runner, StatusPatch, Target, Whole, ensure,
};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ObjectMeta;
use kube::{Api, Client};

const NAMESPACE: OwnedCondition = OwnedCondition::of("Project", "BackingNamespaceCreated");

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

/// The namespace of a project.
pub(crate) fn desired(project: &Key) -> Namespace {
    let id = format!("{}:{}", project.namespace, project.name);
    let annotations = [(keys::SYSTEM_NAMESPACE, "true"), (keys::PROJECT_OF_NAMESPACE, &id)];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata = ObjectMeta {
        name: Some(project.name.clone()),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata, ..Namespace::default() }
}

impl Backing {
    async fn keep(&self, key: &Key) -> Result<Outcome, ReconcileError> {
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
                ensure::created(&api, &desired(key)).await?;
                ConditionState::yes()
            }
            Some(found) if found.deletion_timestamp.is_some() => {
                ConditionState::no("Terminating", "the namespace of the project's name is going")
            }
            Some(found) => match project_of(&found).filter(|other| other != key) {
                Some(other) => ConditionState::no(
                    "NameTaken",
                    format!("the namespace of the project's name belongs to project \"{other}\""),
                ),
                None => ConditionState::yes(),
            },
        };
        let target = Target::of::<Project>(&key.namespace, &key.name);
        StatusPatch::new().condition(NAMESPACE, state).write(&self.client, &target).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for Backing {
    fn name(&self) -> &'static str {
        "project-namespace"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.keep(key))
    }
}
