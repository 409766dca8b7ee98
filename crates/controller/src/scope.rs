//! Where controllers run: the management cluster, or one downstream cluster while it is connected.

use http::{HeaderValue, Request};
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
    /// The scope of the management cluster. `client` is used for watches and needs only get, list
    /// and watch; `stop` ends the watches.
    pub fn new(client: Client, stop: CancellationToken) -> Self {
        let reflectors = Reflectors::new(client, stop.clone());
        Self { reflectors, controllers: Controllers::default(), stop }
    }
}

/// What the controllers of one connected downstream cluster share.
#[derive(Clone)]
pub struct DownstreamScope {
    /// Id of the cluster.
    pub cluster: String,
    /// Acts downstream with the rights of the agent.
    pub client: Client,
    /// The shared watches of that cluster.
    pub reflectors: Reflectors,
    /// Where controllers report what they do.
    pub controllers: Controllers,
    /// Fires when the connection to the cluster is lost or the cluster is removed.
    pub stop: CancellationToken,
}

impl DownstreamScope {
    /// A client that acts downstream as this user; see [`impersonate`].
    pub fn client_as(&self, user: &HeaderValue) -> Client {
        impersonate(&self.client, user)
    }
}

/// A client that acts as `user` by impersonation, with the credentials of `own`: for requests that
/// the agent itself has no right to. `own` needs the right to impersonate the user. Audit logs of
/// the cluster name both.
pub fn impersonate(own: &Client, user: &HeaderValue) -> Client {
    let (own, user) = (own.clone(), user.clone());
    let service = move |mut request: Request<kube::client::Body>| {
        let own = own.clone();
        request.headers_mut().insert("impersonate-user", user.clone());
        async move { own.send(request).await }
    };
    Client::new(tower::service_fn(service), "default")
}
