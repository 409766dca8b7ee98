//! Keeps true: every downstream node has its object in the management API, and the cluster's status
//! has their sums.
//!
//! Runs once per connected cluster. Watches nodes and pods downstream, waits a moment so that a
//! burst of changes is one write, and writes only what changed. Owns the node conditions of
//! [`super::desired`], the cluster's condition NodesSynced, and its status fields capacity,
//! allocatable, requested, limits and nodeCount.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, Node, ids, keys};
use controller::{
    Attempt, Change, ConditionReport, DownstreamController, DownstreamScope, Key, Limits, Outcome,
    OwnedCondition, Reconcile, ReconcileError, Reflector, Runner, StatusPatch, StatusTarget, Whole,
    WithCondition, ensure,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::desired::{self, ObservedNode};
use super::usage::{Amounts, PodUse, Taken, add, texts};
use crate::cluster::usage_history::{UsageHistory, UsageNow};

const CONTROLLER: &str = "node-sync";
const NODES_SYNCED: OwnedCondition = OwnedCondition::of("Cluster", "NodesSynced");
/// What a user can do when nodes cannot be read or written.
const NEXT_STEP: &str = "nodes and capacity are shown as they were before. Drover tries again; apply the \
    import manifest again to restore the rights of the agent";
/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Everything is compared again after this time, because objects here may be changed by others.
const RESYNC_INTERVAL: Duration = Duration::from_secs(600);
/// Longest run: the first one writes every node of the cluster.
const RUN_TIME_MAX: Duration = Duration::from_secs(600);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status", "nodes/status"], &["patch"]),
            ours(&["nodes"], &["get", "list", "create", "delete"]),
        ],
    )
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(
    context: &ManagementContext,
    client: Client,
    history: Arc<UsageHistory>,
) -> Arc<dyn DownstreamController> {
    Arc::new(NodeSync { client, clusters: context.scope.reflectors.get(), history })
}

struct NodeSync {
    client: Client,
    history: Arc<UsageHistory>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
}

impl DownstreamController for NodeSync {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let (client, clusters) = (self.client.clone(), self.clusters.clone());
        let history = self.history.clone();
        Box::pin(async move {
            let nodes = ClusterNodes::new(client.clone(), clusters, history.clone(), &scope);
            let (watched_nodes, watched_pods) = (nodes.nodes.clone(), nodes.pods.clone());
            let dirty = nodes.dirty.clone();
            let limits = Limits { run_time_max: RUN_TIME_MAX, ..Limits::default() };
            let report = ConditionReport {
                condition: NODES_SYNCED,
                client,
                target: StatusTarget::of::<Cluster>("", &scope.cluster),
                next_step: NEXT_STEP.to_owned(),
            };
            let reconcile: Arc<dyn Reconcile> = match scope.cluster == ids::LOCAL_CLUSTER {
                // The management API itself may have no nodes.
                true => Arc::new(nodes),
                false => Arc::new(WithCondition::new(nodes, report)),
            };
            let runner = Runner::with_limits(reconcile, limits);
            let key = Key::cluster_scoped(&scope.cluster);
            let (marked, of_nodes) = (dirty.clone(), key.clone());
            runner.watch_bursts(&watched_nodes, DEBOUNCE, move |change| {
                marked.mark(&change.key().name);
                [of_nodes.clone()]
            });
            let of_pods = key.clone();
            runner.watch_bursts(&watched_pods, DEBOUNCE, move |change| {
                dirty.mark(&change.object().node);
                if let Change::Applied { old: Some(old), .. } = change {
                    dirty.mark(&old.node);
                }
                [of_pods.clone()]
            });
            runner.queue().add(key);
            runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
            history.pause(&scope.cluster);
        })
    }
}

/// Names of nodes that changed downstream since the last run.
#[derive(Default)]
struct Dirty(Mutex<BTreeSet<String>>);

