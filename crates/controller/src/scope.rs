//! Where controllers run: the management cluster, or one downstream cluster while it is connected.

use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::activity::Controllers;
use crate::reflector::Reflectors;

/// What every management controller shares.
#[derive(Clone)]
pub struct ManagementScope {
    /// The shared watches of the management API.
    pub reflectors: Reflectors,
    /// Where controllers report what they do.
    pub controllers: Controllers,
    /// Fires when the server stops.
    pub stop: CancellationToken,
}

impl ManagementScope {
    /// `client` is the identity that watches: get, list and watch only.
    pub fn new(client: Client, stop: CancellationToken) -> Self {
        let reflectors = Reflectors::new(client, stop.clone());
        Self { reflectors, controllers: Controllers::default(), stop }
    }
}

/// One connected downstream cluster.
#[derive(Clone)]
pub struct DownstreamScope {
    /// Id of the cluster.
    pub cluster: String,
    /// Acts downstream with the rights of the agent.
    pub client: Client,
    /// The shared watches of that cluster.
    pub reflectors: Reflectors,
    pub controllers: Controllers,
    /// Fires when the cluster is lost or goes.
    pub stop: CancellationToken,
}
