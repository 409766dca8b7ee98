//! All clusters: their endpoints and the way to them.

use std::collections::HashMap;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
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
use crate::reading::{Kind, Reader, bounded};

/// What the last attempt to connect to an API server told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// Nobody tried since the endpoint was set.
    #[default]
    Unknown,
    Reachable,
    Unreachable {
        reason: String,
    },
}

/// The way to all downstream clusters. Cheap to clone; all clones are one.
///
/// Clusters are independent: each has its own connections and limits, and one that is dead or slow
/// delays nobody who asks for another.
#[derive(Clone)]
pub struct ClusterAccess {
    inner: Arc<Inner>,
}

struct Inner {
    dialer: Arc<dyn Dialer>,
    clusters: Mutex<HashMap<ClusterId, Cluster>>,
}

#[derive(Default)]
struct Cluster {
    pool: Option<Arc<Pool>>,
    state: watch::Sender<Reachability>,
    conduct: Option<Arc<Conduct>>,
}

impl ClusterAccess {
    /// Reaches clusters directly or through `sessions`, as their endpoints say.
    pub fn new(sessions: Arc<Sessions>) -> Self {
        Self::with_dialer(Arc::new(Routes::new(sessions)))
    }

    pub fn with_dialer(dialer: Arc<dyn Dialer>) -> Self {
        Self { inner: Arc::new(Inner { dialer, clusters: Mutex::default() }) }
    }

    /// Makes a cluster known, or changes it. Call it for every report of its agent: when only the
    /// token is new, open streams go on and the next request uses it; otherwise connections are
    /// closed.
    ///
    /// # Errors
    /// The endpoint is malformed. What was known before stays.
    pub fn set_endpoint(&self, cluster: &str, endpoint: Endpoint) -> Result<(), EndpointError> {
        let mut clusters = self.inner.clusters.lock();
        let entry = clusters.entry(cluster.into()).or_default();
        if let Some(pool) = &entry.pool
            && pool.endpoint().is_same_place(&endpoint)
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

    /// Forgets a cluster and its credential, and cuts everything that is open to it.
    pub fn forget(&self, cluster: &str) {
        let removed = self.inner.clusters.lock().remove(cluster);
        if let Some(pool) = removed.and_then(|cluster| cluster.pool) {
            pool.cut();
        }
    }

    /// Whether an endpoint is known. Says nothing about whether it answers.
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
    /// `Authorization` and `Host` are written here. Bodies stream both ways; dropping the future or
    /// the answer's body cancels the request downstream. It is sent again only if no connection
    /// took it.
    ///
    /// # Errors
    /// See [`AccessError`]; an answer of the API server, whatever its status, is no error.
    pub async fn send(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        self.send_over(cluster, request, Sharing::Shared).await
    }

    /// As [`Self::send`], for a request of somebody whose answer may be long: unless it is a watch it has a connection to
    /// itself when one is free. One that changes nothing is sent again also when its connection ended without an answer.
    pub(crate) async fn forward(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        let sharing = match Kind::of(request.method(), request.uri()) {
            Kind::Watch => Sharing::Shared,
            Kind::List { .. } | Kind::Object => Sharing::Alone,
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

    /// As [`Self::send`], for a response that this server reads itself: it is bounded.
    pub(crate) async fn read(
        &self,
        cluster: &str,
        reader: Reader,
        request: Request<Body>,
    ) -> Result<Response<Body>, AccessError> {
        let conduct = self.conduct(cluster)?;
        let kind = Kind::of(request.method(), request.uri());
        bounded(&conduct, reader, kind, self.send(cluster, request)).await
    }

    /// How a known cluster behaves.
    pub(crate) fn conduct(&self, cluster: &str) -> Result<Arc<Conduct>, AccessError> {
        let mut clusters = self.inner.clusters.lock();
        let unknown = || AccessError::Unknown { cluster: cluster.to_owned() };
        let entry = clusters.get_mut(cluster).ok_or_else(unknown)?;
        let new = || Conduct::new(cluster.into(), entry.state.clone());
        Ok(entry.conduct.get_or_insert_with(new).clone())
    }

    /// Sends a request that asks for an upgrade, with `Connection` and `Upgrade` set by the caller,
    /// on a connection of its own. If the answer is 101 take the byte stream with
    /// `hyper::upgrade::on`.
    ///
    /// Keep [`UpgradeAnswer::held`] as long as the stream; end it when [`UpgradeAnswer::cut`]
    /// fires.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn upgrade(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<UpgradeAnswer, AccessError> {
        let pool = self.pool(cluster)?;
        let (response, held) = pool.upgrade(request).await?;
        Ok(UpgradeAnswer { response, held, cut: pool.cut_token() })
    }

    /// A client for controllers, under the cluster's own credential and over the same connections.
    ///
    /// It can be made before the cluster is known and outlives changes of its endpoint; calls fail
    /// with an [`AccessError`] as long as there is none. Must be called inside a Tokio runtime.
    pub fn kube_client(&self, cluster: &str) -> kube::Client {
        crate::client::kube_client(self.clone(), cluster.into())
    }

    /// Follows what connecting to the API server last told. For whether the agent is there, watch
    /// the tunnel's sessions.
    pub fn watch_reachability(&self, cluster: &str) -> watch::Receiver<Reachability> {
        let mut clusters = self.inner.clusters.lock();
        clusters.entry(cluster.into()).or_default().state.subscribe()
    }

    /// Connections kept to a cluster at this moment.
    pub fn connection_count(&self, cluster: &str) -> usize {
        self.pool(cluster).map(|pool| pool.connection_count()).unwrap_or_default()
    }
}

/// The answer to an upgrade request.
pub struct UpgradeAnswer {
    pub response: Response<Incoming>,
    /// The place among the cluster's upgrades, given back on drop.
    pub held: OwnedSemaphorePermit,
    /// Fires when the cluster is forgotten or its endpoint changes.
    pub cut: CancellationToken,
}
