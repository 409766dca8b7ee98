//! Which clusters can be reached now, and events when that changes.

use std::collections::HashMap;
use std::sync::Arc;

use api_management::ids;
use cluster_access::access::UpgradeResponse;
use cluster_access::{
    AccessError, Address, BearerToken, Body, ClusterAccess, EndpointError, Route,
};
use feature_kit::{ClusterConnections, ClusterEvent};
use futures::future::BoxFuture;
use http::Request;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tunnel::{ApiCredential, Sessions};

/// News that wait for slow listeners; one that lags looks at everything again.
const EVENTS_MAX: usize = 1024;

/// Whoever turns an agent's report into a client. Holds the credentials; they never come back out.
pub trait DownstreamClients: Send + Sync + 'static {
    /// The newest report of a cluster's agent.
    fn report(&self, cluster: &str, credential: ApiCredential);
    /// A client with the rights of the agent, or with those of the direct endpoint, while the
    /// cluster can be reached.
    fn client(&self, cluster: &str) -> Option<Client>;
    /// Whether the cluster's agent is connected.
    fn has_agent(&self, cluster: &str) -> bool {
        self.client(cluster).is_some()
    }
    /// Sets how the API of a cluster is reached without its agent. By default that is not possible.
    ///
    /// # Errors
    /// The endpoint is malformed.
    fn set_direct(
        &self,
        cluster: &str,
        endpoint: cluster_access::Endpoint,
    ) -> Result<(), EndpointError> {
        let _ = (cluster, endpoint);
        Ok(())
    }
    /// A client that reaches the cluster without its agent.
    fn direct(&self, cluster: &str) -> Option<Client> {
        let _ = cluster;
        None
    }
    /// Ends all connections of a cluster and forgets its credentials.
    fn forget(&self, cluster: &str);
    /// Sends an upgrade request with the rights of the agent, see [`ClusterAccess::upgrade`]. By
    /// default no cluster is known.
    fn upgrade<'a>(&'a self, cluster: &'a str, request: Request<Body>) -> UpgradeFuture<'a> {
        drop(request);
        Box::pin(async move { Err(AccessError::Unknown { cluster: cluster.to_owned() }) })
    }
}

/// The outcome of [`DownstreamClients::upgrade`].
pub type UpgradeFuture<'a> = BoxFuture<'a, Result<UpgradeResponse, AccessError>>;

/// Where the API of a cluster is. No secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `host:port`, as the agent dials it, or this server if it needs no agent.
    pub address: String,
    /// PEM.
    pub ca_cert: String,
}

/// Why a cluster cannot be reached, as its agent or the tunnel's door said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Reason of the condition.
    pub reason: &'static str,
    /// For people, with what to do next.
    pub message: String,
    /// Ids of the entries that manage the cluster already. For [`crate::cluster::import_check`]
    /// alone: not everybody who sees this cluster may see them, so they are in no object.
    pub managed_by: Vec<String>,
}

impl Obstacle {
    /// `reason`: one CamelCase word. Names no other entries.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), managed_by: Vec::new() }
    }
}

/// All connections: the management API as cluster `local`, the others through their agents.
pub struct Connections {
    local: Client,
    downstream: Arc<dyn DownstreamClients>,
    endpoints: Mutex<HashMap<String, Endpoint>>,
    /// Those that need no agent.
    direct: Mutex<HashMap<String, Endpoint>>,
    /// Only of clusters that cannot be reached.
    obstacles: Mutex<HashMap<String, Obstacle>>,
    events: broadcast::Sender<ClusterEvent>,
}

impl Connections {
    /// `local` acts in the management API as the server itself.
    pub fn new(local: Client, downstream: Arc<dyn DownstreamClients>) -> Arc<Self> {
        let events = broadcast::Sender::new(EVENTS_MAX);
        let (endpoints, direct, obstacles) = Default::default();
        Arc::new(Self { local, downstream, endpoints, direct, obstacles, events })
    }

    /// Tells all listeners that something about the cluster's connection changed.
    pub fn announce(&self, cluster: &str) {
        // Nobody listening is no failure.
        let _ = self.events.send(ClusterEvent { cluster: cluster.to_owned() });
    }

    /// The newest report of a cluster's agent.
    pub fn report(&self, cluster: &str, credential: ApiCredential) {
        let ApiCredential { address, ca_cert, .. } = &credential;
        let endpoint = Endpoint { address: address.clone(), ca_cert: ca_cert.clone() };
        self.endpoints.lock().insert(cluster.to_owned(), endpoint);
        self.obstacles.lock().remove(cluster);
        self.downstream.report(cluster, credential);
        self.announce(cluster);
    }

    /// Notes why a cluster cannot be reached. A cluster that can be reached has no obstacle: there
    /// it concerns another agent than the cluster's.
    pub fn obstruct(&self, cluster: &str, obstacle: Obstacle) {
        if self.downstream.has_agent(cluster) {
            return;
        }
        let before = self.obstacles.lock().insert(cluster.to_owned(), obstacle.clone());
        // Agents try again and again; the same obstacle again is no event.
        if before.as_ref() != Some(&obstacle) {
            self.announce(cluster);
        }
    }

