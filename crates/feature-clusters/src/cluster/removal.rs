//! Keeps true: a deleted cluster goes, within a deadline, and a report says what was left.
//!
//! Owns Removed. Order: downstream first, while the agent is there to do it (our namespace, which
//! owns all the rest, and what carries our label); then everything here; then the report; then the
//! finalizer. Without an agent it waits until the deadline or until somebody sets the annotation
//! `drover.io/force-remove: "true"`; then it goes on and the report says what could not be done.
//!
//! A cluster marked `drover.io/detach: "true"` is let go: the same of ours leaves it, and whatever
//! else would be taken down with a cluster that we made stays. For an imported cluster there is no
//! more to take down, so removing and detaching do the same.
//!
//! A cluster that a driver made goes as a whole: its driver removes it first
//! (`feature-provisioning` reports that in `status.provisioning`), and nothing in it is cleaned.
//!
//! The report is a ConfigMap `removal-<cluster id>` in namespace `cattle-system` of the management
//! cluster, key `report.json`: it outlives the object. The newest per cluster id stays. An Event in
//! namespace `default` says the same in one line.

pub mod downstream;
pub mod report;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_management::cluster::REMOVAL_WAIT_MAX;
use api_management::{
    Cluster, ClusterRegistrationToken, ClusterRoleTemplateBinding, Node, Project,
    ProvisioningStage, Token, condition, keys,
};
use controller::ensure::{self, Object};
use controller::error::is_code;
use controller::{
    Attempt, ConditionState, Key, Limits, Outcome, OwnedCondition, Reconcile, ReconcileError,
    Reflector, Runner, StatusPatch, StatusTarget, Whole, finalizer,
};
use feature_kit::ownership::is_owned_by;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ClusterConnections, ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams};
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;

use super::uid;
use downstream::Step;
use report::{Left, Removed, Report};

const CONTROLLER: &str = "cluster-removal";
const REMOVED: OwnedCondition = OwnedCondition::of("Cluster", "Removed");

/// Reason of Removed from when the deletion of our downstream namespace was requested: from then on
/// a lost agent is expected. In the object, so that it survives a restart.
const DOWNSTREAM_GOING: &str = "DownstreamGoing";

/// Where events about objects without a namespace are.
const EVENTS_NS: &str = "default";
/// Time between two looks while something is going.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let dependants =
        ["nodes", "projects", "clusterregistrationtokens", "clusterroletemplatebindings"];
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            // Patch: for the finalizer alone; admission refuses every other change by controllers.
            ours(&["clusters"], &["get", "patch"]),
            ours(&["clusters/status"], &["patch"]),
            ours(&dependants, &["list", "deletecollection"]),
            ours(&["tokens"], &["delete"]),
            rule("", &["namespaces"], &["get", "delete"]),
        ],
    )
    .within(keys::SYSTEM_NS, rule("", &["configmaps"], &["get", "create", "patch"]))
    .within(EVENTS_NS, rule("events.k8s.io", &["events"], &["create"]))
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    let tokens = scope.reflectors.get::<Whole<Token>>();
    let removal = Removal {
        client,
        clusters: clusters.clone(),
        tokens,
        connections: context.connections.clone(),
        reports: Mutex::default(),
    };
    let limits = Limits { running_per_lane_max: 1, ..Limits::default() };
    let runner = Runner::with_limits(Arc::new(removal), limits);
    runner.watch(&clusters, |change| {
        let terminating = change.object().metadata.deletion_timestamp.is_some();
        terminating.then(|| change.key().clone())
    });
    let mut events = context.connections.events();
    let queue = runner.queue().clone();
    let follow = async move {
        loop {
            // A lost event only means waiting for the next look.
            if let Ok(event) = events.recv().await {
                let key = Key::cluster_scoped(&event.cluster);
                let cluster = clusters.get(&key);
                if cluster.is_some_and(|c| c.metadata.deletion_timestamp.is_some()) {
                    queue.add(key);
                }
            }
        }
    };
    tokio::select! {
        () = runner.run("", &scope.controllers, scope.stop.clone()) => {}
        () = follow => {}
    }
}

