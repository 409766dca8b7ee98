//! Checks whether a cluster driver keeps to the contract, whatever it is written in.
//!
//! [`check`] runs what costs nothing at any provider. With options for a cluster it makes one,
//! changes it, and removes it ([`cluster`]).

mod cluster;
mod flags;

use std::future::Future;
use std::time::{Duration, Instant};

use driver_contract::types::{
    Capabilities, ClusterInfo, CreateRequest, DriverOptions, Empty, SaveEtcdSnapshotRequest,
};
use driver_contract::{Capability, parse_options};
use driver_host::{DriverProgram, RunningDriver};
use tonic::{Code, Response, Status};

/// The name of the cluster that is made and removed.
pub const CLUSTER_NAME: &str = "c-conformance";
/// Of a call that needs no cluster.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Numbers that have a meaning as capabilities.
const CAPABILITIES: std::ops::RangeInclusive<i64> =
    Capability::GetVersion as i64..=Capability::EtcdBackup as i64;

/// What a call returned, if it does so in time.
async fn within<T>(
    time_max: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    match tokio::time::timeout(time_max, call).await {
        Ok(response) => response.map(Response::into_inner),
        Err(_) => {
            let text = format!("no response within {} s", time_max.as_secs());
            Err(Status::deadline_exceeded(text))
        }
    }
}

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// As the contract says; what was seen.
    Passed(String),
    /// Managers get along with it, users may not.
    Warning(String),
    /// Managers fail with it.
    Failed(String),
}

/// Part of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// How it ended.
    pub outcome: CheckOutcome,
}

/// All checks of a driver, in the order in which they ran.
#[derive(Clone, Debug, Default)]
pub struct ConformanceReport {
    /// The checks.
    pub checks: Vec<Check>,
    /// The end of the log of each process of the driver.
    pub log: Vec<String>,
}

impl ConformanceReport {
    /// Whether no check failed.
    pub fn is_conformant(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.outcome, CheckOutcome::Failed(_)))
    }

    fn add(&mut self, name: &'static str, outcome: CheckOutcome) {
        self.checks.push(Check { name, outcome });
    }
}

/// Checks the driver. `options`: names and texts of the options with which it makes a cluster,
/// which is removed again; none makes no cluster.
pub async fn check(
    program: &DriverProgram,
    options: Option<&[(String, String)]>,
) -> ConformanceReport {
    let mut report = ConformanceReport::default();
    let started = Instant::now();
    let mut driver = match RunningDriver::start(program).await {
        Ok(driver) => driver,
        Err(error) => {
            report.add("serves at its port", CheckOutcome::Failed(error.to_string()));
            return report;
        }
    };
    let took = format!("after {} ms", started.elapsed().as_millis());
    report.add("serves at its port", CheckOutcome::Passed(took));
    report.add("several run at once", second_driver(program).await);
    let flags = flags::check(&driver, &mut report).await;
    let capabilities = capabilities(&driver, &mut report).await;
    optional_calls(&driver, &capabilities, &mut report).await;
    refusals(&driver, &mut report).await;
    match options.map(|options| parse_options(&flags, options)) {
        None => {}
        Some(Ok(options)) => cluster::check(program, &options, &capabilities, &mut report).await,
        Some(Err(error)) => report.add("Create", CheckOutcome::Failed(error.to_string())),
    }
    let survived = if driver.is_running().await {
        CheckOutcome::Passed("after all calls".to_owned())
    } else {
        CheckOutcome::Failed("the process ended during a call".to_owned())
    };
    report.add("keeps running", survived);
    // It was started before those of the cluster.
    report.log.splice(0..0, driver.log().lines());
    driver.end().await;
    report
}

/// Managers run one process for each operation.
async fn second_driver(program: &DriverProgram) -> CheckOutcome {
    match RunningDriver::start(program).await {
        Ok(second) => {
            second.end().await;
            CheckOutcome::Passed("two".to_owned())
        }
        Err(error) => CheckOutcome::Failed(format!("beside another one: {error}")),
    }
}

