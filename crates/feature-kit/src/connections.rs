//! The interface to the owner of the connections to downstream clusters.

use cluster_access::{Endpoint, EndpointError};
use kube::Client;
use tokio::sync::broadcast;

/// A cluster was connected or disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    /// Id of the cluster.
    pub cluster: String,
}

/// Connections to downstream clusters.
pub trait ClusterConnections: Send + Sync + 'static {
    /// A client that acts in the cluster with the rights of its agent; `None` while it is
    /// disconnected. It must never leave the server.
    fn client(&self, cluster: &str) -> Option<Client>;

    /// Reports each cluster that was connected or disconnected, after [`Self::client`] reflects
    /// that. A receiver that lags must check all clusters.
    fn events(&self) -> broadcast::Receiver<ClusterEvent>;

    /// Closes all connections of a cluster that is being removed.
    fn cut(&self, cluster: &str);

    /// Sets how the API of a cluster is reached without its agent.
    ///
    /// # Errors
    /// The endpoint is malformed.
    fn set_direct(&self, cluster: &str, endpoint: Endpoint) -> Result<(), EndpointError>;

    /// A client that reaches the cluster without its agent, with the credential of
    /// [`Self::set_direct`]; `None` without such an endpoint. It must never leave the server.
    fn direct(&self, cluster: &str) -> Option<Client>;
}

/// No downstream cluster is ever connected.
pub struct NoConnections(broadcast::Sender<ClusterEvent>);

impl Default for NoConnections {
    fn default() -> Self {
        Self(broadcast::Sender::new(1))
    }
}

impl ClusterConnections for NoConnections {
    fn client(&self, _: &str) -> Option<Client> {
        None
    }
    fn events(&self) -> broadcast::Receiver<ClusterEvent> {
        self.0.subscribe()
    }
    fn cut(&self, _: &str) {}
    fn set_direct(&self, _: &str, _: Endpoint) -> Result<(), EndpointError> {
        Ok(())
    }
    fn direct(&self, _: &str) -> Option<Client> {
        None
    }
}