struct Removal {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    tokens: Arc<Reflector<Whole<Token>>>,
    connections: Arc<dyn ClusterConnections>,
    /// What was done so far, by cluster. Lost at a restart, which costs detail in the report only.
    reports: Mutex<HashMap<String, Report>>,
}

/// Whether to go on waiting for the downstream cluster. Pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Wait,
    Forced,
    PastDeadline,
}

/// How long removal has waited decides, unless somebody forces it.
pub(crate) fn patience(forced: bool, deleted_at: Timestamp, now: Timestamp) -> Patience {
    let waited = now.duration_since(deleted_at);
    if forced {
        Patience::Forced
    } else if waited.as_secs() >= REMOVAL_WAIT_MAX.as_secs().cast_signed() {
        Patience::PastDeadline
    } else {
        Patience::Wait
    }
}

/// What a removal waits for, until when, and how to end the wait. Pure.
pub(crate) fn unreachable_message(cluster: &Cluster, why: &str) -> String {
    let name = cluster.display_name();
    let command = if cluster.is_detached() { "detach" } else { "rm" };
    let deleted_at = cluster.metadata.deletion_timestamp.as_ref().map(|at| at.0);
    let end = deleted_at.and_then(|at| at.checked_add(REMOVAL_WAIT_MAX).ok());
    let until = end.map(|end| format!(" until {}", end.strftime("%H:%M:%S UTC")));
    format!(
        "cluster \"{name}\" does not respond: {why}; Drover waits for it{} and then ends without it; to \
         end now: drover cluster {command} {name} --force (annotation {}=true)",
        until.unwrap_or_default(),
        keys::FORCE_REMOVE
    )
}

impl Removal {
    async fn remove(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else {
            self.reports.lock().remove(&key.name);
            return Ok(Outcome::Done);
        };
        let ours = keys::CLUSTER_FINALIZER;
        let deleted_at = match &cluster.metadata.deletion_timestamp {
            Some(at) if cluster.finalizers().iter().any(|name| name == ours) => at.0,
            _ => return Ok(Outcome::Done),
        };
        if let Some(wait) = self.wait_for_driver(&cluster).await? {
            return Ok(wait);
        }
        // What the driver took does not count.
        let now = Timestamp::now();
        let since = self.with_report(key, |report| *report.driver_done_at.get_or_insert(now));
        let since = if cluster.driver_name().is_some() { since } else { deleted_at };
        let patience = patience(cluster.is_removal_forced(), since, now);
        if let Some(wait) = self.clean_downstream(&cluster, patience).await? {
            return Ok(wait);
        }
        self.connections.cut(&key.name);
        if !self.clean_management(&cluster, patience).await? {
            self.report(key, "Cleanup", "removing the cluster's namespace").await?;
            return Ok(Outcome::RequeueAfter(LOOK_INTERVAL));
        }
        self.finish(&cluster, deleted_at, patience).await?;
        Ok(Outcome::Done)
    }

    /// Waits until the driver that made the cluster is done with it. Returns the outcome to wait
    /// with, or none to go on.
    async fn wait_for_driver(&self, cluster: &Cluster) -> Result<Option<Outcome>, ReconcileError> {
        if cluster.driver_name().is_none() {
            return Ok(None);
        }
        // Not what the watch last said: a driver begins nothing once the object is under deletion,
        // but it may have begun just before.
        let (key, api) = (Key::cluster_scoped(&cluster.name_any()), Api::all(self.client.clone()));
        let found: Option<Cluster> =
            api.get_opt(&key.name).await.attempt(|| format!("read cluster \"{}\"", key.name))?;
        // Gone, which the watch is about to say.
        let Some(found) = found else { return Ok(Some(Outcome::Done)) };
        let Some(reported) = found.status.provisioning else { return Ok(None) };
        match reported.stage {
            ProvisioningStage::Removed => {
                // It went with all that was in it.
                self.with_report(&key, |report| {
                    report.note(vec![Removed::new("Cluster", cluster.display_name())]);
                    report.downstream_clean = true;
                });
                Ok(None)
            }
            ProvisioningStage::Abandoned => {
                let name = cluster.display_name();
                let left = Left::new("provider", "Cluster", "", name, &reported.message);
                self.leave(&key, vec![left]);
                Ok(None)
            }
            ProvisioningStage::Detached => Ok(None),
            ProvisioningStage::RemoveFailed => {
                let name = cluster.display_name();
                let message = format!(
                    "{}; to end without the driver, and leave to the provider what it still has: \
                     drover cluster rm {name} --force (annotation {}=true)",
                    reported.message,
                    keys::FORCE_REMOVE
                );
                self.report_as(&key, ConditionState::no("Error", message)).await?;
                Ok(Some(Outcome::WaitingFor("the driver".to_owned())))
            }
            _ => {
                self.report(&key, "DriverRemoving", &reported.message).await?;
                Ok(Some(Outcome::WaitingFor("the driver".to_owned())))
            }
        }
    }

