//! Keeps true: every cluster has its namespace and, to begin with, a registration token; its
//! `status.appliedSpec` is the spec that was acted on, by the driver if the cluster has one.
//!
//! Owns Pending, Provisioned, BackingNamespaceCreated and Updated. Watches clusters (own key) and
//! namespaces (a namespace maps to the cluster of the same name). A namespace that does not refer
//! to the cluster as its owner is somebody else's: it is left alone, and the cluster waits for
//! another one.

use std::sync::Arc;

use api_management::cluster::DRIVER_LOCAL;
use api_management::{
    Cluster, ClusterRegistrationToken, Provisioning, ProvisioningStage,
    cluster_registration_token as crt, unimplemented,
};
use controller::{
    ConditionState, Key, Metadata, Outcome, OwnedCondition, Reconcile, ReconcileError, Reflector,
    Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use feature_kit::ownership::{is_namespace_of, owner_reference};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext, system_namespace};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

const PENDING: OwnedCondition = OwnedCondition::of("Cluster", "Pending");
const PROVISIONED: OwnedCondition = OwnedCondition::of("Cluster", "Provisioned");
const NAMESPACE: OwnedCondition = OwnedCondition::of("Cluster", "BackingNamespaceCreated");
const UPDATED: OwnedCondition = OwnedCondition::of("Cluster", "Updated");

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "cluster-lifecycle",
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status"], &["patch"]),
            ours(&["clusterregistrationtokens"], &["create"]),
            rule("", &["namespaces"], &["create"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    let namespaces = scope.reflectors.get::<Metadata<Namespace>>();
    let lifecycle =
        Lifecycle { client, clusters: clusters.clone(), namespaces: namespaces.clone() };
    let runner = Runner::new(Arc::new(lifecycle));
    runner.watch_own(&clusters);
    runner.watch_namesakes(&clusters, &namespaces);
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Lifecycle {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
}

/// What to write into status. Pure.
pub(crate) fn desired(cluster: &Cluster) -> StatusPatch {
    let pending = ConditionState::unknown(
        "AgentNotRegistered",
        "waiting for the cluster's agent; apply the import manifest in the cluster",
    );
    let here = cluster.is_local() || cluster.status.agent_identity.is_some();
    let mut patch = StatusPatch::new().condition(NAMESPACE, ConditionState::yes()).condition(
        PENDING,
        if here || !cluster.is_imported() { ConditionState::yes() } else { pending },
    );
    let (provisioned, updated) = match cluster.driver_name() {
        Some(driver) => of_driver(driver, cluster.status.provisioning.as_ref()),
        None if here => (Some(ConditionState::yes()), ConditionState::yes()),
        None if cluster.is_imported() => (None, ConditionState::yes()),
        None => {
            let text = "the configuration is stored, but this version makes no such clusters: \
                        it imports clusters, and makes them with cluster drivers";
            let state = ConditionState::unknown(unimplemented::NOT_IMPLEMENTED, text);
            (Some(state), ConditionState::yes())
        }
    };
    if let Some(state) = provisioned {
        patch = patch.condition(PROVISIONED, state);
    }
    patch = patch.condition(UPDATED, updated);
    if is_applied(cluster) {
        let spec = serde_json::to_value(&cluster.spec).expect("a spec serialises");
        patch = patch.field("appliedSpec", spec);
    }
    if cluster.is_local() {
        patch = patch.field("driver", DRIVER_LOCAL);
    }
    patch
}

/// Whether the spec was acted on.
fn is_applied(cluster: &Cluster) -> bool {
    let Some(reported) = &cluster.status.provisioning else {
        return cluster.driver_name().is_none();
    };
    let is_current = cluster.metadata.generation.is_none_or(|now| now == reported.generation);
    reported.stage == ProvisioningStage::Provisioned && is_current
}

/// Provisioned and Updated of a cluster that a driver makes.
fn of_driver(
    driver: &str,
    reported: Option<&Provisioning>,
) -> (Option<ConditionState>, ConditionState) {
    let yes = ConditionState::yes;
    let Some(Provisioning { stage, message, .. }) = reported else {
        let text = format!("waiting for the driver \"{driver}\"");
        return (Some(ConditionState::unknown("Waiting", text)), yes());
    };
    let doing = |reason| ConditionState::unknown(reason, message);
    let failed = || ConditionState::no("Error", message);
    match stage {
        ProvisioningStage::Creating => (Some(doing("Creating")), yes()),
        ProvisioningStage::CreateFailed => (Some(failed()), yes()),
        ProvisioningStage::Updating => (Some(yes()), doing("Updating")),
        ProvisioningStage::UpdateFailed => (Some(yes()), failed()),
        _ => (Some(yes()), yes()),
    }
}

/// The cluster's namespace in the management cluster.
fn namespace(cluster: &Cluster) -> Namespace {
    let mut namespace = system_namespace(&cluster.name_any());
    namespace.metadata.owner_references = Some(vec![owner_reference(cluster)]);
    namespace
}

/// What to say of a cluster whose namespace is not its own.
fn name_taken(name: &str) -> ConditionState {
    let text = format!(
        "namespace \"{name}\" was there before the cluster and is not the cluster's; delete the namespace if \
         nothing in it is needed, or delete the cluster and create it under another name"
    );
    ConditionState::no("NameTaken", text)
}

/// The token that a cluster is born with.
fn first_token(cluster: &Cluster) -> ClusterRegistrationToken {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let mut token = ClusterRegistrationToken::default();
    token.metadata.name = Some(crt::DEFAULT_NAME.to_owned());
    token.metadata.namespace = Some(name.clone());
    token.metadata.owner_references = Some(vec![owner_reference(cluster)]);
    token.spec.cluster_name = name;
    token
}

impl Lifecycle {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else { return Ok(Outcome::Done) };
        if cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::WaitingFor("removal".to_owned()));
        }
        match self.namespaces.named(&key.name) {
            Some(namespace) if namespace.deletion_timestamp.is_some() => {
                let state = ConditionState::no("Terminating", "the cluster's namespace is going");
                let patch = StatusPatch::new().condition(NAMESPACE, state);
                patch.write(&self.client, &self.target(key)).await?;
                return Ok(Outcome::WaitingFor("the end of the old namespace".to_owned()));
            }
            Some(namespace) if !is_namespace_of(&namespace, &cluster) => {
                let patch = StatusPatch::new().condition(NAMESPACE, name_taken(&key.name));
                patch.write(&self.client, &self.target(key)).await?;
                return Ok(Outcome::WaitingFor(
                    "another namespace of the cluster's name".to_owned(),
                ));
            }
            Some(_) => {}
            None => {
                let api = Api::all(self.client.clone());
                if !ensure::created(&api, &namespace(&cluster)).await? {
                    // Whose it is the watch is about to say.
                    return Ok(Outcome::WaitingFor("what the namespace is".to_owned()));
                }
            }
        }
        let new = cluster.status.applied_spec.is_none();
        // The server applies the manifest itself in a cluster that a driver made.
        if new && (cluster.is_imported() || cluster.driver_name().is_some()) {
            let api = Api::namespaced(self.client.clone(), &key.name);
            ensure::created(&api, &first_token(&cluster)).await?;
        }
        desired(&cluster).write(&self.client, &self.target(key)).await?;
        Ok(Outcome::Done)
    }

    fn target(&self, key: &Key) -> StatusTarget {
        StatusTarget::of::<Cluster>("", &key.name)
    }
}

impl Reconcile for Lifecycle {
    fn name(&self) -> &'static str {
        "cluster-lifecycle"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
