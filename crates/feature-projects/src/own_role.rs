//! The rights of a controller in a downstream cluster, beyond those of the agent: a ClusterRole there, bound to the
//! controller's own identity, under which it acts by impersonation. Both are owned by our namespace and go with it.

use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, PolicyRule, ids, keys};
use controller::{ReconcileError, Reflector, Whole, ensure};
use feature_kit::ControllerIdentity;
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{role_ref, subject, to_kube};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client};

/// The role is looked at again after this time, or when something is refused.
const INTERVAL: Duration = Duration::from_secs(600);
/// Wait after the role could not be put there; doubles up to [`RETRY_DELAY_MAX`].
const RETRY_DELAY_MIN: Duration = Duration::from_millis(500);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

/// See the module.
pub struct OwnRole {
    /// Of the role and its binding.
    pub name: String,
    /// Value of the label [`keys::DOWNSTREAM_OWNED`].
    pub purpose: &'static str,
    pub user: String,
    pub rules: Vec<PolicyRule>,
}

impl OwnRole {
    pub fn new(
        identity: &ControllerIdentity,
        purpose: &'static str,
        rules: Vec<PolicyRule>,
    ) -> Self {
        let name = format!("drover:{}", identity.name);
        Self { name, purpose, user: identity.user(), rules }
    }

    fn objects(&self) -> (ClusterRole, ClusterRoleBinding) {
        let labels = [(keys::DOWNSTREAM_OWNED.to_owned(), self.purpose.to_owned())];
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let role = ClusterRole {
            metadata: metadata.clone(),
            rules: Some(self.rules.iter().map(to_kube).collect()),
            aggregation_rule: None,
        };
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: role_ref("ClusterRole", &self.name),
            subjects: Some(vec![subject("User", &self.user)]),
        };
        (role, binding)
    }
}

/// One connected cluster, as far as the role needs it.
pub struct Place {
    pub cluster: String,
    pub clusters: Arc<Reflector<Whole<Cluster>>>,
    /// Acts in the cluster as its agent.
    pub agent: Client,
    /// Whoever is refused something there says so here: it may be for want of the role.
    pub refused: tokio::sync::Notify,
}

impl Place {
    /// What removal has just taken away must not come back.
    pub fn is_staying(&self) -> bool {
        let cluster = self.clusters.named(&self.cluster);
        cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_none())
    }

    /// Keeps the role in the cluster. Never ends.
    pub async fn keep(&self, role: &OwnRole) {
        let mut delay = RETRY_DELAY_MIN;
        self.clusters.synced().await;
        loop {
            match self.put(role).await {
                Ok(()) => {
                    delay = RETRY_DELAY_MIN;
                    tokio::select! {
                        () = tokio::time::sleep(INTERVAL) => {}
                        () = self.refused.notified() => tokio::time::sleep(delay).await,
                    }
                }
                Err(error) => {
                    let (cluster, role, error) = (&self.cluster, &role.name, error.chain());
                    tracing::debug!(%cluster, %role, error, "a role of a controller is not in place yet");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(RETRY_DELAY_MAX);
                }
            }
        }
    }

    async fn put(&self, role: &OwnRole) -> Result<(), ReconcileError> {
        if self.cluster == ids::LOCAL_CLUSTER || !self.is_staying() {
            return Ok(());
        }
        let owner = our_namespace(&self.agent).await?;
        let (mut role, mut binding) = role.objects();
        role.metadata.owner_references = Some(vec![owner.clone()]);
        binding.metadata.owner_references = Some(vec![owner]);
        ensure::like(&Api::all(self.agent.clone()), &role).await?;
        ensure::like(&Api::all(self.agent.clone()), &binding).await.map(drop)
    }
}
