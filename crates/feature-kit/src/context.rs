//! What every management controller and route receives.

use std::sync::Arc;

use controller::ManagementScope;
use kube::Client;

use crate::connections::ClusterConnections;
use crate::controller::{ControllerIdentity, GROUP_CONTROLLERS};
use crate::credentials::{self, CredentialStore};
use crate::settings::Settings;

/// Makes clients of the management API that act as a given identity.
pub trait Clients: Send + Sync + 'static {
    /// A client that acts as `user` with exactly these groups.
    fn client_as(&self, user: &str, groups: &[String]) -> Client;

    /// A client that acts as the identity of a controller.
    fn controller(&self, identity: &ControllerIdentity) -> Client {
        let authenticated = "system:authenticated".to_owned();
        self.client_as(&identity.user(), &[GROUP_CONTROLLERS.to_owned(), authenticated])
    }
}

/// The management plane, as features see it. Cheap to clone.
#[derive(Clone)]
pub struct ManagementContext {
    /// Shared watches, the list of controllers, the stop signal.
    pub scope: ManagementScope,
    /// Makes clients of the management API.
    pub clients: Arc<dyn Clients>,
    /// The settings in force.
    pub settings: Settings,
    /// The downstream clusters.
    pub connections: Arc<dyn ClusterConnections>,
    /// The credentials of all objects.
    pub credentials: Arc<CredentialStore>,
}

impl ManagementContext {
    /// A context whose settings come from the shared watches of `scope`.
    pub fn new(
        scope: ManagementScope,
        clients: Arc<dyn Clients>,
        connections: Arc<dyn ClusterConnections>,
    ) -> Self {
        let settings = Settings::new(&scope.reflectors);
        let credentials = CredentialStore::new(clients.controller(&credentials::identity()));
        Self { scope, clients, settings, connections, credentials }
    }
}
