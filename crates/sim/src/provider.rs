//! A provider of clusters, such as a cloud is one: an API that makes, changes and removes simulated
//! clusters while the simulator runs. For cluster drivers; the clusters go with the simulator.
//!
//! | Request | What |
//! | --- | --- |
//! | `POST /clusters` | makes a cluster: `name`, `nodes`. 409 if one has the name |
//! | `GET /clusters?name=N` | those that exist, or the one of the name |
//! | `GET /clusters/ID` | one: `state` is `creating`, `running` or `failed`; `kubeconfig` once it runs |
//! | `PATCH /clusters/ID` | changes `nodes` |
//! | `DELETE /clusters/ID` | removes it |
//!
//! Every request has the bearer token in `provider.token` of the simulator's folder.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use apiserver::body::respond::{Body, json_bytes};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use pki::{ClientCertificatePolicy, ServingCertificate};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::AdminToken;
use crate::cluster::{ClusterConfig, SimulatedCluster};

/// Clusters at a time.
pub const CLUSTERS_MAX: u32 = 60;
/// Nodes of one cluster.
const NODES_MAX: u32 = 1000;
const NODES: u32 = 3;
const NAME_LENGTH_MAX: usize = 63;
const BODY_BYTES_MAX: usize = 64 << 10;
const PATH: &str = "/clusters";

/// The settings of a cluster with this index and so many nodes.
type Template = dyn Fn(u32, u32) -> anyhow::Result<ClusterConfig> + Send + Sync;

/// See the module.
pub(crate) struct Provider {
    template: Box<Template>,
    first_index: u32,
    authorization: String,
    clusters: Mutex<BTreeMap<u32, OrderedCluster>>,
}

/// A cluster that was ordered.
struct OrderedCluster {
    name: String,
    nodes: u32,
    state: OrderState,
    /// Excludes changes of the same cluster at the same time.
    change: Arc<tokio::sync::Mutex<Option<SimulatedCluster>>>,
}

