//! Keeps true: what is ours downstream and cluster-wide is owned by our one namespace there, and a pod in that
//! namespace gets a token only of an account that it names.
//!
//! A manifest cannot name the namespace's uid, so the owner reference is put on after the agent has
//! connected. From then on deleting the namespace takes everything along, by the downstream cluster's
//! own garbage collection, even after the agent's rights are gone. The namespace's default service account is
//! made by the cluster, at any time after the namespace; those of other namespaces stay as they are, since what
//! runs there may need their tokens.

use std::sync::Arc;
use std::time::Duration;

use api_management::{ids, keys};
use controller::error::is_code;
use controller::{Attempt, DownstreamController, DownstreamScope, ReconcileError};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cluster_registration_token::manifest::{AGENT_NAME, DEFAULT_ACCOUNT};

/// First wait after a failure; doubles up to [`RETRY_DELAY_MAX`].
const RETRY_DELAY_MIN: Duration = Duration::from_millis(500);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new("downstream-ownership", Vec::new())
}

pub fn build(_: &ManagementContext, _: Client) -> Arc<dyn DownstreamController> {
    Arc::new(Ownership)
}

struct Ownership;

impl DownstreamController for Ownership {
    fn name(&self) -> &'static str {
        "downstream-ownership"
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if scope.cluster == ids::LOCAL_CLUSTER {
                return;
            }
            let mut delay = RETRY_DELAY_MIN;
            while let Err(error) = own(&scope.client).await {
                let (cluster, error) = (&scope.cluster, error.chain());
                tracing::debug!(%cluster, error, "what is ours there is not in order yet");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY_DELAY_MAX);
            }
        })
    }
}

/// A reference to our downstream namespace, for cluster-scoped objects of ours.
pub fn namespace_reference(namespace: &Namespace) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: namespace.name_any(),
        uid: namespace.uid().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    }
}

async fn own(client: &Client) -> Result<(), ReconcileError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = namespaces.get(keys::SYSTEM_NS).await;
    let namespace = read.attempt(|| format!("read namespace \"{}\"", keys::SYSTEM_NS))?;
    let owner = namespace_reference(&namespace);
    own_one::<ClusterRole>(client, AGENT_NAME, &owner).await?;
    own_one::<ClusterRoleBinding>(client, AGENT_NAME, &owner).await?;
    withhold_token(client).await
}

async fn withhold_token(client: &Client) -> Result<(), ReconcileError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), keys::SYSTEM_NS);
    let patch = Patch::Merge(json!({"automountServiceAccountToken": false}));
    match accounts.patch(DEFAULT_ACCOUNT, &PatchParams::default(), &patch).await {
        // Manifests of earlier versions give no right to it.
        Err(error) if is_code(&error, 403) => Ok(()),
        done => done.map(drop).attempt(|| format!("change service account \"{DEFAULT_ACCOUNT}\"")),
    }
}

async fn own_one<K>(
    client: &Client,
    name: &str,
    owner: &OwnerReference,
) -> Result<(), ReconcileError>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let attempt = || format!("own {} \"{name}\"", K::kind(&()).to_lowercase());
    let object = match api.get(name).await {
        Err(error) if is_code(&error, 404) => return Ok(()),
        object => object.attempt(attempt)?,
    };
    if object.owner_references().iter().any(|present| present.uid == owner.uid) {
        return Ok(());
    }
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "ownerReferences": [owner],
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.attempt(attempt)?;
    Ok(())
}
