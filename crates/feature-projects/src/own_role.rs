//! The rights of a controller in a downstream cluster, beyond those of the agent: a ClusterRole
//! there, bound to the controller's own identity, which the controller impersonates. Our namespace
//! owns both, so they are deleted with it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_management::{Cluster, PolicyRule, ids, keys};
use controller::{
    Attempt, ConditionReport, DownstreamScope, Key, Outcome, OwnedCondition, Queue, Reconcile,
    ReconcileError, Reflector, Runner, StatusTarget, Whole, WithCondition, ensure,
};
use feature_kit::ControllerIdentity;
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{role_ref, subject, to_kube};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::OnceCell;

/// The role is compared again after this time, or when the cluster rejects a request.
pub const INTERVAL: Duration = Duration::from_secs(600);
/// Wait after such a rejection: many come together.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// What a user can do when the cluster rejects the role.
pub const NEXT_STEP: &str = "Drover tries again; check what rejects it in the cluster, an admission \
    webhook or policy, or apply the import manifest again to restore the rights of the agent";

/// See the module.
pub struct OwnRole {
    /// Name of the controller that applies it, in kebab case.
    controller: &'static str,
    /// Of the role and its binding.
    name: String,
    /// Value of the label [`keys::DOWNSTREAM_OWNED`].
    purpose: &'static str,
    user: String,
    rules: Vec<PolicyRule>,
}

impl OwnRole {
    /// The role of a controller, for its `identity`. `purpose` becomes the label of the role,
    /// `rules` its rights.
    pub fn new(
        controller: &'static str,
        identity: &ControllerIdentity,
        purpose: &'static str,
        rules: Vec<PolicyRule>,
    ) -> Self {
        let name = format!("drover:{}", identity.name);
        Self { controller, name, purpose, user: identity.user(), rules }
    }

    fn objects(&self) -> (ClusterRole, ClusterRoleBinding) {
        let labels = [(keys::DOWNSTREAM_OWNED.to_owned(), self.purpose.to_owned())];
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let role = ClusterRole {
            metadata: metadata.clone(),
            rules: Some(self.rules.iter().map(to_kube).collect()),
            aggregation_rule: None,
        };
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: role_ref("ClusterRole", &self.name),
            subjects: Some(vec![subject("User", &self.user)]),
        };
        (role, binding)
    }
}

/// A role in one connected cluster. Its one key is the cluster's.
pub struct AppliedRole {
    cluster: String,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    /// Acts in the cluster with the rights of the agent.
    pub agent: Client,
    role: OwnRole,
    was_used: OnceCell<bool>,
    queue: OnceLock<Arc<Queue>>,
}

impl AppliedRole {
    /// The role in the cluster of `scope`. Nothing is written before [`Self::run`].
    pub fn new(
        scope: &DownstreamScope,
        clusters: Arc<Reflector<Whole<Cluster>>>,
        role: OwnRole,
    ) -> Arc<Self> {
        let (cluster, agent) = (scope.cluster.clone(), scope.client.clone());
        let (was_used, queue) = (OnceCell::new(), OnceLock::new());
        Arc::new(Self { cluster, clusters, agent, role, was_used, queue })
    }

    /// Name of the role, and of its binding.
    pub fn name(&self) -> &str {
        &self.role.name
    }

    /// Whether the role was in the cluster before this connection: it was used there. Reads it
    /// once.
    ///
    /// # Errors
    /// The cluster does not respond. Retry later.
    pub async fn was_used(&self) -> Result<bool, ReconcileError> {
        let read = async || {
            let roles: Api<ClusterRole> = Api::all(self.agent.clone());
            let found = roles.get_metadata_opt(self.name()).await;
            Ok(found.attempt(|| format!("read role \"{}\"", self.name()))?.is_some())
        };
        self.was_used.get_or_try_init(read).await.copied()
    }

    /// Whether the cluster is not being removed. What removal deletes must not be created again.
    pub fn is_staying(&self) -> bool {
        let cluster = self.clusters.named(&self.cluster);
        cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_none())
    }

    /// Compares the role soon. For whoever gets a rejection in the cluster: the role may be
    /// missing.
    pub fn check_soon(&self) {
        if let Some(queue) = self.queue.get() {
            queue.add_after(Key::cluster_scoped(&self.cluster), DEBOUNCE);
        }
    }

    /// Applies the role until the scope ends, and reports that in `condition` of the cluster.
    ///
    /// - `client`: acts in the management API.
    pub async fn run(
        self: Arc<Self>,
        client: &Client,
        condition: OwnedCondition,
        scope: &DownstreamScope,
    ) {
        // In the management API the server acts for itself.
        if self.cluster == ids::LOCAL_CLUSTER {
            return;
        }
        let report = ConditionReport {
            condition,
            client: client.clone(),
            target: StatusTarget::of::<Cluster>("", &self.cluster),
            next_step: NEXT_STEP.to_owned(),
        };
        let runner = Runner::new(Arc::new(WithCondition::new(RoleReconcile(self.clone()), report)));
        let queue = self.queue.get_or_init(|| runner.queue().clone());
        queue.add(Key::cluster_scoped(&self.cluster));
        runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
    }

    async fn put(&self) -> Result<Outcome, ReconcileError> {
        self.clusters.synced().await;
        if !self.is_staying() {
            return Ok(Outcome::Done);
        }
        self.apply().await.map(|()| Outcome::RequeueAfter(INTERVAL))
    }

    /// Makes the role and its binding what they should be, once. For controllers that report that
    /// in a condition of their own, instead of [`Self::run`].
    ///
    /// # Errors
    /// The cluster refused, or Drover's namespace is being deleted. Retry later.
    pub async fn apply(&self) -> Result<(), ReconcileError> {
        let owner = our_namespace(&self.agent).await?;
        let (mut role, mut binding) = self.role.objects();
        role.metadata.owner_references = Some(vec![owner.clone()]);
        binding.metadata.owner_references = Some(vec![owner]);
        ensure::like(&Api::all(self.agent.clone()), &role).await?;
        ensure::like(&Api::all(self.agent.clone()), &binding).await.map(drop)
    }
}

struct RoleReconcile(Arc<AppliedRole>);

impl Reconcile for RoleReconcile {
    fn name(&self) -> &'static str {
        self.0.role.controller
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.0.put())
    }
}
