//! Keeps true: our cluster-wide objects downstream are owned by our one namespace there, and a pod
//! in that namespace gets a token only of an account that it names.
//!
//! A manifest cannot name the namespace's uid, so the owner reference is added after the agent has
//! connected. From then on deleting the namespace deletes everything with it, by the downstream
//! cluster's own garbage collection, even after the agent's rights are deleted. The namespace's
//! default service account is created by the cluster, at any time after the namespace; those of
//! other namespaces stay as they are, since pods there may need their tokens.
//!
//! Runs once per connection. Owns the cluster's condition AgentObjectsOwned.

use std::sync::Arc;

use api_management::{Cluster, ids, keys};
use controller::error::is_code;
use controller::{
    Attempt, ConditionReport, DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition,
    Reconcile, ReconcileError, Runner, StatusTarget, WithCondition,
};
use feature_kit::ownership::{is_owned_by, owner_reference};
use feature_kit::rbac::ours;
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

const CONTROLLER: &str = "downstream-ownership";
const OBJECTS_OWNED: OwnedCondition = OwnedCondition::of("Cluster", "AgentObjectsOwned");
/// What a user can do when the cluster rejects an owner reference.
const NEXT_STEP: &str = "until that succeeds, deleting the agent's namespace does not delete the \
    agent's cluster-wide rights. Drover tries again; check what rejects it in the cluster, an \
    admission webhook or policy, or apply the import manifest again to restore the rights of the agent";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(_: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    Arc::new(DownstreamOwnership { client })
}

struct DownstreamOwnership {
    client: Client,
}

impl DownstreamController for DownstreamOwnership {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let client = self.client.clone();
        Box::pin(async move {
            if scope.cluster == ids::LOCAL_CLUSTER {
                return;
            }
            let report = ConditionReport {
                condition: OBJECTS_OWNED,
                client,
                target: StatusTarget::of::<Cluster>("", &scope.cluster),
                next_step: NEXT_STEP.to_owned(),
            };
            let objects = AgentObjects { client: scope.client.clone() };
            let runner = Runner::new(Arc::new(WithCondition::new(objects, report)));
            runner.queue().add(Key::cluster_scoped(&scope.cluster));
            runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
        })
    }
}

/// The agent's objects in one connected cluster. Its one key is the cluster's.
struct AgentObjects {
    /// Acts in the cluster with the rights of the agent.
    client: Client,
}

impl Reconcile for AgentObjects {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(async move {
            own(&self.client).await?;
            Ok(Outcome::Done)
        })
    }
}

async fn own(client: &Client) -> Result<(), ReconcileError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = namespaces.get(keys::SYSTEM_NS).await;
    let namespace = read.attempt(|| format!("read namespace \"{}\"", keys::SYSTEM_NS))?;
    let owner = owner_reference(&namespace);
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
    if is_owned_by(object.meta(), Some(&owner.uid)) {
        return Ok(());
    }
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "ownerReferences": [owner],
    }});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.attempt(attempt)?;
    Ok(())
}
