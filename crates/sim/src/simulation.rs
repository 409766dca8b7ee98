//! The controllers and kubelets of one cluster. One task follows the watch caches and reconciles
//! deployments, replica sets, replication controllers, daemon sets and pods. A second task counts
//! the usage of quotas. With an external kube-controller-manager, only pods are reconciled here.
//!
//! [`deployment`], [`replica_set`] and [`daemon_set`] each reconcile a kind, with a pure function
//! that returns the desired state; [`pods`] binds and starts pods; [`nodes`] simulates machines.

pub mod daemon_set;
pub mod deployment;
pub mod machine;
pub mod nodes;
pub mod owned;
pub mod pods;
pub mod replica_set;
mod resource_quota;
pub mod status;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api_meta::status::Status;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::registry::{Subscription, Update, WriteOptions};
use apiserver::stored::Stored;
use apiserver::{ApiServer, Registry, Resource, UserInfo};
use backoff::Backoff;
use futures::FutureExt;
use kubernetes_api::assembly::Controllers;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::pods::Kubelet;
use self::replica_set::{REPLICA_SETS, REPLICATION_CONTROLLERS};
use crate::agent::AgentCommand;

/// Changes come in bursts: delay between the first change and the reconciliation.
const SETTLE_PAUSE: Duration = Duration::from_millis(10);
/// Pauses before failed work is retried.
const RETRY: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
/// Nodes renew their leases this often.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// Namespace of the pods of `--pods`.
const LOAD_NAMESPACE: &str = "sim-load";

/// What to simulate.
pub struct Setting {
    pub nodes: u32,
    pub pods: u32,
    /// `Outside`: only machines are simulated.
    pub controllers: Controllers,
    /// Address of the cluster's API.
    pub address: SocketAddr,
    pub folder: PathBuf,
    pub agent: AgentCommand,
}

/// The kinds that the simulation reads or writes.
pub struct Kinds {
    pub deployments: Arc<Resource>,
    pub replica_sets: Arc<Resource>,
    pub replication_controllers: Arc<Resource>,
    pub daemon_sets: Arc<Resource>,
    pub quotas: Arc<Resource>,
    pub pods: Arc<Resource>,
    pub nodes: Arc<Resource>,
}

impl Kinds {
    fn of(registry: &Registry) -> anyhow::Result<Self> {
        let find = |group: &str, plural: &str| {
            registry.find(group, plural).with_context(|| format!("{plural} are not served"))
        };
        Ok(Self {
            deployments: find("apps", "deployments")?,
            replica_sets: find("apps", "replicasets")?,
            replication_controllers: find("", "replicationcontrollers")?,
            quotas: find("", "resourcequotas")?,
            daemon_sets: find("apps", "daemonsets")?,
            pods: find("", "pods")?,
            nodes: find("", "nodes")?,
        })
    }
}

/// The state that the parts of the simulation share.
pub struct World {
    pub registry: Arc<Registry>,
    pub kinds: Kinds,
}

impl World {
    /// Options of writes by one of the cluster's own components.
    pub fn options(component: &str) -> WriteOptions {
        let user = UserInfo::new(component, &[GROUP_MASTERS]);
        WriteOptions { manager: component.to_owned(), ..WriteOptions::of(user) }
    }
}

/// Namespace and name.
pub type ObjectKey = (String, String);

/// Namespace and name of an object; the namespace is empty for cluster-scoped ones.
pub fn key_of(object: &Stored) -> ObjectKey {
    (object.namespace.to_string(), object.name.to_string())
}

