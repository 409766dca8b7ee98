//! All clusters: their endpoints and the connections to them.

use std::collections::HashMap;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use tunnel::{ClusterId, Sessions};

use crate::body::Body;
use crate::conduct::Conduct;
use crate::dialer::{Dialer, Routes};
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::AccessError;
use crate::pool::{Pool, Sharing};
use crate::reading::{ResponseKind, ResponseReader, bound_response};

/// The result of the last attempt to connect to a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// No attempt since the endpoint was set.
    #[default]
    Unknown,
    Reachable,
    Unreachable {
        /// For users.
        reason: String,
    },
}

/// Access to all downstream clusters. Cheap to clone; all clones share their state.
///
/// Clusters are independent: each has its own connections and limits, and a dead or slow cluster
/// delays no request to another.
#[derive(Clone)]
pub struct ClusterAccess {
    inner: Arc<AccessState>,
}

struct AccessState {
    dialer: Arc<dyn Dialer>,
    clusters: Mutex<HashMap<ClusterId, ClusterEntry>>,
}

#[derive(Default)]
struct ClusterEntry {
    pool: Option<Arc<Pool>>,
    state: watch::Sender<Reachability>,
    conduct: Option<Arc<Conduct>>,
}

impl ClusterAccess {
    /// Dials clusters directly or through `sessions`, depending on their endpoints. No cluster is
    /// known yet.
    pub fn new(sessions: Arc<Sessions>) -> Self {
        Self::with_dialer(Arc::new(Routes::new(sessions)))
    }

    /// Dials clusters with `dialer`, for tests.
    pub fn with_dialer(dialer: Arc<dyn Dialer>) -> Self {
        Self { inner: Arc::new(AccessState { dialer, clusters: Mutex::default() }) }
    }

    /// Sets the endpoint of a cluster. Call it for every report of its agent: when only the token
    /// is new, open streams continue and the next request uses it; otherwise the connections are
    /// closed.
    ///
    /// # Errors
    /// The endpoint is malformed. The previous endpoint stays.
    pub fn set_endpoint(&self, cluster: &str, endpoint: Endpoint) -> Result<(), EndpointError> {
        let mut clusters = self.inner.clusters.lock();
        let entry = clusters.entry(cluster.into()).or_default();
        if let Some(pool) = &entry.pool
            && pool.endpoint().has_same_address(&endpoint)
        {
            return pool.set_token(&endpoint);
        }
        let dialer = self.inner.dialer.clone();
        let pool = Pool::new(cluster.into(), endpoint, dialer, entry.state.clone())?;
        entry.state.send_replace(Reachability::Unknown);
        if let Some(old) = entry.pool.replace(pool) {
            old.cut();
        }
        Ok(())
    }

    /// Removes a cluster and its credential, and cuts all connections to it.
    pub fn forget(&self, cluster: &str) {
        let removed = self.inner.clusters.lock().remove(cluster);
        if let Some(pool) = removed.and_then(|cluster| cluster.pool) {
            pool.cut();
        }
    }

    /// Whether the cluster has an endpoint. It need not be reachable.
    pub fn knows(&self, cluster: &str) -> bool {
        self.pool(cluster).is_ok()
    }

    pub(crate) fn pool(&self, cluster: &str) -> Result<Arc<Pool>, AccessError> {
        let clusters = self.inner.clusters.lock();
        let pool = clusters.get(cluster).and_then(|cluster| cluster.pool.clone());
        pool.ok_or_else(|| AccessError::Unknown { cluster: cluster.to_owned() })
    }

    /// Sends a request to the cluster's API server under the cluster's own credential.
    ///
    /// `request` has a path (and query) as its URI and only headers that may go downstream;
    /// `Authorization` and `Host` are set here. Bodies stream in both directions; dropping the
    /// future or the response body cancels the request downstream. It is sent again only if no
    /// connection accepted it.
    ///
    /// # Errors
    /// See [`AccessError`]. A response of the API server is no error, whatever its status.
    pub async fn send(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        self.send_over(cluster, request, Sharing::Shared).await
    }