    /// Removes what is ours downstream. Answers the outcome to wait with, or none to go on.
    async fn clean_downstream(
        &self,
        cluster: &Cluster,
        patience: Patience,
    ) -> Result<Option<Outcome>, ReconcileError> {
        let key = Key::cluster_scoped(&cluster.name_any());
        if cluster.status.agent_identity.is_none() || self.is_clean(&key) {
            return Ok(None);
        }
        let client = self.connections.client(&key.name);
        if self.is_anothers(cluster, client.as_ref()).await {
            self.with_report(&key, |report| report.downstream_clean = true);
            return Ok(None);
        }
        let noted = condition::find(&cluster.status.conditions, REMOVED.condition());
        let started = self.with_report(&key, |report| report.downstream_started)
            || noted.is_some_and(|condition| condition.reason == DOWNSTREAM_GOING);
        let step = match client {
            Some(client) => downstream::step(&client, &key.name).await,
            // Our namespace takes the agent along; what is left is the garbage collector's.
            None if started => Step::Done(Vec::new()),
            None => Step::Unreachable("the cluster's agent is not connected".to_owned()),
        };
        match step {
            Step::Done(removed) => {
                self.with_report(&key, |report| {
                    report.note(removed);
                    report.downstream_clean = true;
                });
                Ok(None)
            }
            Step::Going(removed) => {
                self.with_report(&key, |report| {
                    report.note(removed);
                    report.downstream_started = true;
                });
                if patience != Patience::Wait {
                    let why = "it was still going when removal ended";
                    self.leave(&key, downstream::everything(why));
                    return Ok(None);
                }
                self.report(&key, DOWNSTREAM_GOING, "removing our objects downstream").await?;
                Ok(Some(Outcome::RequeueAfter(LOOK_INTERVAL)))
            }
            Step::Unreachable(_) if started => {
                self.with_report(&key, |report| report.downstream_clean = true);
                Ok(None)
            }
            Step::Unreachable(why) if patience == Patience::Wait => {
                let message = unreachable_message(cluster, &why);
                self.report(&key, "DownstreamUnreachable", &message).await?;
                Ok(Some(Outcome::RequeueAfter(Duration::from_secs(2))))
            }
            Step::Unreachable(why) => {
                self.leave(&key, downstream::everything(&why));
                Ok(None)
            }
        }
    }

    /// Whether the cluster that answers is another entry's: what is there is not this entry's to
    /// delete.
    async fn is_anothers(&self, cluster: &Cluster, client: Option<&Client>) -> bool {
        let Some(client) = client else { return false };
        let uid = uid::read(client).await.unwrap_or_default();
        uid::is_managed_by_another(&self.clusters, cluster, &uid)
    }