/// Conflicts, deleted objects and refused writes are no failures: the next event triggers another
/// reconciliation.
pub fn tolerate<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if !matches!(status.code, 403 | 404 | 409) => Err(status),
        Err(status) => {
            tracing::debug!(%status, "overtaken");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// Creates the nodes and starts the tasks, which end with `ended`.
pub async fn start(
    server: &ApiServer,
    setting: Setting,
    ended: watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let registry = server.registry().clone();
    let world = Arc::new(World { kinds: Kinds::of(&registry)?, registry });
    nodes::ensure(&world, setting.nodes).await.context("cannot create the nodes")?;
    if setting.controllers == Controllers::Inside {
        nodes::release(&world, setting.nodes).await.context("cannot make the nodes ready")?;
    }
    if setting.pods > 0 {
        load(&world, setting.pods).await.context("cannot create the initial pods")?;
    }
    if setting.controllers == Controllers::Inside {
        tasks.spawn(resource_quota::run(world.clone(), ended.clone()));
    }
    let kubelet = Kubelet::new(world.clone(), server.clone(), &setting);
    tasks.spawn(Simulation::new(world, kubelet, &setting).run(ended));
    Ok(())
}

/// Creates a deployment of `pods` pods.
async fn load(world: &World, pods: u32) -> Result<(), Status> {
    let options = World::options("sim");
    let namespaces = world.registry.find("", "namespaces");
    if let Some(namespaces) = namespaces {
        let namespace = json!({"metadata": {"name": LOAD_NAMESPACE}});
        tolerate(world.registry.create(&namespaces, "", namespace, &options).await)?;
    }
    let deployment = json!({
        "metadata": {"name": "load"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": "load"}},
            "template": {
                "metadata": {"labels": {"app": "load"}},
                "spec": {"containers": [{"name": "load", "image": "example.invalid/load:1"}]},
            },
        },
    });
    let kind = &world.kinds.deployments;
    tolerate(world.registry.create(kind, LOAD_NAMESPACE, deployment, &options).await)
}

/// Objects that changed and must be reconciled.
#[derive(Default)]
struct Dirty {
    deployments: BTreeSet<ObjectKey>,
    replica_sets: BTreeSet<ObjectKey>,
    replication_controllers: BTreeSet<ObjectKey>,
    daemon_sets: BTreeSet<ObjectKey>,
    pods: BTreeSet<ObjectKey>,
    /// A node changed, so every daemon set must be reconciled.
    nodes: bool,
}

/// Subscriptions to the kinds that the simulation reconciles.
struct Subscriptions {
    deployments: Subscription,
    replica_sets: Subscription,
    replication_controllers: Subscription,
    daemon_sets: Subscription,
    pods: Subscription,
    nodes: Subscription,
}

struct Simulation {
    world: Arc<World>,
    kubelet: Kubelet,
    subscriptions: Subscriptions,
    dirty: Dirty,
    node_count: u32,
    controllers: Controllers,
}

impl Simulation {
    fn new(world: Arc<World>, kubelet: Kubelet, setting: &Setting) -> Self {
        let follow = |resource: &Arc<Resource>| world.registry.subscribe(resource);
        let kinds = &world.kinds;
        let subscriptions = Subscriptions {
            deployments: follow(&kinds.deployments),
            replica_sets: follow(&kinds.replica_sets),
            replication_controllers: follow(&kinds.replication_controllers),
            daemon_sets: follow(&kinds.daemon_sets),
            pods: follow(&kinds.pods),
            nodes: follow(&kinds.nodes),
        };
        let Setting { nodes: node_count, controllers, .. } = *setting;
        Self { world, kubelet, subscriptions, dirty: Dirty::default(), node_count, controllers }
    }

    async fn run(mut self, mut ended: watch::Receiver<bool>) {
        let mut progress = self.world.registry.progress();
        let mut heartbeat = tokio::time::interval(HEARTBEAT_EVERY);
        let mut failures = 0;
        loop {
            progress.borrow_and_update();
            // Own writes must be in the caches, or they would be repeated.
            let failed = match self.world.registry.fresh().await {
                Ok(_) => {
                    self.drain();
                    self.act().await
                }
                Err(_) => true,
            };
            failures = if failed { failures + 1 } else { 0 };
            let retry = async {
                if failed {
                    tokio::time::sleep(RETRY.delay(failures)).await;
                } else {
                    std::future::pending().await
                }
            };
            tokio::select! {
                () = wait_until_set(&mut ended) => break,
                changed = progress.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    tokio::time::sleep(SETTLE_PAUSE).await;
                }
                _ = heartbeat.tick() => {
                    if let Err(status) = nodes::heartbeat(&self.world, self.node_count).await {
                        tracing::warn!(%status, "cannot renew the nodes' leases");
                    }
                }
                () = retry => {}
            }
        }
        self.kubelet.stop().await;
    }

    fn drain(&mut self) {
        let Self { subscriptions, dirty, .. } = self;
        for object in drain_changed(&mut subscriptions.deployments) {
            dirty.deployments.insert(key_of(&object));
        }
        for object in drain_changed(&mut subscriptions.replica_sets) {
            if let Some(name) = owned::controller_name(&object, "Deployment") {
                dirty.deployments.insert((object.namespace.to_string(), name));
            }
            dirty.replica_sets.insert(key_of(&object));
        }
        for object in drain_changed(&mut subscriptions.replication_controllers) {
            dirty.replication_controllers.insert(key_of(&object));
        }
        for object in drain_changed(&mut subscriptions.daemon_sets) {
            dirty.daemon_sets.insert(key_of(&object));
        }
        for object in drain_changed(&mut subscriptions.pods) {
            let namespace = object.namespace.to_string();
            if let Some(name) = owned::controller_name(&object, "ReplicaSet") {
                dirty.replica_sets.insert((namespace, name));
            } else if let Some(name) = owned::controller_name(&object, "ReplicationController") {
                dirty.replication_controllers.insert((namespace, name));
            } else if let Some(name) = owned::controller_name(&object, "DaemonSet") {
                dirty.daemon_sets.insert((namespace, name));
            }
            dirty.pods.insert(key_of(&object));
        }
        dirty.nodes |= !drain_changed(&mut subscriptions.nodes).is_empty();
        if self.controllers == Controllers::Outside {
            dirty.deployments.clear();
            dirty.replica_sets.clear();
            dirty.replication_controllers.clear();
            dirty.daemon_sets.clear();
        }
    }

    /// Reconciles what is dirty. Returns true when something failed and must be retried.
    async fn act(&mut self) -> bool {
        let Self { world, kubelet, dirty, .. } = self;
        if std::mem::take(&mut dirty.nodes) {
            if self.controllers == Controllers::Inside {
                dirty.daemon_sets.extend(daemon_set::all(world));
            }
            dirty.pods.extend(kubelet.nodes_changed());
        }
        let mut failed = false;
        let mut record = |kind: &str, key: &ObjectKey, result: Result<(), Status>| match result {
            Ok(()) => true,
            Err(status) => {
                tracing::warn!(kind, namespace = key.0, name = key.1, %status, "failed");
                failed = true;
                false
            }
        };
        for key in std::mem::take(&mut dirty.deployments) {
            let result = deployment::reconcile(world, &key).await;
            if !record("Deployment", &key, result) {
                dirty.deployments.insert(key);
            }
        }
        for key in std::mem::take(&mut dirty.replica_sets) {
            let result = replica_set::reconcile(world, &REPLICA_SETS, &key).await;
            if !record("ReplicaSet", &key, result) {
                dirty.replica_sets.insert(key);
            }
        }
        for key in std::mem::take(&mut dirty.replication_controllers) {
            let result = replica_set::reconcile(world, &REPLICATION_CONTROLLERS, &key).await;
            if !record("ReplicationController", &key, result) {
                dirty.replication_controllers.insert(key);
            }
        }
        for key in std::mem::take(&mut dirty.daemon_sets) {
            let result = daemon_set::reconcile(world, &key).await;
            if !record("DaemonSet", &key, result) {
                dirty.daemon_sets.insert(key);
            }
        }
        let again = kubelet.act(std::mem::take(&mut dirty.pods)).await;
        failed |= !again.is_empty();
        dirty.pods = again;
        failed
    }
}

/// Waits until a switch is set, or until its sender is dropped.
pub async fn wait_until_set(switch: &mut watch::Receiver<bool>) {
    let _ = switch.wait_for(|on| *on).await;
}

/// Takes all changed objects from a subscription, without waiting. Deleted ones come in their last
/// state.
fn drain_changed(subscription: &mut Subscription) -> Vec<Arc<Stored>> {
    let mut objects = Vec::new();
    while let Some(Some(update)) = subscription.next().now_or_never() {
        match update {
            Update::Reset(all) => objects.extend(all),
            Update::Events(events) => {
                objects.extend(events.iter().map(|event| event.current.clone()));
            }
        }
    }
    objects
}
