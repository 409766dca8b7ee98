//! Keeps true: a driver that is active is in the data folder, and its options are types of the API;
//! of one that is not active there are no types. Of two with the same name, the types belong to the
//! one that was activated first.
//!
//! Owns all conditions of KontainerDriver. Watches drivers (own key) and the
//! types that are deleted. Each server of an
//! installation has the program in its own data folder, and fetches it when it is not there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api_management::kind::Kind as _;
use api_management::kontainer_driver::KontainerDriverSpec;
use api_management::{DynamicSchema, KontainerDriver};
use controller::{
    Attempt, Change, ConditionState, Key, Limits, Outcome, OwnedCondition, Reconcile,
    ReconcileError, Reflector, Runner, StatusPatch, StatusTarget, Whole, ensure,
};
use driver_contract::types::{Empty, Flag};
use driver_host::RunningDriver;
use feature_kit::ownership::is_owned_by;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, CredentialStore, ManagementContext};
use futures::future::BoxFuture;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;

use super::built_in::{self, BuiltInDriver};
use super::download::{self, DownloadError, DownloadLimits, Downloaded};
use super::files::{DriverFiles, NoProgram};
use super::program::{Installed, ProgramError};
use super::schema;

const CONTROLLER: &str = "cluster-drivers";
const ON_DISK: OwnedCondition = OwnedCondition::of("KontainerDriver", "Downloaded");
const READY_TO_RUN: OwnedCondition = OwnedCondition::of("KontainerDriver", "Installed");
const ACTIVE: OwnedCondition = OwnedCondition::of("KontainerDriver", "Active");
const INACTIVE: OwnedCondition = OwnedCondition::of("KontainerDriver", "Inactive");
/// Until a download that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(120);
/// Of a driver that was started, to name its options.
const OPTIONS_TIME_MAX: Duration = Duration::from_secs(30);
/// Longer than a download may take.
const RUN_TIME_MAX: Duration = Duration::from_secs(1200);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        CONTROLLER,
        vec![
            ours(&["kontainerdrivers"], &["get", "create"]),
            ours(&["kontainerdrivers/status"], &["patch"]),
            ours(&["dynamicschemas"], &["get", "create", "update", "delete"]),
        ],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client, files: Arc<DriverFiles>) {
    files.remove_unfinished();
    driver_host::remove_abandoned();
    let scope = &context.scope;
    let drivers = scope.reflectors.get::<Whole<KontainerDriver>>();
    let credentials = context.credentials.clone();
    let failures = Mutex::default();
    let reconciler = Drivers { client, drivers: drivers.clone(), credentials, files, failures };
    // Few at a time: each holds a file, and runs a program.
    let limits = Limits { running_max: 4, running_per_lane_max: 1, run_time_max: RUN_TIME_MAX };
    drivers.synced().await;
    let built_in = &reconciler.files.settings().built_in;
    if let Err(error) = built_in::create_missing(&reconciler.client, built_in).await {
        tracing::error!(%error, "the drivers of Drover were not created; a restart does it");
    }
    // What was replaced, or removed while the server was down.
    reconciler.remove_unused();
    let runner = Runner::with_limits(Arc::new(reconciler), limits);
    runner.watch_own(&drivers);
    let schemas = scope.reflectors.get::<Whole<DynamicSchema>>();
    runner.watch(&schemas, move |change| namesakes(&drivers, change));
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

/// Why a program is not in the data folder.
#[derive(Debug, thiserror::Error)]
enum FetchFailure {
    #[error(transparent)]
    Download(DownloadError),
    #[error(transparent)]
    Program(ProgramError),
}

struct Drivers {
    client: Client,
    drivers: Arc<Reflector<Whole<KontainerDriver>>>,
    credentials: Arc<CredentialStore>,
    files: Arc<DriverFiles>,
    /// Fetches that failed, by driver: the spec, and when. What they report changes the object,
    /// which must not begin the next one.
    failures: Mutex<HashMap<String, (KontainerDriverSpec, Instant)>>,
}

impl Drivers {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(driver) = self.drivers.get(key) else {
            // Its types are deleted by their owner references.
            self.failures.lock().remove(&key.name);
            self.remove_unused();
            return Ok(Outcome::Done);
        };
        if driver.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        if driver.spec.active {
            self.activate(&driver).await
        } else {
            self.deactivate(&driver).await
        }
    }

    async fn deactivate(&self, driver: &KontainerDriver) -> Result<Outcome, ReconcileError> {
        self.failures.lock().remove(&driver.name_any());
        self.remove_types(driver).await?;
        let patch =
            StatusPatch::new().without_condition(ACTIVE).condition(INACTIVE, ConditionState::yes());
        self.write(driver, patch).await?;
        Ok(Outcome::Done)
    }

    async fn remove_types(&self, driver: &KontainerDriver) -> Result<(), ReconcileError> {
        let Some(config_type) = driver.config_type() else { return Ok(()) };
        let schemas: Api<DynamicSchema> = Api::all(self.client.clone());
        for name in schema::names(&config_type) {
            let found =
                schemas.get_opt(&name).await.attempt(|| format!("read the type \"{name}\""))?;
            if found.is_some_and(|found| is_type_of(&found, driver)) {
                ensure::absent(&schemas, &name).await?;
            }
        }
        Ok(())
    }

    async fn activate(&self, driver: &KontainerDriver) -> Result<Outcome, ReconcileError> {
        if let Some(wait) = self.wait_after_failure(driver) {
            return Ok(Outcome::RequeueAfter(wait));
        }
        let name = driver.name_any();
        let driver = match self.fetched(driver).await? {
            Ok(driver) => {
                self.failures.lock().remove(&name);
                driver
            }
            Err(message) => {
                tracing::warn!(driver = name, message, "driver was not fetched");
                let failure = (driver.spec.clone(), Instant::now());
                self.failures.lock().insert(name, failure);
                return Ok(Outcome::RequeueAfter(RETRY_INTERVAL));
            }
        };
        let (state, outcome) = match self.make_types(&driver).await? {
            Ok(remark) => {
                let state = ConditionState { message: remark, ..ConditionState::yes() };
                (state, Outcome::Done)
            }
            Err(message) => {
                let state = ConditionState::no("Failed", message.clone());
                (state, Outcome::Terminal(message))
            }
        };
        let patch = StatusPatch::new().without_condition(INACTIVE).condition(ACTIVE, state);
        self.write(&driver, patch).await?;
        Ok(outcome)
    }

    fn wait_after_failure(&self, driver: &KontainerDriver) -> Option<Duration> {
        let failures = self.failures.lock();
        let (spec, at) = failures.get(&driver.name_any())?;
        let wait = RETRY_INTERVAL.checked_sub(at.elapsed())?;
        (*spec == driver.spec).then_some(wait)
    }

    /// The driver with its program in the data folder; or the message of the condition that says
    /// why it is not.
    async fn fetched(
        &self,
        driver: &KontainerDriver,
    ) -> Result<Result<KontainerDriver, String>, ReconcileError> {
        if driver.spec.built_in {
            return self.named(driver).await;
        }
        let status = &driver.status;
        let is_same = status.actual_url == driver.spec.url;
        if driver.is_current() && self.files.has(driver) {
            // Also after a change that failed was taken back.
            let patch = installed(driver, &status.installed_checksum);
            self.write(driver, patch).await?;
            return Ok(Ok(driver.clone()));
        }
        let unknown = || ConditionState::unknown("Working", "");
        let patch = StatusPatch::new()
            .without_condition(INACTIVE)
            .condition(ON_DISK, unknown())
            .condition(READY_TO_RUN, unknown());
        self.write(driver, patch).await?;
        // Without a checksum, what came first under this URL is what is expected.
        let pinned = if is_same { status.installed_checksum.as_str() } else { "" };
        let expected = Some(driver.spec.checksum.as_str()).filter(|sum| !sum.is_empty());
        let found = self.fetch(driver, expected.unwrap_or(pinned)).await?;
        let (downloaded, Installed { name, file }) = match found {
            Ok(found) => found,
            Err(failure) => return self.report_failure(driver, failure).await.map(Err),
        };
        let patch = installed(driver, &downloaded.sha256)
            .field("actualUrl", driver.spec.url.as_str())
            .field("executablePath", file.display().to_string())
            .field("installedChecksum", downloaded.sha256.as_str())
            .field("displayName", name.as_str());
        self.write(driver, patch).await?;
        let id = driver.name_any();
        tracing::info!(driver = id, name, sha256 = downloaded.sha256, "driver installed");
        if status.display_name != name {
            self.remove_types(driver).await?;
        }
        let mut driver = driver.clone();
        driver.status.display_name = name;
        driver.status.installed_checksum = downloaded.sha256;
        Ok(Ok(driver))
    }

    /// A driver that is part of Drover, with its name: there is nothing to fetch.
    async fn named(
        &self,
        driver: &KontainerDriver,
    ) -> Result<Result<KontainerDriver, String>, ReconcileError> {
        let mut driver = driver.clone();
        let Some(found) = BuiltInDriver::of(&self.files.settings().built_in, &driver) else {
            let message = NoProgram::NotBuiltIn(driver.name_any()).to_string();
            let state = ConditionState::no("Failed", message.clone());
            self.write(&driver, StatusPatch::new().condition(READY_TO_RUN, state)).await?;
            return Ok(Err(message));
        };
        if driver.status.display_name != found.name {
            let patch = StatusPatch::new()
                .field("displayName", found.name)
                .condition(ON_DISK, ConditionState::yes())
                .condition(READY_TO_RUN, ConditionState::yes());
            self.write(&driver, patch).await?;
            found.name.clone_into(&mut driver.status.display_name);
        }
        Ok(Ok(driver))
    }

    /// Downloads a program and installs it.
    async fn fetch(
        &self,
        driver: &KontainerDriver,
        expected: &str,
    ) -> Result<Result<(Downloaded, Installed), FetchFailure>, ReconcileError> {
        let url = self.url(driver).await?;
        let failed = |cause: &dyn std::fmt::Display| {
            ReconcileError::other("make a folder for a driver", cause)
        };
        let folder = self.files.unfinished().map_err(|error| failed(&error))?;
        let file = folder.path().join("download");
        let exceptions = self.files.settings().confinement.exceptions();
        let limits = DownloadLimits::default();
        let fetched = download::fetch(&url, expected, &file, exceptions, &limits).await;
        let downloaded = match fetched {
            Ok(downloaded) => downloaded,
            Err(error) => return Ok(Err(FetchFailure::Download(error))),
        };
        let (files, kept) = (self.files.clone(), downloaded.clone());
        let path = folder.path().to_owned();
        let install = tokio::task::spawn_blocking(move || files.install(&path, &file, &kept));
        let installed = install.await.map_err(|error| failed(&error))?;
        Ok(installed.map(|installed| (downloaded, installed)).map_err(FetchFailure::Program))
    }

    async fn url(&self, driver: &KontainerDriver) -> Result<String, ReconcileError> {
        let failed = |cause: &dyn std::fmt::Display| {
            ReconcileError::other("read the credentials of a driver", cause)
        };
        let object = serde_json::to_value(driver).map_err(|error| failed(&error))?;
        let object = self.credentials.with_values(KontainerDriver::KIND, object).await;
        let object = object.map_err(|status| failed(&status))?;
        Ok(object["spec"]["url"].as_str().unwrap_or_default().to_owned())
    }

    /// Writes the condition that a failure concerns. Returns its message.
    async fn report_failure(
        &self,
        driver: &KontainerDriver,
        failure: FetchFailure,
    ) -> Result<String, ReconcileError> {
        let message = failure.to_string();
        let state = ConditionState::no("Failed", message.clone());
        let patch = match failure {
            FetchFailure::Download(_) => StatusPatch::new().condition(ON_DISK, state),
            FetchFailure::Program(_) => StatusPatch::new()
                .condition(ON_DISK, ConditionState::yes())
                .condition(READY_TO_RUN, state),
        };
        self.write(driver, patch).await?;
        Ok(message)
    }

    /// Makes the types of a driver's options. Returns a remark for users, or why there are none.
    async fn make_types(
        &self,
        driver: &KontainerDriver,
    ) -> Result<Result<String, String>, ReconcileError> {
        let Some(config_type) = driver.config_type() else { return Ok(Ok(String::new())) };
        let options = match BuiltInDriver::of(&self.files.settings().built_in, driver) {
            Some(built_in) => built_in.options.options.clone(),
            None => match self.read_options(driver).await? {
                Ok(options) => options,
                Err(message) => return Ok(Err(message)),
            },
        };
        let schemas = match schema::schemas(driver, &config_type, &options) {
            Ok(schemas) => schemas,
            Err(error) => return Ok(Err(error.to_string())),
        };
        for schema in schemas {
            if let Some(owner) = self.put(driver, schema).await? {
                return Ok(Err(format!(
                    "the driver \"{owner}\" is active under the name \"{}\", too: change the \
                     address of that one for another version of the program, or deactivate it",
                    driver.status.display_name
                )));
            }
        }
        let remark = match self.files.unconfined().await {
            Some(_) if !driver.spec.built_in => "it runs unconfined, with the rights of the server",
            _ => "",
        };
        Ok(Ok(remark.to_owned()))
    }

    /// Starts the driver and reads its options; or why they cannot be read.
    async fn read_options(
        &self,
        driver: &KontainerDriver,
    ) -> Result<Result<HashMap<String, Flag>, String>, ReconcileError> {
        let program = match self.files.program(driver).await {
            Ok(program) => program,
            Err(error @ NoProgram::Missing) => {
                return Err(ReconcileError::other("start the driver", error));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let running = match RunningDriver::start(&program).await {
            Ok(running) => running,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut client = running.client();
        let options = client.get_driver_create_options(Empty {});
        let options = match tokio::time::timeout(OPTIONS_TIME_MAX, options).await {
            Ok(Ok(options)) => options.into_inner().options,
            Ok(Err(status)) => {
                return Ok(Err(format!(
                    "the driver does not name its options: {}",
                    status.message()
                )));
            }
            Err(_) => {
                let limit = OPTIONS_TIME_MAX.as_secs();
                return Ok(Err(format!("the driver did not name its options within {limit} s")));
            }
        };
        running.end().await;
        Ok(Ok(options))
    }

    /// Creates the object, or replaces its spec: fields of options that are gone go, too. Returns
    /// the owner of the object if that is another driver.
    async fn put(
        &self,
        driver: &KontainerDriver,
        schema: DynamicSchema,
    ) -> Result<Option<String>, ReconcileError> {
        let schemas: Api<DynamicSchema> = Api::all(self.client.clone());
        let name = schema.name_any();
        let attempt = || format!("write the type \"{name}\"");
        match schemas.get_opt(&name).await.attempt(attempt)? {
            None => {
                ensure::created(&schemas, &schema).await?;
            }
            Some(stored) if !is_type_of(&stored, driver) => {
                let owner = stored.metadata.owner_references.unwrap_or_default().pop();
                return Ok(Some(owner.map(|owner| owner.name).unwrap_or_default()));
            }
            Some(stored) if stored.spec == schema.spec => {}
            Some(mut stored) => {
                stored.spec = schema.spec;
                schemas.replace(&name, &PostParams::default(), &stored).await.attempt(attempt)?;
            }
        }
        Ok(None)
    }

    fn remove_unused(&self) {
        let drivers = self.drivers.all();
        let drivers = drivers.iter().map(|(_, driver)| driver.as_ref());
        if let Err(error) = self.files.remove_unused(drivers) {
            tracing::warn!(%error, "programs of drivers without an object were not removed");
        }
    }

    async fn write(
        &self,
        driver: &KontainerDriver,
        patch: StatusPatch,
    ) -> Result<(), ReconcileError> {
        let target = StatusTarget::of::<KontainerDriver>("", &driver.name_any());
        patch.write(&self.client, &target).await.map(drop)
    }
}

/// The conditions of a driver whose program is in the data folder.
fn installed(driver: &KontainerDriver, sha256: &str) -> StatusPatch {
    let remark = match driver.spec.checksum.is_empty() {
        true => format!("no checksum was given; what came first is used: SHA-256 {sha256}"),
        false => String::new(),
    };
    let downloaded = ConditionState { message: remark, ..ConditionState::yes() };
    StatusPatch::new().condition(ON_DISK, downloaded).condition(READY_TO_RUN, ConditionState::yes())
}

fn is_type_of(schema: &DynamicSchema, driver: &KontainerDriver) -> bool {
    is_owned_by(&schema.metadata, driver.metadata.uid.as_deref())
}

/// The drivers of the name that a type had which was deleted: one of them can have it now.
fn namesakes(
    drivers: &Reflector<Whole<KontainerDriver>>,
    change: &Change<'_, DynamicSchema>,
) -> Vec<Key> {
    let mut keys = Vec::new();
    if let Change::Deleted { .. } = change
        && let Some(name) = schema::driver_of(change.object())
    {
        drivers.for_each(|key, driver| {
            if driver.status.display_name == name {
                keys.push(key.clone());
            }
        });
    }
    keys
}

impl Reconcile for Drivers {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
