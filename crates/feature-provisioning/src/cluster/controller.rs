//! Keeps true: a cluster whose spec names a driver exists at the provider as its options describe
//! it, and has an agent; one under deletion is removed by its driver.
//!
//! Owns `status.provisioning`, `status.capabilities`, and `status.driver` of such clusters. Watches
//! clusters (own key), drivers (all of their clusters) and settings (the agent's objects). A run
//! lasts as long as the cloud takes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use api_management::cluster::{BACKING_NAMESPACE_CREATED, ENGINE_CONFIG};
use api_management::kind::Kind as _;
use api_management::setting::{AGENT_IMAGE, CACERTS, SERVER_URL, SYSTEM_DEFAULT_REGISTRY};
use api_management::state::ACTIVE;
use api_management::{Cluster, KontainerDriver, PolicyRule, ProvisioningStage, condition, keys};
use controller::{
    Change, Key, Limits, Outcome, Reconcile, ReconcileError, Reflector, Runner, StatusPatch, Whole,
};
use driver_contract::types::{
    ClusterInfo, CreateRequest, DriverOptions, K8sCapabilities, UpdateRequest,
};
use driver_host::StartError;
use feature_kit::rbac::{ours, rule};
use feature_kit::{
    AgentManifest, ClusterConnections, ControllerIdentity, CredentialStore, ManagementContext,
};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::access::{self, NoAccess};
use super::log::ProvisioningLogs;
use super::options;
use super::record::{ProvisioningStep, RecordStatus, Records, StoredCluster, next_step};
use super::report::Reporter;
use super::work::{CallError, DROVER, DriverRun, EndOfWork, RunningWork, WorkContext};
use crate::kontainer_driver::files::{DriverFiles, NoProgram};

const CONTROLLER: &str = "cluster-provisioning";
/// Clusters whose drivers work at once. Each is a process of some megabytes that mostly waits.
const DRIVERS_MAX: usize = 100;
/// Until a driver that failed is called again: doubled with each failure, to the longest.
const RETRY_DELAY_MIN: Duration = Duration::from_secs(15);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(600);
/// Until a driver is looked at again that saves or restores a snapshot.
pub(super) const BUSY_INTERVAL: Duration = Duration::from_secs(2);
/// Until a cluster that was made is tried again, whose API cannot be reached yet.
const REACH_INTERVAL: Duration = Duration::from_secs(5);
/// The same while its agent only is to be replaced.
const REPLACE_INTERVAL: Duration = Duration::from_secs(60);

pub(super) static FINISHED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Creations, changes and removals that drivers finished since this process began.
pub fn finished() -> u64 {
    FINISHED.load(Ordering::Relaxed)
}

/// Those that failed, each attempt.
pub fn failed() -> u64 {
    FAILED.load(Ordering::Relaxed)
}

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let logs = PolicyRule {
        resource_names: vec![super::log::NAME.to_owned()],
        ..rule("", &["configmaps"], &["get", "patch"])
    };
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            ours(&["clusters"], &["get"]),
            ours(&["clusters/status"], &["patch"]),
            logs,
            // Its name cannot be checked where an object is created.
            rule("", &["configmaps"], &["create"]),
        ],
    )
    .within(keys::SYSTEM_NS, rule("", &["secrets"], &["get", "create", "patch", "delete"]))
}

