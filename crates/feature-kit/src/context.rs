//! What every management controller and route is given.

use std::sync::Arc;

use controller::ManagementScope;
use kube::Client;

use crate::connections::ClusterConnections;
use crate::controller::{ControllerIdentity, GROUP_CONTROLLERS};
use crate::credentials::{self, CredentialStore};
use crate::settings::Settings;

/// Makes clients of the management API that act as somebody.
pub trait Clients: Send + Sync + 'static {
    fn client_as(&self, user: &str, groups: &[String]) -> Client;

    fn controller(&self, identity: &ControllerIdentity) -> Client {
        let authenticated = "system:authenticated".to_owned();
        self.client_as(&identity.user(), &[GROUP_CONTROLLERS.to_owned(), authenticated])
    }
}

/// The management plane as features see it. Cheap to clone.
#[derive(Clone)]
pub struct ManagementContext {
    /// Shared watches, the list of controllers, the stop signal.
    pub scope: ManagementScope,
    pub clients: Arc<dyn Clients>,
    pub settings: Settings,
    pub connections: Arc<dyn ClusterConnections>,
    /// Of all objects.
    pub credentials: Arc<CredentialStore>,
}

impl ManagementContext {
    /// Settings are read through the scope's own watch.
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
