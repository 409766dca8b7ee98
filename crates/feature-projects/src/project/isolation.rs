//! Keeps true: in a cluster with `enableNetworkPolicy`, the pods of a project take connections only
//! from the namespaces of their project and of the System project, from the nodes, and at the ports
//! that they offer on the nodes; in others, nothing of this is there.
//!
//! [`policies`] are the NetworkPolicies of each namespace, [`observed`] is what they open. The
//! network of the cluster must enforce policies; Drover cannot see whether it does. Namespaces of
//! the System project and those of no project stay open.
//!
//! Runs once per connected cluster, not in `local`. Watches the cluster, projects and assignments
//! of namespaces in the management API; namespaces downstream, and, once it is switched on, nodes,
//! pods, Services and what it made. All of it is owned by our downstream namespace. Acts downstream
//! by impersonation of its own identity, with a role that it makes when it is first switched on.
//! Owns the cluster's condition ProjectIsolationApplied and the field
//! `status.appliedEnableNetworkPolicy`.

mod observed;
mod policies;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_management::{Cluster, NamespaceAssignment, Project, ids, keys};
use controller::downstream::PAGE_OBJECTS;
use controller::{
    ConditionReport, DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition,
    Projection, Queue, Reconcile, ReconcileError, Reflector, Reflectors, Runner, StatusPatch,
    StatusTarget, Whole, WithCondition,
};
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use http::HeaderValue;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use self::observed::{HostPorts, NodeAddresses, NodePorts, OpenPorts};
use super::namespaces::members::Members;
use crate::own_role::{AppliedRole, INTERVAL, NEXT_STEP, OwnRole};
use crate::writes::{Write, all, delete_others, namespace_of, put};

const CONTROLLER: &str = "project-isolation";
const APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "ProjectIsolationApplied");
/// The field of the cluster's status that says what holds.
const APPLIED_FIELD: &str = "appliedEnableNetworkPolicy";
/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    Arc::new(ProjectIsolation {
        client,
        clusters: reflectors.get(),
        projects: reflectors.get(),
        assignments: reflectors.get(),
    })
}

/// What the management API has.
#[derive(Clone)]
struct ProjectIsolation {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    projects: Arc<Reflector<Whole<Project>>>,
    assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl DownstreamController for ProjectIsolation {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let management = self.clone();
        Box::pin(async move {
            if scope.cluster != ids::LOCAL_CLUSTER {
                run(scope, management).await;
            }
        })
    }
}

async fn run(scope: DownstreamScope, management: ProjectIsolation) {
    let user = HeaderValue::from_str(&identity().user()).expect("a name without line ends");
    let verbs = ["get", "list", "watch", "create", "update", "delete"];
    let rules = vec![
        rule("networking.k8s.io", &["networkpolicies"], &verbs),
        rule("", &["nodes", "pods", "services"], &["list", "watch"]),
    ];
    let role = OwnRole::new(CONTROLLER, &identity(), keys::OWNED_PROJECT_ISOLATION, rules);
    let isolation = Arc::new(IsolationOfCluster {
        cluster: scope.cluster.clone(),
        role: AppliedRole::new(&scope, management.clusters.clone(), role),
        client: scope.client_as(&user),
        stop: scope.stop.clone(),
        members: Members {
            cluster: scope.cluster.clone(),
            namespaces: scope.reflectors.get(),
            assignments: management.assignments.clone(),
        },
        seen: OnceLock::new(),
        queue: OnceLock::new(),
        management,
    });
    let report = ConditionReport {
        condition: APPLIED,
        client: isolation.management.client.clone(),
        target: StatusTarget::of::<Cluster>("", &scope.cluster),
        next_step: NEXT_STEP.to_owned(),
    };
    let runner = Runner::new(Arc::new(WithCondition::new(Shared(isolation.clone()), report)));
    let _ = isolation.queue.set(runner.queue().clone());
    watch(&runner, &isolation);
    runner.queue().add(Key::cluster_scoped(&scope.cluster));
    runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
}

/// The one key is the cluster's.
fn watch(runner: &Runner, isolation: &IsolationOfCluster) {
    let key = Key::cluster_scoped(&isolation.cluster);
    let in_cluster = |key: Key| move |name: &str| (name == key.name).then(|| key.clone());
    let of = in_cluster(key.clone());
    runner.watch_bursts(&isolation.management.clusters, DEBOUNCE, move |change| {
        let is_on = |cluster: &Cluster| cluster.spec.enable_network_policy == Some(true);
        let is_same = change.old().is_some_and(|old| is_on(old) == is_on(change.object()));
        if is_same { None } else { of(&change.key().name) }
    });
    let of = in_cluster(key.clone());
    runner.watch_bursts(&isolation.management.projects, DEBOUNCE, move |change| {
        of(&change.key().namespace)
    });
    let of = in_cluster(key.clone());
    runner.watch_bursts(&isolation.management.assignments, DEBOUNCE, move |change| {
        of(&change.key().namespace)
    });
    runner.watch_bursts(&isolation.members.namespaces, DEBOUNCE, move |_| [key.clone()]);
}

/// The isolation of the projects of one connected cluster.
struct IsolationOfCluster {
    cluster: String,
    role: Arc<AppliedRole>,
    /// Acts in the cluster as this controller.
    client: Client,
    stop: CancellationToken,
    management: ProjectIsolation,
    members: Members,
    /// Only this controller may watch it, once its role is there.
    seen: OnceLock<SeenInCluster>,
    queue: OnceLock<Arc<Queue>>,
}

/// What the cluster has.
struct SeenInCluster {
    policies: Arc<Reflector<Whole<NetworkPolicy>>>,
    nodes: Arc<Reflector<NodeAddresses>>,
    pods: Arc<Reflector<HostPorts>>,
    services: Arc<Reflector<NodePorts>>,
}