#[derive(Clone)]
enum OrderState {
    Creating,
    Running { url: String, kubeconfig: String },
    Failed(String),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Order {
    name: String,
    nodes: Option<u32>,
}

/// What is wrong with a request.
struct RequestError(StatusCode, String);

impl Provider {
    /// A provider whose clusters have the indexes from `first_index` on.
    pub(crate) fn new(
        token: &AdminToken,
        first_index: u32,
        template: impl Fn(u32, u32) -> anyhow::Result<ClusterConfig> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            template: Box::new(template),
            first_index,
            authorization: format!("Bearer {}", token.expose()),
            clusters: Mutex::default(),
        })
    }

    /// Serves the API until `ended`.
    ///
    /// # Errors
    /// The address or the certificate cannot be used.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        listen: SocketAddr,
        certificate: Arc<ServingCertificate>,
        ended: watch::Receiver<bool>,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<SocketAddr> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("provider: cannot listen on {listen}"))?;
        let address = listener.local_addr()?;
        let tls = pki::server_config(certificate, &ClientCertificatePolicy::None)?;
        let (keep, tls) = watch::channel(Arc::new(tls));
        let provider = self.clone();
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let provider = provider.clone();
            async move { Ok::<_, Infallible>(provider.respond(request).await) }
        });
        tasks.spawn(async move {
            apiserver::serve::serve(listener, tls, service, ended).await;
            drop(keep);
        });
        Ok(address)
    }

    /// Stops all clusters.
    pub(crate) async fn stop(&self) {
        let made = std::mem::take(&mut *self.clusters.lock());
        for made in made.into_values() {
            if let Some(cluster) = made.change.lock().await.take() {
                cluster.stop().await;
            }
        }
    }

    async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        match self.handle(request).await {
            Ok((status, body)) => json_bytes(status, body.to_string()),
            Err(RequestError(status, text)) => {
                json_bytes(status, json!({"message": text}).to_string())
            }
        }
    }

    async fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<(StatusCode, Value), RequestError> {
        self.authenticate(request.headers())?;
        let method = request.method().clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let path = request.uri().path().to_owned();
        let id = path.strip_prefix(PATH).map(|rest| rest.trim_matches('/'));
        let Some(id) = id else { return Err(not_found(&path)) };
        match (method, id) {
            (Method::GET, "") => Ok((StatusCode::OK, self.list(&query))),
            (Method::POST, "") => self.create(order(request).await?).await,
            (Method::GET, id) => Ok((StatusCode::OK, self.show(index(id)?)?)),
            (Method::PATCH, id) => self.change(index(id)?, order(request).await?).await,
            (Method::DELETE, id) => self.remove(index(id)?).await,
            (method, _) => {
                let text = format!("{method} is not possible");
                Err(RequestError(StatusCode::METHOD_NOT_ALLOWED, text))
            }
        }
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), RequestError> {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if given == Some(self.authorization.as_str()) {
            return Ok(());
        }
        Err(RequestError(StatusCode::UNAUTHORIZED, "the token is not valid here".to_owned()))
    }

    fn list(&self, query: &str) -> Value {
        let name = query.split('&').find_map(|pair| pair.strip_prefix("name="));
        let clusters = self.clusters.lock();
        let found = clusters.iter().filter(|(_, made)| name.is_none_or(|name| made.name == name));
        json!({"clusters": found.map(|(index, made)| shown(*index, made)).collect::<Vec<_>>()})
    }

    fn show(&self, index: u32) -> Result<Value, RequestError> {
        let clusters = self.clusters.lock();
        let made = clusters.get(&index).ok_or_else(|| not_found(&index.to_string()))?;
        Ok(shown(index, made))
    }

    async fn create(self: &Arc<Self>, order: Order) -> Result<(StatusCode, Value), RequestError> {
        let nodes = checked_nodes(order.nodes.unwrap_or(NODES))?;
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
        let is_valid = !order.name.is_empty() && order.name.chars().all(is_name);
        if !is_valid || order.name.len() > NAME_LENGTH_MAX {
            let text = format!("\"{}\" is no name: letters, digits and hyphens", order.name);
            return Err(RequestError(StatusCode::BAD_REQUEST, text));
        }
        let change = Arc::default();
        let index = {
            let mut clusters = self.clusters.lock();
            if clusters.values().any(|made| made.name == order.name) {
                let text = format!("a cluster \"{}\" exists", order.name);
                return Err(RequestError(StatusCode::CONFLICT, text));
            }
            let indexes = self.first_index..self.first_index + CLUSTERS_MAX;
            let index = indexes.clone().find(|index| !clusters.contains_key(index));
            let Some(index) = index else {
                let text = format!("the quota is reached: {CLUSTERS_MAX} clusters");
                return Err(RequestError(StatusCode::TOO_MANY_REQUESTS, text));
            };
            let (name, state, change) = (order.name, OrderState::Creating, Arc::clone(&change));
            clusters.insert(index, OrderedCluster { name, nodes, state, change });
            index
        };
        let provider = self.clone();
        tokio::spawn(async move { provider.start(index, nodes, &change).await });
        Ok((StatusCode::CREATED, self.show(index)?))
    }

    async fn change(
        self: &Arc<Self>,
        index: u32,
        order: Order,
    ) -> Result<(StatusCode, Value), RequestError> {
        let change = self.change_of(index)?;
        if let Some(nodes) = order.nodes {
            let nodes = checked_nodes(nodes)?;
            let is_same = {
                let mut clusters = self.clusters.lock();
                let made = clusters.get_mut(&index).ok_or_else(|| not_found("the cluster"))?;
                std::mem::replace(&mut made.nodes, nodes) == nodes
            };
            if !is_same {
                // It starts again with other nodes; its storage and its address stay.
                self.start(index, nodes, &change).await;
            }
        }
        Ok((StatusCode::OK, self.show(index)?))
    }

    async fn remove(&self, index: u32) -> Result<(StatusCode, Value), RequestError> {
        let change = self.change_of(index)?;
        let cluster = change.lock().await.take();
        if let Some(cluster) = cluster {
            cluster.stop().await;
        }
        let folder = (self.template)(index, 0).map(|config| config.own_folder());
        if let Ok(folder) = folder {
            // What stays is overwritten by the next cluster of this index.
            let _ = std::fs::remove_dir_all(folder);
        }
        self.clusters.lock().remove(&index);
        Ok((StatusCode::OK, json!({})))
    }

    fn change_of(
        &self,
        index: u32,
    ) -> Result<Arc<tokio::sync::Mutex<Option<SimulatedCluster>>>, RequestError> {
        let clusters = self.clusters.lock();
        let made = clusters.get(&index).ok_or_else(|| not_found(&index.to_string()))?;
        Ok(Arc::clone(&made.change))
    }

    /// Starts a cluster, in the place of one that runs.
    async fn start(
        &self,
        index: u32,
        nodes: u32,
        change: &tokio::sync::Mutex<Option<SimulatedCluster>>,
    ) {
        let mut running = change.lock().await;
        if let Some(cluster) = running.take() {
            cluster.stop().await;
        }
        let state = match self.started(index, nodes).await {
            Ok(cluster) => {
                let state =
                    OrderState::Running { url: cluster.url(), kubeconfig: cluster.kubeconfig() };
                *running = Some(cluster);
                state
            }
            Err(error) => OrderState::Failed(format!("{error:#}")),
        };
        if let Some(made) = self.clusters.lock().get_mut(&index) {
            made.state = state;
        }
    }

    async fn started(&self, index: u32, nodes: u32) -> anyhow::Result<SimulatedCluster> {
        SimulatedCluster::start((self.template)(index, nodes)?).await
    }
}

fn checked_nodes(nodes: u32) -> Result<u32, RequestError> {
    if (1..=NODES_MAX).contains(&nodes) {
        return Ok(nodes);
    }
    let text = format!("a cluster has 1 to {NODES_MAX} nodes, not {nodes}");
    Err(RequestError(StatusCode::BAD_REQUEST, text))
}

fn not_found(what: &str) -> RequestError {
    RequestError(StatusCode::NOT_FOUND, format!("there is no {what}"))
}

fn index(id: &str) -> Result<u32, RequestError> {
    id.parse().map_err(|_| not_found(&format!("cluster \"{id}\"")))
}

async fn order(request: Request<Incoming>) -> Result<Order, RequestError> {
    let bad = |text: String| RequestError(StatusCode::BAD_REQUEST, text);
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| bad(format!("the body cannot be read: {error}")))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| bad(error.to_string()))
}

fn shown(index: u32, made: &OrderedCluster) -> Value {
    let mut shown = json!({
        "id": index.to_string(),
        "name": made.name,
        "nodes": made.nodes,
    });
    match &made.state {
        OrderState::Creating => shown["state"] = "creating".into(),
        OrderState::Running { url, kubeconfig } => {
            shown["state"] = "running".into();
            shown["endpoint"] = url.as_str().into();
            shown["kubeconfig"] = kubeconfig.as_str().into();
        }
        OrderState::Failed(reason) => {
            shown["state"] = "failed".into();
            shown["reason"] = reason.as_str().into();
        }
    }
    shown
}
