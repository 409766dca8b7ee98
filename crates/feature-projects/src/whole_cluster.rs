//! What controllers of projects have in common that reconcile one connected cluster as a whole, in
//! which they act as an identity of their own.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use api_management::{Cluster, NamespaceAssignment, keys};
use controller::downstream::PAGE_OBJECTS;
use controller::{
    Change, ConditionReport, DownstreamScope, Key, Outcome, OwnedCondition, Projection, Queue,
    Reconcile, ReconcileError, Reflector, Reflectors, Runner, StatusTarget, Whole, WithCondition,
};
use feature_kit::ControllerIdentity;
use futures::future::BoxFuture;
use http::HeaderValue;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::own_role::{AppliedRole, NEXT_STEP, OwnRole};
use crate::project::namespaces::members::Members;

/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The cluster of such a controller.
pub(crate) struct WholeCluster {
    pub name: String,
    pub role: Arc<AppliedRole>,
    /// Acts in the cluster as the controller, once its role is there.
    pub client: Client,
    pub members: Members,
    stop: CancellationToken,
    queue: OnceLock<Weak<Queue>>,
}

impl WholeCluster {
    /// The cluster of `scope` for the controller with this identity, and the role that gives it
    /// its rights there.
    pub fn new(
        scope: &DownstreamScope,
        clusters: &Arc<Reflector<Whole<Cluster>>>,
        assignments: &Arc<Reflector<Whole<NamespaceAssignment>>>,
        identity: &ControllerIdentity,
        role: OwnRole,
    ) -> Self {
        let user = HeaderValue::from_str(&identity.user()).expect("a name without line ends");
        Self {
            name: scope.cluster.clone(),
            role: AppliedRole::new(scope, clusters.clone(), role),
            client: scope.client_as(&user),
            members: Members {
                cluster: scope.cluster.clone(),
                namespaces: scope.reflectors.get(),
                assignments: assignments.clone(),
            },
            stop: scope.stop.clone(),
            queue: OnceLock::new(),
        }
    }

    fn key(&self) -> Key {
        Key::cluster_scoped(&self.name)
    }

    /// Watches with the rights of the controller, for what the agent may not read.
    pub fn reflectors(&self) -> Reflectors {
        Reflectors::new(self.client.clone(), self.stop.clone()).in_pages_of(PAGE_OBJECTS)
    }

    /// Reconciles again when an object comes, is deleted, or changes, unless `is_same` of the old
    /// object and the new one.
    pub fn follow<P: Projection>(
        &self,
        set: &Reflector<P>,
        is_same: impl Fn(&P::Projected, &P::Projected) -> bool + Send + Sync + 'static,
    ) {
        self.follow_some(set, move |change, _| change.differs(&is_same));
    }

    /// Reconciles again when an object changes that `concerns` this cluster.
    pub fn follow_some<P: Projection>(
        &self,
        set: &Reflector<P>,
        concerns: impl Fn(&Change<'_, P::Projected>, &str) -> bool + Send + Sync + 'static,
    ) {
        let (key, queue) = (self.key(), self.queue());
        set.subscribe(move |change| {
            let Some(queue) = queue.upgrade() else { return false };
            if concerns(change, &key.name) {
                queue.add_after(key.clone(), DEBOUNCE);
            }
            true
        });
    }

    /// Reconciles again with every change of the set.
    pub fn follow_all<P: Projection>(&self, set: &Reflector<P>) {
        self.follow_some(set, |_, _| true);
    }

    /// Reconciles again when an object in the namespace of the cluster changes.
    pub fn follow_own<P: Projection>(&self, set: &Reflector<P>) {
        self.follow_some(set, |change, cluster| change.key().namespace == cluster);
    }

    /// Of a controller that has ended: none.
    fn queue(&self) -> Weak<Queue> {
        self.queue.get().cloned().unwrap_or_default()
    }
}

/// The label that selects what a controller made, by its purpose.
pub(crate) fn owned_label(purpose: &str) -> String {
    format!("{}={purpose}", keys::DOWNSTREAM_OWNED)
}

/// See the module.
pub(crate) trait ClusterController: Send + Sync + 'static {
    /// In kebab case.
    const NAME: &'static str;

    fn cluster(&self) -> &WholeCluster;

    /// Subscribes to all that it depends on.
    fn watch(&self);

    /// Makes the cluster what it should be.
    ///
    /// # Errors
    /// The cluster refused, or does not respond; it is tried again.
    fn reconcile(&self) -> BoxFuture<'_, Result<Outcome, ReconcileError>>;
}

/// Runs the controller until the scope ends, and reports in `condition` of the cluster how it went.
/// `management` acts in the management API.
pub(crate) async fn run<C: ClusterController>(
    controller: C,
    scope: &DownstreamScope,
    condition: OwnedCondition,
    management: &Client,
) {
    let report = ConditionReport {
        condition,
        client: management.clone(),
        target: StatusTarget::of::<Cluster>("", &scope.cluster),
        next_step: NEXT_STEP.to_owned(),
    };
    let controller = Arc::new(controller);
    let reconciled = Reconciled(controller.clone());
    let runner = Runner::new(Arc::new(WithCondition::new(reconciled, report)));
    let cluster = controller.cluster();
    let _ = cluster.queue.set(Arc::downgrade(runner.queue()));
    controller.watch();
    runner.queue().add(cluster.key());
    runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
}

struct Reconciled<C>(Arc<C>);

impl<C: ClusterController> Reconcile for Reconciled<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        self.0.reconcile()
    }
}