    /// Removes the cluster's dependants here. Answers whether they are gone, or need not be waited
    /// for any more.
    async fn clean_management(
        &self,
        cluster: &Cluster,
        patience: Patience,
    ) -> Result<bool, ReconcileError> {
        let key = &Key::cluster_scoped(&cluster.name_any());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        self.delete_bound_tokens(&key.name).await?;
        let attempt = || format!("read namespace \"{}\"", key.name);
        let namespace = namespaces.get_opt(&key.name).await.attempt(attempt)?;
        // A namespace that is not the cluster's stays, with all that is in it.
        let own = |namespace: &Namespace| {
            is_owned_by(&namespace.metadata, cluster.metadata.uid.as_deref())
        };
        if !namespace.as_ref().is_some_and(own) {
            return Ok(true);
        }
        self.delete_all::<Node>(&key.name).await?;
        self.delete_all::<ClusterRegistrationToken>(&key.name).await?;
        self.delete_all::<ClusterRoleTemplateBinding>(&key.name).await?;
        self.delete_all::<Project>(&key.name).await?;
        if ensure::absent(&namespaces, &key.name).await? {
            return Ok(true);
        }
        if patience == Patience::PastDeadline {
            let why = "it was still going when removal ended";
            self.leave(key, vec![Left::new("management", "Namespace", "", &key.name, why)]);
            return Ok(true);
        }
        Ok(false)
    }

    async fn delete_all<K>(&self, namespace: &str) -> Result<(), ReconcileError>
    where
        K: Object + kube::Resource<Scope = NamespaceResourceScope>,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let all = ListParams::default();
        match api.delete_collection(&DeleteParams::background(), &all).await {
            Err(error) if !is_code(&error, 404) => {
                Err(error).attempt(|| format!("delete {} in \"{namespace}\"", K::plural(&())))
            }
            _ => Ok(()),
        }
    }

    /// Tokens that are good for this cluster only are good for nothing now.
    async fn delete_bound_tokens(&self, cluster: &str) -> Result<(), ReconcileError> {
        let mut bound = Vec::new();
        self.tokens.for_each(|key, token| {
            if token.cluster_name == cluster {
                bound.push(key.name.clone());
            }
        });
        let api: Api<Token> = Api::all(self.client.clone());
        for name in bound {
            ensure::absent(&api, &name).await?;
        }
        Ok(())
    }

    async fn finish(
        &self,
        cluster: &Cluster,
        deleted_at: Timestamp,
        patience: Patience,
    ) -> Result<(), ReconcileError> {
        let key = Key::cluster_scoped(&cluster.name_any());
        let mut report = self.with_report(&key, |report| report.clone());
        report.describe(cluster, deleted_at, patience);
        let configmaps: Api<ConfigMap> = Api::namespaced(self.client.clone(), keys::SYSTEM_NS);
        ensure::like(&configmaps, &report.to_config_map()).await?;
        let reporter = Reporter::from(CONTROLLER.to_owned());
        let recorder = Recorder::new(self.client.clone(), reporter);
        if let Err(error) = recorder.publish(&report.to_event(), &cluster.object_ref(&())).await {
            // The report has the same content; a removal does not wait for its event.
            tracing::warn!(cluster = %key, %error, "cannot write the event of the removal");
        }
        tracing::info!(cluster = %key, left = report.left.len(), "cluster removed");
        let target = StatusTarget::of::<Cluster>("", &key.name);
        finalizer::remove(&self.client, &target, keys::CLUSTER_FINALIZER).await?;
        self.reports.lock().remove(&key.name);
        Ok(())
    }

    async fn report(&self, key: &Key, reason: &str, message: &str) -> Result<(), ReconcileError> {
        self.report_as(key, ConditionState::unknown(reason, message)).await
    }

    async fn report_as(&self, key: &Key, state: ConditionState) -> Result<(), ReconcileError> {
        let patch = StatusPatch::new().condition(REMOVED, state);
        patch.write(&self.client, &StatusTarget::of::<Cluster>("", &key.name)).await?;
        Ok(())
    }

    fn with_report<T>(&self, key: &Key, change: impl FnOnce(&mut Report) -> T) -> T {
        change(self.reports.lock().entry(key.name.clone()).or_default())
    }
    fn is_clean(&self, key: &Key) -> bool {
        self.with_report(key, |report| report.downstream_clean)
    }
    fn leave(&self, key: &Key, left: Vec<Left>) {
        self.with_report(key, |report| {
            for entry in left {
                if !report.left.contains(&entry) {
                    report.left.push(entry);
                }
            }
            report.downstream_clean = true;
        });
    }
}

impl Reconcile for Removal {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.remove(key))
    }
}