impl Dirty {
    fn mark(&self, node: &str) {
        if !node.is_empty() {
            self.0.lock().insert(node.to_owned());
        }
    }
    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The nodes of one connected cluster. Its one key is the cluster's.
struct ClusterNodes {
    /// Acts in the management API.
    client: Client,
    /// Acts in the cluster with the rights of the agent.
    downstream: Client,
    cluster: String,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    nodes: Arc<Reflector<ObservedNode>>,
    pods: Arc<Reflector<PodUse>>,
    dirty: Arc<Dirty>,
    history: Arc<UsageHistory>,
    /// Held for a whole run; there is one at a time.
    written: tokio::sync::Mutex<Written>,
}

/// What was written to the management API.
#[derive(Default)]
struct Written {
    /// Hash of each node's object and use, by the node's name.
    nodes: HashMap<String, u64>,
    sums: Option<u64>,
    /// When everything is compared again.
    resync_at: Option<Instant>,
}

impl ClusterNodes {
    fn new(
        client: Client,
        clusters: Arc<Reflector<Whole<Cluster>>>,
        history: Arc<UsageHistory>,
        scope: &DownstreamScope,
    ) -> Self {
        Self {
            client,
            downstream: scope.client.clone(),
            cluster: scope.cluster.clone(),
            clusters,
            nodes: scope.reflectors.get(),
            pods: scope.reflectors.get(),
            dirty: Arc::default(),
            history,
            written: tokio::sync::Mutex::default(),
        }
    }

    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        if self.cluster == ids::LOCAL_CLUSTER && !self.serves_nodes().await? {
            return Ok(Outcome::Done);
        }
        tokio::try_join!(self.nodes.try_synced(), self.pods.try_synced())?;
        let mut written = self.written.lock().await;
        let everything = written.resync_at.is_none_or(|at| Instant::now() >= at);
        if everything {
            *written = Written::default();
        }
        let dirty = self.dirty.take();
        if let Err(error) = self.write(&mut written, &dirty, everything).await {
            dirty.iter().for_each(|node| self.dirty.mark(node));
            return Err(error);
        }
        let now = Instant::now();
        let resync_at = *written.resync_at.get_or_insert(now + RESYNC_INTERVAL);
        Ok(Outcome::RequeueAfter(resync_at - now))
    }

    async fn serves_nodes(&self) -> Result<bool, ReconcileError> {
        let list = self.downstream.list_core_api_resources("v1").await;
        let list = list.attempt(|| "list the resources of the core API".to_owned())?;
        Ok(list.resources.iter().any(|resource| resource.name == "nodes"))
    }

    async fn write(
        &self,
        written: &mut Written,
        dirty: &BTreeSet<String>,
        everything: bool,
    ) -> Result<(), ReconcileError> {
        let cluster = self.clusters.named(&self.cluster);
        let Some(cluster) = cluster.filter(|c| c.metadata.deletion_timestamp.is_none()) else {
            return Ok(());
        };
        let taken = self.taken();
        if everything {
            self.delete_strays().await?;
        }
        let known = self.nodes.all();
        for (key, node) in &known {
            if everything || dirty.contains(&key.name) {
                let none = Taken::default();
                let taken = taken.get(&key.name).unwrap_or(&none);
                self.write_node(written, &cluster, node, taken).await?;
            }
        }
        let deleted = dirty.iter().filter(|name| !known.iter().any(|(key, _)| key.name == **name));
        for name in deleted {
            self.delete_node(&desired::name(&self.cluster, name)).await?;
            written.nodes.remove(name);
        }
        self.write_sums(written, known.iter().map(|(_, node)| node.as_ref()), &taken).await
    }