async fn capabilities(driver: &RunningDriver, report: &mut ConformanceReport) -> Capabilities {
    let mut client = driver.client();
    let (found, outcome) = match within(CALL_TIME_MAX, client.get_capabilities(Empty {})).await {
        Ok(found) => {
            let unknown: Vec<String> = found
                .capabilities
                .keys()
                .filter(|key| !CAPABILITIES.contains(key))
                .map(ToString::to_string)
                .collect();
            let outcome = if unknown.is_empty() {
                CheckOutcome::Passed(format!("named: {}", found.capabilities.len()))
            } else {
                let list = unknown.join(", ");
                CheckOutcome::Warning(format!("numbers without a meaning: {list}"))
            };
            (found, outcome)
        }
        Err(status) => (Capabilities::default(), CheckOutcome::Failed(status.to_string())),
    };
    report.add("GetCapabilities", outcome);
    found
}

/// Calls that a driver may leave out, and how it has to do so.
async fn optional_calls(
    driver: &RunningDriver,
    capabilities: &Capabilities,
    report: &mut ConformanceReport,
) {
    let mut client = driver.client();
    let call = client.get_k8s_capabilities(DriverOptions::default());
    let response = within(CALL_TIME_MAX, call).await;
    report.add("GetK8sCapabilities", optional(response.map(|_| ())));
    let call = client.remove_legacy_service_account(ClusterInfo::default());
    let response = within(CALL_TIME_MAX, call).await;
    report.add("RemoveLegacyServiceAccount", optional(response.map(|_| ())));
    if !capabilities.has(Capability::EtcdBackup) {
        let call = client.etcd_save(SaveEtcdSnapshotRequest::default());
        let outcome = match within(CALL_TIME_MAX, call).await {
            Ok(_) => CheckOutcome::Failed(
                "succeeds without the capability: a snapshot would be believed in".to_owned(),
            ),
            Err(status) if is_nil_message(&status) => CheckOutcome::Warning(
                "returns neither a message nor an error: return an error with a text".to_owned(),
            ),
            Err(status) => CheckOutcome::Passed(format!("refused: {}", status.message())),
        };
        report.add("ETCDSave", outcome);
    }
}

/// A Go driver that returns neither a message nor an error, on a grpc-go of 2019. Newer ones send
/// an empty message.
fn is_nil_message(status: &Status) -> bool {
    status.code() == Code::Internal
}

fn optional(response: Result<(), Status>) -> CheckOutcome {
    match response {
        Ok(()) => CheckOutcome::Passed("responds".to_owned()),
        Err(status) if status.code() == Code::Unimplemented => {
            CheckOutcome::Passed("left out".to_owned())
        }
        Err(status) if is_nil_message(&status) => CheckOutcome::Warning(
            "returns neither a message nor an error: return an empty message".to_owned(),
        ),
        Err(status) => CheckOutcome::Warning(format!(
            "fails: {}. Managers of the original fail with it; return an empty message",
            status.message()
        )),
    }
}

/// Requests that cannot succeed have to fail with a reason, and leave the driver running.
async fn refusals(driver: &RunningDriver, report: &mut ConformanceReport) {
    let mut client = driver.client();
    // Managers always send options, and drivers in Go end where there are none at all.
    let driver_options = Some(DriverOptions::default());
    let call = client.create(CreateRequest { driver_options, cluster_info: None });
    let outcome = match within(CALL_TIME_MAX, call).await {
        Ok(info) => match info.create_error {
            text if text.is_empty() => {
                CheckOutcome::Warning("a cluster without a name or options was made".to_owned())
            }
            text => CheckOutcome::Passed(text),
        },
        Err(status) => reason(&status),
    };
    report.add("Create without options is refused", outcome);
    let call = client.post_check(ClusterInfo::default());
    let outcome = match within(CALL_TIME_MAX, call).await {
        Ok(_) => CheckOutcome::Warning("a cluster that does not exist passes it".to_owned()),
        Err(status) => reason(&status),
    };
    report.add("PostCheck of no cluster is refused", outcome);
}

fn reason(status: &Status) -> CheckOutcome {
    // A status of the driver has no source; the one of a connection that broke has.
    let is_broken = std::error::Error::source(status).is_some();
    match status.code() {
        _ if is_broken => CheckOutcome::Failed(format!("the driver crashed: {}", status.message())),
        Code::Unavailable | Code::Internal | Code::Cancelled => {
            CheckOutcome::Failed(format!("the driver crashed: {}", status.message()))
        }
        Code::DeadlineExceeded => CheckOutcome::Failed(status.message().to_owned()),
        _ if status.message().is_empty() => {
            CheckOutcome::Warning("fails without a text for users".to_owned())
        }
        _ => CheckOutcome::Passed(status.message().to_owned()),
    }
}
