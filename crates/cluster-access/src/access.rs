//! All clusters: their endpoints and the connections to them.

use std::collections::HashMap;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tunnel::{ClusterId, Sessions};

use crate::body::Body;
use crate::conduct::Conduct;
use crate::dialer::{Dialer, Resolve, Routes};
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::AccessError;
use crate::limits::DIRECT_PROBE_INTERVAL;
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
///
/// A cluster has one endpoint or two: the one that its agent reports, and, if its API server can be
/// reached without the agent, a direct one. Requests take the direct one while connections to it
/// can be made, and otherwise the agent's.
#[derive(Clone)]
pub struct ClusterAccess {
    inner: Arc<AccessState>,
    is_direct_only: bool,
}

struct AccessState {
    dialer: Arc<dyn Dialer>,
    clusters: Mutex<HashMap<ClusterId, ClusterEntry>>,
}

#[derive(Default)]
struct ClusterEntry {
    pool: Option<Arc<Pool>>,
    direct: Option<DirectPool>,
    state: watch::Sender<Reachability>,
    conduct: Option<Arc<Conduct>>,
}

/// The connections that need no agent.
struct DirectPool {
    pool: Arc<Pool>,
    probed_at: Option<Instant>,
}

impl DirectPool {
    /// Whether requests take it first. If not, looks in the background whether it works again.
    fn is_usable(&mut self) -> bool {
        if self.pool.reachability() == Reachability::Reachable {
            return true;
        }
        if self.probed_at.is_none_or(|at| at.elapsed() >= DIRECT_PROBE_INTERVAL) {
            self.probed_at = Some(Instant::now());
            self.pool.probe();
        }
        false
    }
}

impl ClusterAccess {
    /// Dials clusters directly, at the addresses of `resolve`, or through `sessions`, depending on
    /// their endpoints. No cluster is known yet.
    pub fn new(sessions: Arc<Sessions>, resolve: Arc<Resolve>) -> Self {
        Self::with_dialer(Arc::new(Routes::new(sessions, resolve)))
    }

    /// Dials clusters with `dialer`, for tests.
    pub fn with_dialer(dialer: Arc<dyn Dialer>) -> Self {
        let inner = Arc::new(AccessState { dialer, clusters: Mutex::default() });
        Self { inner, is_direct_only: false }
    }

    /// The same clusters, without their agents: clusters without a direct endpoint are unknown.
    pub fn direct_only(&self) -> Self {
        Self { is_direct_only: true, ..self.clone() }
    }

    /// Sets or removes the direct endpoint of a cluster, with a credential of its own. Must be
    /// called inside a Tokio runtime.
    ///
    /// # Errors
    /// The endpoint is malformed. The previous endpoint stays.
    pub fn set_direct_endpoint(
        &self,
        cluster: &str,
        endpoint: Option<Endpoint>,
    ) -> Result<(), EndpointError> {
        let mut clusters = self.inner.clusters.lock();
        let entry = clusters.entry(cluster.into()).or_default();
        let Some(endpoint) = endpoint else {
            if let Some(old) = entry.direct.take() {
                old.pool.cut();
            }
            return Ok(());
        };
        if let Some(DirectPool { pool, .. }) = &entry.direct
            && pool.endpoint().has_same_address(&endpoint)
        {
            return pool.set_token(&endpoint);
        }
        let dialer = self.inner.dialer.clone();
        let pool = Pool::new(cluster.into(), endpoint, dialer, watch::Sender::default())?;
        pool.probe();
        let direct = DirectPool { pool, probed_at: Some(Instant::now()) };
        if let Some(old) = entry.direct.replace(direct) {
            old.pool.cut();
        }
        Ok(())
    }

    /// Whether connections to the direct endpoint of the cluster can be made.
    pub fn is_direct(&self, cluster: &str) -> bool {
        let mut clusters = self.inner.clusters.lock();
        let direct = clusters.get_mut(cluster).and_then(|entry| entry.direct.as_mut());
        direct.is_some_and(DirectPool::is_usable)
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
        let removed = self.inner.clusters.lock().remove(cluster).unwrap_or_default();
        let direct = removed.direct.map(|direct| direct.pool);
        for pool in removed.pool.into_iter().chain(direct) {
            pool.cut();
        }
    }

    /// Whether the cluster has an endpoint that its agent reported. It need not be reachable.
    pub fn knows(&self, cluster: &str) -> bool {
        self.inner.clusters.lock().get(cluster).is_some_and(|entry| entry.pool.is_some())
    }

    /// The connections for the next request, in the order in which they are tried.
    fn routes(&self, cluster: &str) -> Result<Vec<Arc<Pool>>, AccessError> {
        let mut clusters = self.inner.clusters.lock();
        let unknown = || AccessError::Unknown { cluster: cluster.to_owned() };
        let entry = clusters.get_mut(cluster).ok_or_else(unknown)?;
        let through_agent = entry.pool.clone().filter(|_| !self.is_direct_only);
        let mut routes: Vec<Arc<Pool>> = through_agent.into_iter().collect();
        if let Some(direct) = &mut entry.direct {
            let place = if direct.is_usable() { 0 } else { routes.len() };
            routes.insert(place, direct.pool.clone());
        }
        if routes.is_empty() { Err(unknown()) } else { Ok(routes) }
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
        let path = request.uri().path_and_query().cloned();
        let path = path.as_ref().map_or("/", |path| path.as_str());
        let mut error = AccessError::NotConnected;
        for pool in self.routes(cluster)? {
            *request.uri_mut() = pool.target(path)?;
            match pool.send(request, sharing).await {
                Ok(response) => return Ok(response),
                Err((Some(unsent), cause)) => (request, error) = (unsent, cause),
                Err((None, cause)) => return Err(cause),
            }
        }
        Err(error)
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
        mut request: Request<Body>,
    ) -> Result<UpgradeResponse, AccessError> {
        let mut error = AccessError::NotConnected;
        for pool in self.routes(cluster)? {
            match pool.upgrade(request).await {
                Ok((response, held)) => {
                    return Ok(UpgradeResponse { response, held, cut: pool.cut_token() });
                }
                Err((Some(unsent), cause)) => (request, error) = (unsent, cause),
                Err((None, cause)) => return Err(cause),
            }
        }
        Err(error)
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
        let clusters = self.inner.clusters.lock();
        let Some(entry) = clusters.get(cluster) else { return 0 };
        let direct = entry.direct.as_ref().map(|direct| &direct.pool);
        entry.pool.iter().chain(direct).map(|pool| pool.connection_count()).sum()
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
