//! Keeps true: every cluster got its projects Default and System, once.
//!
//! Owns the cluster's conditions DefaultProjectCreated and SystemProjectCreated. Once they are true
//! it never makes the projects again: who deletes Default means it. Watches clusters (own key) and
//! namespaces (a namespace maps to the cluster of the same name).

use std::sync::Arc;

use api_management::{Cluster, Project, condition};
use controller::{
    ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError, Reflector,
    Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use feature_kit::ownership::is_namespace_of;
use feature_kit::ownership::owner_reference;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

use super::initial::Initial;

const DEFAULT_CREATED: OwnedCondition = OwnedCondition::of("Cluster", "DefaultProjectCreated");
const SYSTEM_CREATED: OwnedCondition = OwnedCondition::of("Cluster", "SystemProjectCreated");

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "initial-projects",
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status"], &["patch"]),
            ours(&["projects"], &["create"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    let namespaces = scope.reflectors.get::<Metadata<Namespace>>();
    let initial =
        InitialProjects { client, clusters: clusters.clone(), namespaces: namespaces.clone() };
    let runner = Runner::new(Arc::new(initial));
    runner.watch_own(&clusters);
    runner.watch_namesakes(&clusters, &namespaces);
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct InitialProjects {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
}

/// The projects that the cluster has yet to get, with the condition that each makes true. Pure.
pub(crate) fn desired(cluster: &Cluster) -> Vec<(OwnedCondition, Project)> {
    let conditions = &cluster.status.conditions;
    let missing = Initial::ALL
        .into_iter()
        .map(|initial| (created(initial), initial))
        .filter(|(owned, _)| !condition::is_true(conditions, owned.condition()));
    let make = |(owned, initial): (OwnedCondition, Initial)| {
        let display_name = initial.display_name();
        let mut project = Project::default();
        project.metadata.name = Some(initial.project_name(cluster));
        project.metadata.namespace = cluster.metadata.name.clone();
        project.metadata.labels = Some([(initial.label().to_owned(), "true".to_owned())].into());
        project.metadata.owner_references = Some(vec![owner_reference(cluster)]);
        project.spec.display_name = display_name.to_owned();
        project.spec.description = format!("{display_name} project created for the cluster");
        project.spec.cluster_name = cluster.name_any();
        (owned, project)
    };
    missing.map(make).collect()
}

fn created(initial: Initial) -> OwnedCondition {
    match initial {
        Initial::Default => DEFAULT_CREATED,
        Initial::System => SYSTEM_CREATED,
    }
}

impl InitialProjects {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else { return Ok(Outcome::Done) };
        let missing = desired(&cluster);
        if missing.is_empty() || cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let namespace = self.namespaces.named(&key.name);
        if !namespace.is_some_and(|namespace| is_namespace_of(&namespace, &cluster)) {
            return Ok(Outcome::WaitingFor(format!("namespace \"{key}\"")));
        }
        let api: Api<Project> = Api::namespaced(self.client.clone(), &key.name);
        let mut patch = StatusPatch::new();
        for (owned, project) in missing {
            ensure::created(&api, &project).await?;
            patch = patch.condition(owned, ConditionState::yes());
        }
        patch.write(&self.client, &StatusTarget::of::<Cluster>("", &key.name)).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for InitialProjects {
    fn name(&self) -> &'static str {
        "initial-projects"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
