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

use api_management::{Cluster, NamespaceAssignment, Project, keys};
use controller::{
    DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition, ReconcileError, Reflector,
    StatusPatch, StatusTarget, Whole,
};
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, Client};

use self::observed::{HostPorts, NodeAddresses, NodePorts, OpenPorts};
use crate::own_role::{INTERVAL, OwnRole};
use crate::whole_cluster::{self, ClusterController, WholeCluster, owned_label};
use crate::writes::{Write, all, delete_others, namespace_of, put};

const CONTROLLER: &str = "project-isolation";
const APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "ProjectIsolationApplied");
/// The field of the cluster's status that says what holds.
const APPLIED_FIELD: &str = "appliedEnableNetworkPolicy";

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
        Box::pin(run(scope, self.clone()))
    }
}

async fn run(scope: DownstreamScope, management: ProjectIsolation) {
    let verbs = ["get", "list", "watch", "create", "update", "delete"];
    let rules = vec![
        rule("networking.k8s.io", &["networkpolicies"], &verbs),
        rule("", &["nodes", "pods", "services"], &["list", "watch"]),
    ];
    let role = OwnRole::new(CONTROLLER, &identity(), keys::OWNED_PROJECT_ISOLATION, rules);
    let ProjectIsolation { client, clusters, assignments, .. } = management.clone();
    let isolation = IsolationOfCluster {
        cluster: WholeCluster::new(&scope, &clusters, &assignments, &identity(), role),
        seen: OnceLock::new(),
        management,
    };
    whole_cluster::run(isolation, &scope, APPLIED, &client).await;
}

/// The isolation of the projects of one connected cluster.
struct IsolationOfCluster {
    cluster: WholeCluster,
    management: ProjectIsolation,
    /// Only this controller may watch it, once its role is there.
    seen: OnceLock<SeenInCluster>,
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
            let reflectors = self.cluster.reflectors();
            let seen = SeenInCluster {
                policies: reflectors.selected(&owned_label(keys::OWNED_PROJECT_ISOLATION)),
                nodes: reflectors.get(),
                pods: reflectors.get(),
                services: reflectors.get(),
            };
            self.cluster.follow(&seen.policies, |old, new| old.spec == new.spec);
            self.cluster.follow(&seen.nodes, PartialEq::eq);
            self.cluster.follow(&seen.pods, PartialEq::eq);
            self.cluster.follow(&seen.services, PartialEq::eq);
            seen
        })
    }

    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let ProjectIsolation { clusters, projects, assignments, .. } = &self.management;
        tokio::join!(clusters.synced(), projects.synced(), assignments.synced());
        self.cluster.members.namespaces.try_synced().await?;
        // Removal deletes what is made; it must not be created again.
        if !self.cluster.role.is_staying() {
            return Ok(Outcome::Done);
        }
        let cluster = clusters.named(&self.cluster.name);
        let is_on = cluster.is_some_and(|cluster| is_on(&cluster));
        let was_on = self.seen.get().is_some() || self.cluster.role.was_used().await?;
        if !is_on && !was_on {
            return Ok(Outcome::Done);
        }
        self.cluster.role.apply().await?;
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
        let in_cluster = projects.in_namespace(&self.cluster.name);
        let system = in_cluster.iter().find(|(_, project)| project.is_system());
        let system = system.map(|(key, _)| key.name.as_str());
        let seen = self.seen();
        let nodes: BTreeSet<IpAddr> =
            seen.nodes.all().iter().flat_map(|(_, addresses)| addresses.iter().copied()).collect();
        let mut desired = Vec::new();
        for (project, namespaces) in self.cluster.members.by_project(projects) {
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
        let owner = our_namespace(&self.cluster.role.agent).await?;
        let present = &self.seen().policies;
        let inside = |namespace: &str| Api::namespaced(self.cluster.client.clone(), namespace);
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
        let target = StatusTarget::of::<Cluster>("", &self.cluster.name);
        let patch = StatusPatch::new().field(APPLIED_FIELD, is_on);
        patch.write(&self.management.client, &target).await.map(drop)
    }
}

impl ClusterController for IsolationOfCluster {
    const NAME: &'static str = CONTROLLER;

    fn cluster(&self) -> &WholeCluster {
        &self.cluster
    }
    fn watch(&self) {
        self.cluster.follow_some(&self.management.clusters, |change, cluster| {
            change.key().name == cluster && change.differs(|old, new| is_on(old) == is_on(new))
        });
        self.cluster.follow_own(&self.management.projects);
        self.cluster.follow_own(&self.management.assignments);
        self.cluster.follow_all(&self.cluster.members.namespaces);
    }
    fn reconcile(&self) -> BoxFuture<'_, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}

fn is_on(cluster: &Cluster) -> bool {
    cluster.spec.enable_network_policy == Some(true)
}