    /// Like [`Self::send`], for a user's request, whose response may be long: unless it is a watch,
    /// it gets a connection of its own when one is free. A request that changes nothing is also
    /// sent again when its connection ends without a response.
    pub(crate) async fn forward(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        let sharing = match ResponseKind::of(request.method(), request.uri()) {
            ResponseKind::Watch => Sharing::Shared,
            ResponseKind::List { .. } | ResponseKind::Object => Sharing::Alone,
        };
        self.send_over(cluster, request, sharing).await
    }

    async fn send_over(
        &self,
        cluster: &str,
        mut request: Request<Body>,
        sharing: Sharing,
    ) -> Result<Response<Body>, AccessError> {
        let pool = self.pool(cluster)?;
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = pool.target(path)?;
        pool.send(request, sharing).await
    }

    /// Like [`Self::send`], for a response that this server reads itself: its size and time are
    /// bounded.
    pub(crate) async fn read(
        &self,
        cluster: &str,
        reader: ResponseReader,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        let conduct = self.conduct(cluster)?;
        let kind = ResponseKind::of(request.method(), request.uri());
        bound_response(&conduct, reader, kind, self.send(cluster, request)).await
    }

    /// How a known cluster behaves.
    pub(crate) fn conduct(&self, cluster: &str) -> Result<Arc<Conduct>, AccessError> {
        let mut clusters = self.inner.clusters.lock();
        let unknown = || AccessError::Unknown { cluster: cluster.to_owned() };
        let entry = clusters.get_mut(cluster).ok_or_else(unknown)?;
        let new = || Conduct::new(cluster.into(), entry.state.clone());
        Ok(entry.conduct.get_or_insert_with(new).clone())
    }

    /// Sends an upgrade request, with `Connection` and `Upgrade` set by the caller, on a connection
    /// of its own. If the response is 101, get the byte stream by [`UpgradeResponse::into_stream`].
    ///
    /// Hold [`UpgradeResponse::held`] until the stream ends, and end the stream when
    /// [`UpgradeResponse::cut`] fires.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    pub async fn upgrade(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<UpgradeResponse, AccessError> {
        let pool = self.pool(cluster)?;
        let (response, held) = pool.upgrade(request).await?;
        Ok(UpgradeResponse { response, held, cut: pool.cut_token() })
    }

    /// A client for controllers, under the cluster's own credential and over the same connections.
    ///
    /// It can be built before the cluster has an endpoint, and stays valid when the endpoint
    /// changes. Calls fail with an [`AccessError`] while there is no endpoint. Must be called
    /// inside a Tokio runtime.
    pub fn kube_client(&self, cluster: &str) -> kube::Client {
        crate::client::kube_client(self.clone(), cluster.into())
    }

    /// Watches the result of the last attempt to connect to the API server. Whether the agent is
    /// connected is reported by the tunnel's sessions.
    pub fn watch_reachability(&self, cluster: &str) -> watch::Receiver<Reachability> {
        let mut clusters = self.inner.clusters.lock();
        clusters.entry(cluster.into()).or_default().state.subscribe()
    }

    /// The number of open connections to a cluster that requests can use.
    pub fn connection_count(&self, cluster: &str) -> usize {
        self.pool(cluster).map(|pool| pool.connection_count()).unwrap_or_default()
    }
}

/// The connection of an upgraded request.
pub type UpgradedIo = TokioIo<Upgraded>;

/// A byte stream to a cluster, after an upgrade.
pub struct UpgradedStream {
    pub io: UpgradedIo,
    /// As in [`UpgradeResponse`].
    pub held: OwnedSemaphorePermit,
    /// As in [`UpgradeResponse`].
    pub cut: CancellationToken,
}

impl UpgradeResponse {
    /// The byte stream after a 101; `None` when the connection broke in between.
    pub async fn into_stream(mut self) -> Option<UpgradedStream> {
        let upgraded = hyper::upgrade::on(&mut self.response).await.ok()?;
        Some(UpgradedStream { io: TokioIo::new(upgraded), held: self.held, cut: self.cut })
    }
}

/// The response to an upgrade request.
pub struct UpgradeResponse {
    /// Need not be 101.
    pub response: Response<Incoming>,
    /// The slot among the cluster's upgrades; dropping it frees the slot.
    pub held: OwnedSemaphorePermit,
    /// Fires when the cluster is removed or its endpoint changes.
    pub cut: CancellationToken,
}