/// Runs the controller until the future is dropped.
pub async fn run(context: ManagementContext, provisioner: Arc<Provisioner>) {
    let scope = &context.scope;
    let (clusters, drivers) = (provisioner.clusters.clone(), provisioner.drivers.clone());
    let running = provisioner.running.clone();
    // A run is several calls, and an attempt to create may precede a removal.
    let run_time_max = 4 * provisioner.files.settings().call_time_max;
    let limits = Limits { running_max: DRIVERS_MAX, running_per_lane_max: 1, run_time_max };
    tokio::join!(clusters.synced(), drivers.synced());
    let runner = Runner::with_limits(provisioner, limits);
    runner.watch(&clusters, move |change| {
        if let Change::Applied { key, new, .. } = change
            && is_to_be_cancelled(new)
        {
            running.cancel(&key.name);
        }
        concerns(change).then(|| change.key().clone())
    });
    let of_driver = clusters.clone();
    runner.watch(&drivers, move |change| made_by(&of_driver, Some(&change.key().name)));
    let all = clusters.clone();
    runner.watch(context.settings.reflector(), move |change| {
        let used = [SERVER_URL, CACERTS, AGENT_IMAGE, SYSTEM_DEFAULT_REGISTRY];
        match used.contains(&change.key().name.as_str()) {
            true => made_by(&all, None),
            false => Vec::new(),
        }
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

/// Whether a change of a cluster is more than what this controller and those of conditions write.
fn concerns(change: &Change<'_, Cluster>) -> bool {
    let Change::Applied { new, old: Some(old), .. } = change else { return true };
    let has_namespace = |cluster: &Cluster| {
        condition::is_true(&cluster.status.conditions, BACKING_NAMESPACE_CREATED)
    };
    new.spec != old.spec
        || new.metadata.annotations != old.metadata.annotations
        || new.metadata.deletion_timestamp != old.metadata.deletion_timestamp
        || has_namespace(new) != has_namespace(old)
}

/// The clusters of a driver, or of all drivers.
fn made_by(clusters: &Reflector<Whole<Cluster>>, driver: Option<&str>) -> Vec<Key> {
    let mut found = Vec::new();
    clusters.for_each(|key, cluster| {
        let name = cluster.driver_name();
        if name.is_some() && (driver.is_none() || name == driver) {
            found.push(key.clone());
        }
    });
    found
}

/// Whether what runs for the cluster ends at once. A removal runs on when the cluster is paused.
fn is_to_be_cancelled(cluster: &Cluster) -> bool {
    match cluster.metadata.deletion_timestamp {
        Some(_) => cluster.is_removal_forced() || cluster.is_detached(),
        None => cluster.is_paused(),
    }
}

/// Makes, changes and removes clusters by their drivers.
pub struct Provisioner {
    pub(super) clusters: Arc<Reflector<Whole<Cluster>>>,
    drivers: Arc<Reflector<Whole<KontainerDriver>>>,
    credentials: Arc<CredentialStore>,
    connections: Arc<dyn ClusterConnections>,
    pub(super) records: Records,
    pub(super) reporter: Reporter,
    running: RunningWork,
    /// By cluster. Lost at a restart, which costs an attempt.
    failures: Mutex<HashMap<String, Failures>>,
    pub(super) files: Arc<DriverFiles>,
    agents: Arc<dyn AgentManifest>,
    /// Logs of all clusters.
    pub logs: ProvisioningLogs,
}

/// What failed in a row, with the same options.
struct Failures {
    /// Options, or nothing for a removal.
    config: Value,
    count: u32,
    last: Instant,
}

impl Failures {
    fn delay(&self) -> Duration {
        let doubled = RETRY_DELAY_MIN.saturating_mul(1 << self.count.saturating_sub(1).min(16));
        doubled.min(RETRY_DELAY_MAX)
    }
}

/// Why work did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    #[error(transparent)]
    NoProgram(#[from] NoProgram),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Access(#[from] NoAccess),
    #[error("{}", .0.chain())]
    Store(#[from] ReconcileError),
}

impl Provisioner {
    /// Starts drivers from `files`, and deploys the agents of `agents`. Acts as [`identity()`].
    /// Must be called inside a tokio runtime.
    pub fn new(
        context: &ManagementContext,
        files: Arc<DriverFiles>,
        agents: Arc<dyn AgentManifest>,
    ) -> Self {
        let client = context.clients.controller(&identity());
        Self {
            clusters: context.scope.reflectors.get(),
            drivers: context.scope.reflectors.get(),
            credentials: context.credentials.clone(),
            connections: context.connections.clone(),
            records: Records::new(&client),
            logs: ProvisioningLogs::new(client.clone()),
            reporter: Reporter::new(client),
            running: RunningWork::default(),
            failures: Mutex::default(),
            files,
            agents,
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else {
            self.failures.lock().remove(&key.name);
            self.logs.forget(&key.name);
            return Ok(Outcome::Done);
        };
        if cluster.driver_name().is_none() {
            return Ok(Outcome::Done);
        }
        if cluster.metadata.deletion_timestamp.is_some() {
            self.logs.load(&key.name).await?;
            return self.remove(&cluster).await;
        }
        if !condition::is_true(&cluster.status.conditions, BACKING_NAMESPACE_CREATED) {
            return Ok(Outcome::WaitingFor("the cluster's namespace".to_owned()));
        }
        self.logs.load(&key.name).await?;
        let stored = self.records.load(&key.name).await?;
        let config = self.config(&cluster).await?;
        match (next_step(stored.as_ref(), &config), stored) {
            (ProvisioningStep::Nothing, Some(stored)) => self.hand_over(&cluster, stored).await,
            (step, stored) => {
                self.provision(&cluster, stored.unwrap_or_default(), config, step).await
            }
        }
    }

    /// The options of the cluster, with their credentials.
    pub(super) async fn config(&self, cluster: &Cluster) -> Result<Value, ReconcileError> {
        let failed = |cause: &dyn std::fmt::Display| {
            ReconcileError::other("read the credentials of a cluster", cause)
        };
        let object = serde_json::to_value(cluster).map_err(|error| failed(&error))?;
        let object = self.credentials.with_values(Cluster::KIND, object).await;
        let mut object = object.map_err(|status| failed(&status.message))?;
        Ok(object["spec"][ENGINE_CONFIG].take())
    }

    /// The driver of a cluster, or why it cannot be used now.
    pub(super) fn driver(&self, cluster: &Cluster) -> Result<Arc<KontainerDriver>, String> {
        let name = cluster.driver_name().unwrap_or_default();
        let driver = self.drivers.named(name).ok_or_else(|| {
            format!("there is no cluster driver \"{name}\"; add it under the same name")
        })?;
        let summary = driver.summary();
        if !driver.spec.active {
            return Err(format!("the cluster driver \"{name}\" is not active; activate it"));
        }
        if summary.state != ACTIVE {
            let (state, why) = (summary.state, summary.message);
            return Err(format!("the cluster driver \"{name}\" is {state}: {why}"));
        }
        Ok(driver)
    }

    async fn provision(
        &self,
        cluster: &Cluster,
        stored: StoredCluster,
        config: Value,
        step: ProvisioningStep,
    ) -> Result<Outcome, ReconcileError> {
        let name = cluster.name_any();
        let before = cluster.status.provisioning.as_ref().map(|reported| reported.stage);
        let is_change = match step {
            ProvisioningStep::Update => before.is_some_and(ProvisioningStage::has_cluster),
            ProvisioningStep::PostCheck => before == Some(ProvisioningStage::Updating),
            ProvisioningStep::Create | ProvisioningStep::Nothing => false,
        };
        let (stage, failed, doing) = match is_change {
            true => (ProvisioningStage::Updating, ProvisioningStage::UpdateFailed, "changes"),
            false => (ProvisioningStage::Creating, ProvisioningStage::CreateFailed, "makes"),
        };
        if cluster.is_paused() {
            self.reporter.report(cluster, failed, &paused()).await?;
            return Ok(Outcome::WaitingFor("the end of the pause".to_owned()));
        }
        let driver = match self.driver(cluster) {
            Ok(driver) => driver,
            Err(why) => {
                self.reporter.report(cluster, failed, &why).await?;
                return Ok(Outcome::WaitingFor(why));
            }
        };
        if let Some(wait) = self.wait_after_failure(&name, &config) {
            return Ok(Outcome::RequeueAfter(wait));
        }
        let shown = &driver.status.display_name;
        let message = format!("the driver \"{shown}\" {doing} the cluster");
        if !self.reporter.begin(cluster, stage, &message).await? {
            return Ok(Outcome::WaitingFor("removal".to_owned()));
        }
        let Some(context) = self.work_if_idle(cluster, stage, message) else {
            return Ok(Outcome::RequeueAfter(BUSY_INTERVAL));
        };
        let worked = self.with_driver(&driver, context, async |run| {
            self.apply(run, cluster, &driver, stored, &config, step).await
        });
        match worked.await {
            Ok(stored) => {
                FINISHED.fetch_add(1, Ordering::Relaxed);
                self.failures.lock().remove(&name);
                self.hand_over(cluster, stored).await
            }
            Err(WorkError::Call(CallError::Cancelled(_))) => {
                self.reporter.report(cluster, failed, &paused()).await?;
                Ok(Outcome::WaitingFor("the end of the pause".to_owned()))
            }
            Err(error) => {
                let (message, wait) = self.note_failure(&name, &config, &error);
                self.reporter.report(cluster, failed, &message).await?;
                Ok(Outcome::RequeueAfter(wait))
            }
        }
    }

    /// What a run of the driver of a cluster needs; `None` while another one is under way.
    pub(super) fn work_if_idle<'a>(
        &'a self,
        cluster: &'a Cluster,
        stage: ProvisioningStage,
        message: String,
    ) -> Option<WorkContext<'a>> {
        let cancelled = self.running.begin(&cluster.name_any())?;
        let (logs, reporter) = (&self.logs, &self.reporter);
        let call_time_max = self.files.settings().call_time_max;
        Some(WorkContext { cluster, stage, message, logs, reporter, cancelled, call_time_max })
    }

    /// Starts the driver, works with it, and ends it. The log has all of it, also a failure.
    pub(super) async fn with_driver<T>(
        &self,
        driver: &KontainerDriver,
        context: WorkContext<'_>,
        work: impl AsyncFnOnce(&mut DriverRun<'_>) -> Result<T, WorkError>,
    ) -> Result<T, WorkError> {
        let cluster = context.cluster.name_any();
        let end = EndOfWork(&self.running, &cluster);
        // The watch may have said so before there was something to cancel.
        if self.clusters.named(&cluster).is_some_and(|now| is_to_be_cancelled(&now)) {
            context.cancelled.cancel();
        }
        let note = |text: &str| self.logs.add(&cluster, DROVER, text, &[]);
        note(&context.message);
        let worked = async {
            let program = self.files.program(driver).await?;
            let mut run = DriverRun::start(&program, &driver.status.display_name, context).await?;
            let worked = work(&mut run).await;
            run.end().await;
            worked
        };
        let worked = worked.await;
        drop(end);
        match &worked {
            Ok(_) => note("done"),
            Err(error) => note(&format!("failed: {error}")),
        }
        self.logs.store(&cluster).await;
        worked
    }

    async fn apply(
        &self,
        run: &mut DriverRun<'_>,
        cluster: &Cluster,
        driver: &KontainerDriver,
        mut stored: StoredCluster,
        config: &Value,
        step: ProvisioningStep,
    ) -> Result<StoredCluster, WorkError> {
        let options = options::of_cluster(config, cluster);
        let passwords = run.passwords().await;
        run.hide(options::secrets(&options, &passwords));
        match step {
            ProvisioningStep::Create => {
                self.create(run, cluster, &mut stored, config, options.clone()).await?
            }
            ProvisioningStep::Update => {
                self.update(run, cluster, &mut stored, config, options.clone()).await?
            }
            ProvisioningStep::PostCheck | ProvisioningStep::Nothing => {}
        }
        self.post_check(run, &mut stored).await?;
        stored.record.status = RecordStatus::Running;
        self.records.store(&cluster.name_any(), &stored).await?;
        self.describe(run, cluster, driver, &stored, options).await?;
        Ok(stored)
    }

    /// Has the driver create the cluster. What it returns is stored, also if it failed.
    pub(super) async fn create(
        &self,
        run: &mut DriverRun<'_>,
        cluster: &Cluster,
        stored: &mut StoredCluster,
        config: &Value,
        mut options: DriverOptions,
    ) -> Result<(), WorkError> {
        let name = cluster.name_any();
        let record = &mut stored.record;
        cluster.driver_name().unwrap_or_default().clone_into(&mut record.driver_name);
        record.name.clone_from(&name);
        let known = (!record.metadata.is_empty()).then(|| record.to_info());
        options::add_for_create(&mut options, &record.metadata);
        record.status = RecordStatus::Creating;
        self.records.store(&name, stored).await?;
        let request = CreateRequest { driver_options: Some(options), cluster_info: known };
        let mut client = run.client();
        let info = match run.call("Create", client.create(request)).await {
            Ok(info) => info,
            Err(CallError::Failed(why)) => {
                // It answered, so there is nothing to remember.
                stored.record.status = RecordStatus::Error;
                self.records.store(&name, stored).await?;
                return Err(CallError::Failed(why).into());
            }
            Err(error) => return Err(error.into()),
        };
        if info.create_error.is_empty() && info.metadata.is_empty() && info.endpoint.is_empty() {
            // What it made cannot be found by that. It is to find it by the name.
            let why = "the driver returned nothing of the cluster to Create";
            return Err(CallError::Failed(why.to_owned()).into());
        }
        let failure = run.redacted(&info.create_error);
        stored.record.take(info);
        if !failure.is_empty() {
            stored.record.status = RecordStatus::Error;
            self.records.store(&name, stored).await?;
            return Err(CallError::Failed(failure).into());
        }
        stored.record.status = RecordStatus::PostChecking;
        stored.applied = Some(config.clone());
        self.records.store(&name, stored).await?;
        Ok(())
    }

    async fn update(
        &self,
        run: &mut DriverRun<'_>,
        cluster: &Cluster,
        stored: &mut StoredCluster,
        config: &Value,
        mut options: DriverOptions,
    ) -> Result<(), WorkError> {
        let name = cluster.name_any();
        if let Some(applied) = &stored.applied {
            note_unchangeable(run, options::changed(applied, config)).await;
        }
        options::add_for_update(&mut options, &stored.record.metadata);
        stored.record.status = RecordStatus::Updating;
        self.records.store(&name, stored).await?;
        let request = UpdateRequest {
            cluster_info: Some(stored.record.to_info()),
            driver_options: Some(options),
        };
        let mut client = run.client();
        let info = run.call("Update", client.update(request)).await?;
        stored.record.take(info);
        stored.record.status = RecordStatus::PostChecking;
        stored.applied = Some(config.clone());
        self.records.store(&name, stored).await?;
        Ok(())
    }

    /// Has the driver return how the cluster is reached. Where it cannot make an account, Drover
    /// does, if it was given what that needs.
    pub(super) async fn post_check(
        &self,
        run: &mut DriverRun<'_>,
        stored: &mut StoredCluster,
    ) -> Result<(), WorkError> {
        let mut client = run.client();
        let info: ClusterInfo = stored.record.to_info();
        let record = &mut stored.record;
        match run.call("PostCheck", client.post_check(info)).await {
            Ok(info) => record.take(info),
            Err(CallError::Failed(why)) if access::has_administrator(record) => {
                run.note(&format!("PostCheck failed, and Drover makes the account: {why}"));
                record.service_account_token.clear();
            }
            Err(error) => return Err(error.into()),
        }
        if record.service_account_token.is_empty() {
            let exceptions = self.files.settings().confinement.exceptions();
            access::make_account(record, exceptions).await?;
        }
        access::endpoint(record)?;
        Ok(())
    }

    /// What follows a success, and does not undo it: an old account goes, and the cluster says what
    /// it offers.
    async fn describe(
        &self,
        run: &mut DriverRun<'_>,
        cluster: &Cluster,
        driver: &KontainerDriver,
        stored: &StoredCluster,
        options: DriverOptions,
    ) -> Result<(), WorkError> {
        let mut client = run.client();
        let call = client.remove_legacy_service_account(stored.record.to_info());
        match run.short_call("RemoveLegacyServiceAccount", call).await {
            Ok(_) | Err(CallError::NotSupported(_)) => {}
            Err(error) => run.note(&format!("the account of old drivers was not removed: {error}")),
        }
        let mut patch = StatusPatch::new().field("driver", driver.status.display_name.as_str());
        let mut client = run.client();
        let call = client.get_k8s_capabilities(options);
        match run.short_call("GetK8sCapabilities", call).await {
            Ok(found) => patch = patch.field("capabilities", capabilities(&found)),
            Err(CallError::NotSupported(_)) => {}
            Err(error) => run.note(&format!("what the cluster offers is not known: {error}")),
        }
        self.reporter.write(cluster, patch).await?;
        Ok(())
    }

    /// Lets the server into a cluster that its driver made, and the agent.
    async fn hand_over(
        &self,
        cluster: &Cluster,
        mut stored: StoredCluster,
    ) -> Result<Outcome, ReconcileError> {
        let name = cluster.name_any();
        let deployed = self.deploy_agent(cluster, &stored).await;
        let checksum = match deployed {
            Ok(checksum) => checksum,
            Err(why) if stored.agent_checksum.is_empty() => {
                let message = format!("the cluster was made, and waits for its agent: {why}");
                self.reporter.report(cluster, ProvisioningStage::Creating, &message).await?;
                return Ok(Outcome::RequeueAfter(REACH_INTERVAL));
            }
            Err(why) => {
                tracing::warn!(cluster = name, why, "the cluster's agent is not replaced");
                self.reporter.report(cluster, ProvisioningStage::Provisioned, "").await?;
                return Ok(Outcome::RequeueAfter(REPLACE_INTERVAL));
            }
        };
        if checksum != stored.agent_checksum {
            self.logs.add(&name, DROVER, "the agent is deployed", &[]);
            self.logs.store(&name).await;
            stored.agent_checksum = checksum;
            self.records.store(&name, &stored).await?;
        }
        self.reporter.report(cluster, ProvisioningStage::Provisioned, "").await?;
        Ok(Outcome::Done)
    }

    /// Applies the agent's objects, if they are not those that were applied. Returns their
    /// checksum.
    async fn deploy_agent(
        &self,
        cluster: &Cluster,
        stored: &StoredCluster,
    ) -> Result<String, String> {
        let name = cluster.name_any();
        let endpoint = access::endpoint(&stored.record).map_err(|error| error.to_string())?;
        let set = self.connections.set_direct(&name, endpoint);
        set.map_err(|error| error.to_string())?;
        let objects = self.agents.objects(cluster).await?;
        let checksum = access::checksum(&objects);
        if checksum != stored.agent_checksum {
            let client = self.connections.direct(&name);
            let client = client.ok_or("its API has no address")?;
            let applied = access::apply(&client, &objects).await;
            applied.map_err(|error| ReconcileError::other("apply it", error).chain())?;
        }
        Ok(checksum)
    }

    /// How long to wait with the same options after they failed.
    pub(super) fn wait_after_failure(&self, cluster: &str, config: &Value) -> Option<Duration> {
        let failures = self.failures.lock();
        let found = failures.get(cluster).filter(|found| found.config == *config)?;
        found.delay().checked_sub(found.last.elapsed()).filter(|wait| !wait.is_zero())
    }

    /// Counts a failure. Returns what to say, and how long to wait.
    pub(super) fn note_failure(
        &self,
        cluster: &str,
        config: &Value,
        error: &WorkError,
    ) -> (String, Duration) {
        FAILED.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        let new = || Failures { config: config.clone(), count: 0, last: Instant::now() };
        let found = failures.entry(cluster.to_owned()).or_insert_with(new);
        if found.config != *config {
            *found = new();
        }
        found.count += 1;
        found.last = Instant::now();
        let wait = found.delay();
        let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
        let message = format!("{error}; tried again at {}", at.strftime("%H:%M:%S UTC"));
        tracing::warn!(cluster, %error, "a cluster driver failed");
        (message, wait)
    }
}

fn paused() -> String {
    format!(
        "the driver is paused by the annotation {}=true; remove it to go on: drover cluster resume",
        keys::PAUSED
    )
}

/// What a cluster offers, as the API shows it.
fn capabilities(found: &K8sCapabilities) -> Value {
    let mut shown = json!({
        "nodePoolScalingSupported": found.node_pool_scaling_supported,
        "nodePortRange": found.node_port_range,
        "pspEnabled": false,
        "taintSupport": true,
    });
    let balancer = found.l4_load_balancer.clone().unwrap_or_default();
    shown["loadBalancerCapabilities"] = json!({
        "enabled": balancer.enabled,
        "provider": balancer.provider,
        "protocolsSupported": balancer.protocols_supported,
        "healthCheckSupported": balancer.health_check_supported,
    });
    let ingresses = found.ingress_controllers.iter().map(|ingress| {
        json!({
            "ingressProvider": ingress.ingress_provider,
            "customDefaultBackend": ingress.custom_default_backend,
        })
    });
    shown["ingressCapabilities"] = ingresses.collect();
    shown
}

/// Says in the log which of these options the driver may leave as they are: drivers ignore what
/// they cannot change.
async fn note_unchangeable(run: &mut DriverRun<'_>, changed: BTreeSet<&str>) {
    let changeable = run.changeable().await;
    let others = changed.into_iter().filter(|name| !changeable.iter().any(|one| one == name));
    let others: Vec<&str> = others.collect();
    if !changeable.is_empty() && !others.is_empty() {
        run.note(&format!(
            "the driver does not name {} among the options that can change, so the cluster may stay as it was in that",
            others.join(", ")
        ));
    }
}

impl Reconcile for Provisioner {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
