//! The manifest for clusters that the server itself writes to, because a driver made them.

use std::sync::Arc;

use api_management::setting::CACERTS;
use api_management::{Cluster, ClusterRegistrationToken};
use controller::{Reflector, Whole};
use feature_kit::{AgentManifest, CredentialStore, ManagementContext, Settings};
use futures::future::BoxFuture;
use kube::ResourceExt;
use serde_json::Value;

use super::import::environment;
use super::manifest::{Import, agent_image, documents};

/// See the module.
pub struct AgentObjects {
    tokens: Arc<Reflector<Whole<ClusterRegistrationToken>>>,
    settings: Settings,
    credentials: Arc<CredentialStore>,
}

impl AgentObjects {
    /// Reads tokens and settings from the shared reflectors.
    pub fn new(context: &ManagementContext) -> Self {
        Self {
            tokens: context.scope.reflectors.get(),
            settings: context.settings.clone(),
            credentials: context.credentials.clone(),
        }
    }

    async fn of(&self, cluster: &Cluster) -> Result<Vec<Value>, String> {
        let name = cluster.name_any();
        let server_url = self.settings.server_url();
        if server_url.is_empty() {
            return Err("the setting \"server-url\" is empty: agents do not know where the \
                        server is"
                .to_owned());
        }
        let tokens = self.tokens.in_namespace(&name);
        let secrets = tokens.iter().map(|(_, token)| token.status.token.as_str());
        let Some(token) = secrets.into_iter().find(|secret| !secret.is_empty()) else {
            return Err("the cluster has no registration token yet".to_owned());
        };
        let env = environment(&self.credentials, cluster).await.map_err(|status| status.message)?;
        Ok(documents(&Import {
            cluster: &name,
            server_url: &server_url,
            ca_certs: &self.settings.get(CACERTS),
            token,
            image: &agent_image(&cluster.spec, &self.settings),
            env: &env,
        }))
    }
}

impl AgentManifest for AgentObjects {
    fn objects<'a>(&'a self, cluster: &'a Cluster) -> BoxFuture<'a, Result<Vec<Value>, String>> {
        Box::pin(self.of(cluster))
    }
}
