//! Keeps true: every downstream node has its object here, and the cluster's status its sums.
//!
//! Runs once per connected cluster. Watches nodes and pods downstream, waits a moment so that a burst
//! is one write, and writes only what changed. Owns the node conditions of [`super::desired`] and the
//! cluster's status fields capacity, allocatable, requested, limits and nodeCount.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, Node, keys};
use controller::{
    Attempt, Change, DownstreamController, DownstreamScope, ReconcileError, Reflector, StatusPatch,
    Target, Whole, ensure,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use super::desired::{self, ObservedNode};
use super::usage::{Amounts, PodUse, Taken, add, texts};

/// A burst of changes within this time is written at once.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Wait after a write that failed.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Everything is compared again after this time, for changes somebody made here.
const RESYNC_INTERVAL: Duration = Duration::from_secs(600);

pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "node-sync",
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status", "nodes/status"], &["patch"]),
            ours(&["nodes"], &["get", "list", "create", "delete"]),
        ],
    )
}

pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    Arc::new(NodeSync { client, clusters: context.scope.reflectors.get() })
}

struct NodeSync {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
}

impl DownstreamController for NodeSync {
    fn name(&self) -> &'static str {
        "node-sync"
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let (client, clusters) = (self.client.clone(), self.clusters.clone());
        Box::pin(async move {
            if !serves_nodes(&scope.client).await {
                return;
            }
            Sync::new(client, clusters, &scope).run().await;
        })
    }
}

/// The management API itself may have no nodes; then there is nothing to do for cluster `local`.
async fn serves_nodes(client: &Client) -> bool {
    loop {
        match client.list_core_api_resources("v1").await {
            Ok(list) => return list.resources.iter().any(|resource| resource.name == "nodes"),
            Err(_) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}

/// What has changed downstream since it was last looked at.
#[derive(Default)]
struct Dirty {
    nodes: Mutex<BTreeSet<String>>,
    wake: Notify,
}

impl Dirty {
    fn mark(&self, node: &str) {
        if !node.is_empty() {
            self.nodes.lock().insert(node.to_owned());
            self.wake.notify_one();
        }
    }
    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.nodes.lock())
    }
}

struct Sync {
    client: Client,
    cluster: String,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    nodes: Arc<Reflector<ObservedNode>>,
    pods: Arc<Reflector<PodUse>>,
    dirty: Arc<Dirty>,
    /// Hash of what was last written, by node.
    written: HashMap<String, u64>,
    sums_written: Option<u64>,
}

impl Sync {
    fn new(
        client: Client,
        clusters: Arc<Reflector<Whole<Cluster>>>,
        scope: &DownstreamScope,
    ) -> Self {
        let nodes = scope.reflectors.get::<ObservedNode>();
        let pods = scope.reflectors.get::<PodUse>();
        let dirty = Arc::new(Dirty::default());
        let marked = dirty.clone();
        nodes.subscribe(move |change| {
            marked.mark(&change.key().name);
            true
        });
        let marked = dirty.clone();
        pods.subscribe(move |change| {
            marked.mark(&change.object().node);
            if let Change::Applied { old: Some(old), .. } = change {
                marked.mark(&old.node);
            }
            true
        });
        Self {
            client,
            cluster: scope.cluster.clone(),
            clusters,
            nodes,
            pods,
            dirty,
            written: HashMap::new(),
            sums_written: None,
        }
    }

    async fn run(mut self) {
        self.nodes.synced().await;
        self.pods.synced().await;
        let mut all_due = tokio::time::Instant::now();
        loop {
            let everything = tokio::time::Instant::now() >= all_due;
            if everything {
                self.written.clear();
                self.sums_written = None;
            }
            let dirty = self.dirty.take();
            match self.pass(&dirty, everything).await {
                Ok(()) if everything => all_due = tokio::time::Instant::now() + RESYNC_INTERVAL,
                Ok(()) => {}
                Err(error) => {
                    let (cluster, error) = (&self.cluster, error.chain());
                    tracing::debug!(%cluster, error, "nodes were not written; will try again");
                    dirty.iter().for_each(|node| self.dirty.mark(node));
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            }
            tokio::select! {
                () = self.dirty.wake.notified() => tokio::time::sleep(DEBOUNCE).await,
                () = tokio::time::sleep_until(all_due) => {}
            }
        }
    }

    async fn pass(
        &mut self,
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
                self.write_node(&cluster, node, taken.get(&key.name).unwrap_or(&none)).await?;
            }
        }
        for gone in dirty.iter().filter(|name| !known.iter().any(|(key, _)| key.name == **name)) {
            self.delete_node(&desired::name(&self.cluster, gone)).await?;
            self.written.remove(gone);
        }
        self.write_sums(known.iter().map(|(_, node)| node.as_ref()), &taken).await
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
        &mut self,
        cluster: &Cluster,
        node: &KubeNode,
        taken: &Taken,
    ) -> Result<(), ReconcileError> {
        let node_name = node.name_any();
        let hash = hash_of(&json!([node, taken.requested(), texts(&taken.limits)]));
        if self.written.get(&node_name) == Some(&hash) {
            return Ok(());
        }
        let object = desired::object(cluster, node);
        if !self.written.contains_key(&node_name) {
            let api = Api::<Node>::namespaced(self.client.clone(), &self.cluster);
            ensure::created(&api, &object).await?;
        }
        let target = Target::of::<Node>(&self.cluster, &object.name_any());
        desired::status(node, taken).write(&self.client, &target).await?;
        self.written.insert(node_name, hash);
        Ok(())
    }

    /// Objects made for nodes that went while nobody looked.
    async fn delete_strays(&self) -> Result<(), ReconcileError> {
        let api: Api<Node> = Api::namespaced(self.client.clone(), &self.cluster);
        let attempt = || format!("list nodes of cluster \"{}\"", self.cluster);
        let ours = ListParams::default().labels(keys::NODE_NAME);
        let stored = api.list_metadata(&ours).await.attempt(attempt)?;
        let wanted: BTreeSet<String> = self
            .nodes
            .all()
            .iter()
            .map(|(key, _)| &key.name)
            .map(|name| desired::name(&self.cluster, name))
            .collect();
        for object in stored.items {
            if !wanted.contains(&object.name_any()) {
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
        &mut self,
        nodes: impl Iterator<Item = &'a KubeNode>,
        taken: &BTreeMap<String, Taken>,
    ) -> Result<(), ReconcileError> {
        let (mut capacity, mut allocatable) = (Amounts::new(), Amounts::new());
        let (mut all, mut count) = (Taken::default(), 0_i64);
        for node in nodes {
            let status = node.status.as_ref();
            add(&mut capacity, status.and_then(|status| status.capacity.as_ref()));
            add(&mut allocatable, status.and_then(|status| status.allocatable.as_ref()));
            if let Some(taken) = taken.get(&node.name_any()) {
                all.merge(taken);
            }
            count += 1;
        }
        let fields = [
            ("capacity", json!(texts(&capacity))),
            ("allocatable", json!(texts(&allocatable))),
            ("requested", json!(all.requested())),
            ("limits", json!(texts(&all.limits))),
            ("nodeCount", json!(count)),
        ];
        let hash = hash_of(&json!(fields));
        if self.sums_written == Some(hash) {
            return Ok(());
        }
        let mut patch = StatusPatch::new();
        for (field, value) in fields {
            patch = patch.field(field, value);
        }
        patch.write(&self.client, &Target::of::<Cluster>("", &self.cluster)).await?;
        self.sums_written = Some(hash);
        Ok(())
    }
}

fn hash_of(value: &serde_json::Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