impl IsolationOfCluster {
    fn seen(&self) -> &SeenInCluster {
        self.seen.get_or_init(|| {
            let label = format!("{}={}", keys::DOWNSTREAM_OWNED, keys::OWNED_PROJECT_ISOLATION);
            let reflectors = Reflectors::new(self.client.clone(), self.stop.clone());
            let reflectors = reflectors.in_pages_of(PAGE_OBJECTS);
            let seen = SeenInCluster {
                policies: reflectors.selected(&label),
                nodes: reflectors.get(),
                pods: reflectors.get(),
                services: reflectors.get(),
            };
            self.follow(&seen.policies, |old, new| old.spec == new.spec);
            self.follow(&seen.nodes, |old, new| old == new);
            self.follow(&seen.pods, |old, new| old == new);
            self.follow(&seen.services, |old, new| old == new);
            seen
        })
    }

    /// Compares again when what was seen changes.
    fn follow<P: Projection>(
        &self,
        seen: &Reflector<P>,
        is_same: impl Fn(&P::Projected, &P::Projected) -> bool + Send + Sync + 'static,
    ) {
        let (key, queue) = (Key::cluster_scoped(&self.cluster), self.queue.get().cloned());
        seen.subscribe(move |change| {
            let is_same = change.old().is_some_and(|old| is_same(old, change.object()));
            if let Some(queue) = queue.as_ref().filter(|_| !is_same) {
                queue.add_after(key.clone(), DEBOUNCE);
            }
            true
        });
    }

    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let ProjectIsolation { clusters, projects, assignments, .. } = &self.management;
        tokio::join!(clusters.synced(), projects.synced(), assignments.synced());
        self.members.namespaces.try_synced().await?;
        // Removal deletes what is made; it must not be created again.
        if !self.role.is_staying() {
            return Ok(Outcome::Done);
        }
        let cluster = clusters.named(&self.cluster);
        let is_on = cluster.is_some_and(|cluster| cluster.spec.enable_network_policy == Some(true));
        let was_on = self.seen.get().is_some() || self.role.was_used().await?;
        if !is_on && !was_on {
            return Ok(Outcome::Done);
        }
        self.role.apply().await?;
        let seen = self.seen();
        tokio::try_join!(
            seen.policies.try_synced(),
            seen.nodes.try_synced(),
            seen.pods.try_synced(),
            seen.services.try_synced()
        )?;
        let desired = if is_on { self.desired() } else { Vec::new() };
        self.put(&desired).await?;
        self.report(is_on).await?;
        Ok(Outcome::RequeueAfter(INTERVAL))
    }

    fn desired(&self) -> Vec<NetworkPolicy> {
        let projects = &self.management.projects;
        let in_cluster = projects.in_namespace(&self.cluster);
        let system = in_cluster.iter().find(|(_, project)| project.is_system());
        let system = system.map(|(key, _)| key.name.as_str());
        let seen = self.seen();
        let nodes: BTreeSet<IpAddr> =
            seen.nodes.all().iter().flat_map(|(_, addresses)| addresses.iter().copied()).collect();
        let mut desired = Vec::new();
        for (project, namespaces) in self.members.by_project(projects) {
            if system == Some(project.as_str()) {
                continue;
            }
            for namespace in &namespaces {
                desired.push(policies::of_project(namespace, &project, system));
                desired.extend(policies::of_nodes(namespace, &nodes));
                let ports = self.host_ports(namespace);
                desired.extend(
                    ports.iter().filter_map(|open| policies::of_host_ports(namespace, open)),
                );
                for (key, open) in seen.services.in_namespace(namespace) {
                    desired.extend(policies::of_service(namespace, &key.name, &open));
                }
            }
        }
        desired
    }

    /// The ports of a namespace's pods on their nodes, those of pods alike together.
    fn host_ports(&self, namespace: &str) -> Vec<OpenPorts> {
        let mut found: BTreeMap<BTreeMap<String, String>, OpenPorts> = BTreeMap::new();
        for (_, open) in self.seen().pods.in_namespace(namespace) {
            let alike = found
                .entry(open.pods.clone())
                .or_insert_with(|| OpenPorts { pods: open.pods.clone(), ..OpenPorts::default() });
            alike.ports.extend(open.ports.iter().cloned());
        }
        found.into_values().collect()
    }

    /// Opens first and closes last, so that no connection is refused meanwhile that may be.
    async fn put(&self, desired: &[NetworkPolicy]) -> Result<(), ReconcileError> {
        let owner = our_namespace(&self.role.agent).await?;
        let present = &self.seen().policies;
        let inside = |namespace: &str| Api::namespaced(self.client.clone(), namespace);
        let (closing, opening): (Vec<&NetworkPolicy>, Vec<&NetworkPolicy>) =
            desired.iter().partition(|policy| policies::closes(policy));
        for policies in [opening, closing] {
            let writes = policies.into_iter().map(|policy| -> Write<'_> {
                let is_same = |known: &NetworkPolicy| known.spec == policy.spec;
                Box::pin(put(inside(&namespace_of(policy)), policy, present, &owner, is_same))
            });
            all(writes.collect()).await?;
        }
        delete_others(present, desired, &inside, &|_: &Key| false).await
    }

    async fn report(&self, is_on: bool) -> Result<(), ReconcileError> {
        let target = StatusTarget::of::<Cluster>("", &self.cluster);
        let patch = StatusPatch::new().field(APPLIED_FIELD, is_on);
        patch.write(&self.management.client, &target).await.map(drop)
    }
}

struct Shared(Arc<IsolationOfCluster>);

impl Reconcile for Shared {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.0.reconcile())
    }
}
