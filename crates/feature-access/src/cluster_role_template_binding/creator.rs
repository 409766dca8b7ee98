//! Keeps true: who made a cluster was made its owner, once.
//!
//! Owns the cluster's condition CreatorMadeOwner; once it is true the binding is the
//! administrators' to take away. Watches clusters (own key) and namespaces (a namespace maps to its
//! cluster).

use std::sync::Arc;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{Cluster, ClusterRoleTemplateBinding, condition, keys};
use controller::{
    Attempt, ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError,
    Reflector, Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use feature_kit::ownership::is_namespace_of;
use feature_kit::ownership::owner_reference;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

const MADE_OWNER: OwnedCondition = OwnedCondition::of("Cluster", "CreatorMadeOwner");
/// Name of the binding in the cluster's namespace.
const BINDING: &str = "creator-cluster-owner";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "cluster-creator",
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status"], &["patch"]),
            ours(&["clusterroletemplatebindings"], &["create"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    let namespaces = scope.reflectors.get::<Metadata<Namespace>>();
    let creator = Creator { client, clusters: clusters.clone(), namespaces: namespaces.clone() };
    let runner = Runner::new(Arc::new(creator));
    runner.watch_own(&clusters);
    runner.watch_namesakes(&clusters, &namespaces);
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Creator {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
}

/// The binding of a cluster's creator; none when the server itself made it. Pure.
pub(crate) fn desired(cluster: &Cluster) -> Option<ClusterRoleTemplateBinding> {
    let creator = cluster.annotations().get(keys::CREATOR_ID).filter(|id| !id.is_empty())?;
    let mut binding = ClusterRoleTemplateBinding {
        cluster_name: cluster.name_any(),
        role_template_name: CLUSTER_OWNER.to_owned(),
        user_name: creator.clone(),
        ..ClusterRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(BINDING.to_owned());
    binding.metadata.namespace = Some(cluster.name_any());
    binding.metadata.owner_references = Some(vec![owner_reference(cluster)]);
    Some(binding)
}

impl Creator {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else { return Ok(Outcome::Done) };
        let done = condition::is_true(&cluster.status.conditions, MADE_OWNER.condition());
        if done || cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        // Read anew: the watch may not have brought yet that this was done, and the binding may
        // have been taken away since.
        let clusters: Api<Cluster> = Api::all(self.client.clone());
        let read = clusters.get_opt(&key.name).await;
        let now = read.attempt(|| format!("read cluster \"{key}\""))?;
        let is_same = now.as_ref().is_some_and(|now| now.uid() == cluster.uid());
        let done = now
            .is_none_or(|now| condition::is_true(&now.status.conditions, MADE_OWNER.condition()));
        if done || !is_same {
            return Ok(Outcome::Done);
        }
        if let Some(binding) = desired(&cluster) {
            let namespace = self.namespaces.named(&key.name);
            if !namespace.is_some_and(|namespace| is_namespace_of(&namespace, &cluster)) {
                return Ok(Outcome::WaitingFor(format!("namespace \"{key}\"")));
            }
            let api = Api::namespaced(self.client.clone(), &key.name);
            ensure::created(&api, &binding).await?;
        }
        let patch = StatusPatch::new().condition(MADE_OWNER, ConditionState::yes());
        patch.write(&self.client, &StatusTarget::of::<Cluster>("", &key.name)).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for Creator {
    fn name(&self) -> &'static str {
        "cluster-creator"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