    /// Forgets the obstacle: the cluster's agent came or went since it was noted.
    pub fn clear(&self, cluster: &str) {
        self.obstacles.lock().remove(cluster);
        self.announce(cluster);
    }

    /// Sends an upgrade request to a cluster with the rights of its agent, such as `exec`.
    ///
    /// # Errors
    /// The cluster cannot be reached. A refusal of its API server is no error.
    pub async fn upgrade(
        &self,
        cluster: &str,
        request: Request<Body>,
    ) -> Result<UpgradeResponse, AccessError> {
        self.downstream.upgrade(cluster, request).await
    }

    /// Why the cluster cannot be reached, if somebody said so.
    pub fn obstacle(&self, cluster: &str) -> Option<Obstacle> {
        self.obstacles.lock().get(cluster).cloned()
    }

    /// Where the API of the cluster is: for this server, or where the agent last said.
    pub fn endpoint(&self, cluster: &str) -> Option<Endpoint> {
        let direct = self.direct.lock().get(cluster).cloned();
        direct.or_else(|| self.endpoints.lock().get(cluster).cloned())
    }

    /// Whether the cluster is expected to be reachable without its agent.
    pub fn has_direct(&self, cluster: &str) -> bool {
        self.direct.lock().contains_key(cluster)
    }

    /// Whether the agent of the cluster is connected; the management API needs none.
    pub fn has_agent(&self, cluster: &str) -> bool {
        cluster == ids::LOCAL_CLUSTER || self.downstream.has_agent(cluster)
    }
}

impl ClusterConnections for Connections {
    fn client(&self, cluster: &str) -> Option<Client> {
        if cluster == ids::LOCAL_CLUSTER {
            return Some(self.local.clone());
        }
        self.downstream.client(cluster)
    }
    fn events(&self) -> broadcast::Receiver<ClusterEvent> {
        self.events.subscribe()
    }
    fn set_direct(
        &self,
        cluster: &str,
        endpoint: cluster_access::Endpoint,
    ) -> Result<(), EndpointError> {
        let cluster_access::Endpoint { address, ca_pem, .. } = &endpoint;
        let shown = Endpoint { address: address.to_string(), ca_cert: ca_pem.clone() };
        self.downstream.set_direct(cluster, endpoint)?;
        self.direct.lock().insert(cluster.to_owned(), shown);
        self.announce(cluster);
        Ok(())
    }
    fn direct(&self, cluster: &str) -> Option<Client> {
        self.downstream.direct(cluster).filter(|_| self.has_direct(cluster))
    }
    fn cut(&self, cluster: &str) {
        self.endpoints.lock().remove(cluster);
        self.direct.lock().remove(cluster);
        self.obstacles.lock().remove(cluster);
        self.downstream.forget(cluster);
        self.announce(cluster);
    }
}

/// Clients through the agents' tunnels, or without them.
pub struct TunnelClients {
    access: ClusterAccess,
    sessions: Arc<Sessions>,
    made: Mutex<HashMap<String, Client>>,
}

impl TunnelClients {
    /// Clients over the tunnel, each created when it is first needed.
    pub fn new(access: ClusterAccess, sessions: Arc<Sessions>) -> Arc<Self> {
        Arc::new(Self { access, sessions, made: Mutex::default() })
    }
}

impl DownstreamClients for TunnelClients {
    fn report(&self, cluster: &str, credential: ApiCredential) {
        let address = match credential.address.parse::<Address>() {
            Ok(address) => address,
            Err(error) => {
                let address = &credential.address;
                tracing::warn!(cluster, address, %error, "agent reported a bad address");
                return;
            }
        };
        let endpoint = cluster_access::Endpoint {
            address,
            ca_pem: credential.ca_cert.clone(),
            server_name: None,
            token: BearerToken::new(credential.token),
            route: Route::Tunnel,
        };
        if let Err(error) = self.access.set_endpoint(cluster, endpoint) {
            tracing::warn!(cluster, %error, "agent reported an endpoint that cannot be used");
        }
    }
    fn client(&self, cluster: &str) -> Option<Client> {
        (self.has_agent(cluster) || self.access.is_direct(cluster)).then(|| {
            let mut made = self.made.lock();
            let client = made.entry(cluster.to_owned());
            client.or_insert_with(|| self.access.kube_client(cluster)).clone()
        })
    }
    fn has_agent(&self, cluster: &str) -> bool {
        self.sessions.is_connected(cluster) && self.access.knows(cluster)
    }
    fn set_direct(
        &self,
        cluster: &str,
        endpoint: cluster_access::Endpoint,
    ) -> Result<(), EndpointError> {
        self.access.set_direct_endpoint(cluster, Some(endpoint))
    }
    fn direct(&self, cluster: &str) -> Option<Client> {
        Some(self.access.direct_only().kube_client(cluster))
    }
    fn forget(&self, cluster: &str) {
        self.made.lock().remove(cluster);
        self.access.forget(cluster);
        self.sessions.cut(cluster);
    }
    fn upgrade<'a>(&'a self, cluster: &'a str, request: Request<Body>) -> UpgradeFuture<'a> {
        Box::pin(self.access.upgrade(cluster, request))
    }
}
