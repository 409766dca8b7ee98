//! The seam to whoever holds the connections to downstream clusters.

use kube::Client;
use tokio::sync::broadcast;

/// Which cluster came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    pub cluster: String,
}

/// Connections to downstream clusters.
pub trait ClusterConnections: Send + Sync + 'static {
    /// A client that acts in the cluster with the rights of its agent; none while it is not
    /// connected. Never leaves the server.
    fn client(&self, cluster: &str) -> Option<Client>;

    /// Tells each time a cluster was connected or lost, after [`Self::client`] answers accordingly.
    /// Who lags looks at all clusters again.
    fn events(&self) -> broadcast::Receiver<ClusterEvent>;

    /// Ends all connections of a cluster that goes.
    fn cut(&self, cluster: &str);
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
}