    /// What the pods of each node take.
    fn taken(&self) -> BTreeMap<String, Taken> {
        let mut taken: BTreeMap<String, Taken> = BTreeMap::new();
        self.pods.for_each(|_, pod| {
            if pod.node.is_empty() {
                return;
            }
            match taken.get_mut(&*pod.node) {
                Some(node) => node.count(pod),
                None => {
                    let mut node = Taken::default();
                    node.count(pod);
                    taken.insert(pod.node.to_string(), node);
                }
            }
        });
        taken
    }

    async fn write_node(
        &self,
        written: &mut Written,
        cluster: &Cluster,
        node: &KubeNode,
        taken: &Taken,
    ) -> Result<(), ReconcileError> {
        let node_name = node.name_any();
        let hash = hash_of(&json!([node, taken.requested(), texts(&taken.limits)]));
        if written.nodes.get(&node_name) == Some(&hash) {
            return Ok(());
        }
        let object = desired::object(cluster, node);
        if !written.nodes.contains_key(&node_name) {
            let api = Api::<Node>::namespaced(self.client.clone(), &self.cluster);
            ensure::created(&api, &object).await?;
        }
        let target = StatusTarget::of::<Node>(&self.cluster, &object.name_any());
        desired::status(node, taken).write(&self.client, &target).await?;
        written.nodes.insert(node_name, hash);
        Ok(())
    }

    /// Deletes objects whose node was deleted while the cluster was disconnected.
    async fn delete_strays(&self) -> Result<(), ReconcileError> {
        let api: Api<Node> = Api::namespaced(self.client.clone(), &self.cluster);
        let attempt = || format!("list nodes of cluster \"{}\"", self.cluster);
        let ours = ListParams::default().labels(keys::NODE_NAME);
        let stored = api.list_metadata(&ours).await.attempt(attempt)?;
        let desired: BTreeSet<String> = self
            .nodes
            .all()
            .iter()
            .map(|(key, _)| &key.name)
            .map(|name| desired::name(&self.cluster, name))
            .collect();
        for object in stored.items {
            if !desired.contains(&object.name_any()) {
                self.delete_node(&object.name_any()).await?;
            }
        }
        Ok(())
    }

    async fn delete_node(&self, name: &str) -> Result<(), ReconcileError> {
        let api: Api<Node> = Api::namespaced(self.client.clone(), &self.cluster);
        ensure::absent(&api, name).await.map(drop)
    }

    async fn write_sums<'a>(
        &self,
        written: &mut Written,
        nodes: impl Iterator<Item = &'a KubeNode>,
        taken: &BTreeMap<String, Taken>,
    ) -> Result<(), ReconcileError> {
        let (mut capacity, mut allocatable) = (Amounts::new(), Amounts::new());
        let (mut all, mut count) = (Taken::default(), 0_usize);
        for node in nodes {
            let status = node.status.as_ref();
            add(&mut capacity, status.and_then(|status| status.capacity.as_ref()));
            add(&mut allocatable, status.and_then(|status| status.allocatable.as_ref()));
            if let Some(taken) = taken.get(&node.name_any()) {
                all.merge(taken);
            }
            count += 1;
        }
        self.history.set(
            &self.cluster,
            UsageNow {
                requested: all.requests.clone(),
                pods: all.pods,
                nodes: count,
                allocatable: allocatable.clone(),
            },
        );
        let fields = [
            ("capacity", json!(texts(&capacity))),
            ("allocatable", json!(texts(&allocatable))),
            ("requested", json!(all.requested())),
            ("limits", json!(texts(&all.limits))),
            ("nodeCount", json!(count)),
        ];
        let hash = hash_of(&json!(fields));
        if written.sums == Some(hash) {
            return Ok(());
        }
        let mut patch = StatusPatch::new();
        for (field, value) in fields {
            patch = patch.field(field, value);
        }
        patch.write(&self.client, &StatusTarget::of::<Cluster>("", &self.cluster)).await?;
        written.sums = Some(hash);
        Ok(())
    }
}

impl Reconcile for ClusterNodes {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}

fn hash_of(value: &serde_json::Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
