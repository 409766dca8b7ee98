//! One run of a driver for one cluster: it is started, called, and ended. Each call has a deadline,
//! can be cancelled, and shows in the log of the cluster what the driver writes meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, ProvisioningStage};
use driver_contract::DriverClient;
use driver_contract::types::Empty;
use driver_host::{DriverProgram, RunningDriver, StartError};
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Response, Status};

use super::log::{ProvisioningLogs, redact};
use super::report::Reporter;

/// Who says a line of the log that is not the driver's.
pub const DROVER: &str = "drover";
/// Interval at which what the driver wrote comes into the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which users see the last line in the state of the cluster.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Calls that read something small.
const SHORT_CALL_TIME_MAX: Duration = Duration::from_secs(120);

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The driver does not have this method.
    #[error("the driver does not support {0}")]
    NotSupported(&'static str),
    /// It says why.
    #[error("{0}")]
    Failed(String),
    /// It ended, and what it did is not known.
    #[error("{0}")]
    Ended(String),
    /// It did not answer in time, and was ended.
    #[error(
        "the driver did not answer to {call} within {} s and was ended; --driver-call-time-max of \
         the server gives drivers more time",
        limit.as_secs()
    )]
    TimedOut {
        /// The method.
        call: &'static str,
        /// The deadline.
        limit: Duration,
    },
    /// Somebody paused the cluster, or no longer wants to wait.
    #[error("cancelled in the middle of {0}")]
    Cancelled(&'static str),
}

/// What a run needs beside the program.
pub struct WorkContext<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What the driver is started for.
    pub stage: ProvisioningStage,
    /// What users see while the driver says nothing.
    pub message: String,
    /// Its log.
    pub logs: &'a ProvisioningLogs,
    /// Shows progress.
    pub reporter: &'a Reporter,
    /// Ends the run.
    pub cancelled: CancellationToken,
    /// Of one long call.
    pub call_time_max: Duration,
}

/// A driver that runs for one cluster.
pub struct DriverRun<'a> {
    driver: RunningDriver,
    name: String,
    context: WorkContext<'a>,
    secrets: Vec<String>,
    /// Lines of the driver's log that are in the cluster's.
    lines_seen: u64,
    reported_at: Instant,
    last_line: String,
}

impl<'a> DriverRun<'a> {
    /// Starts the driver. `name`: how it is called in the log.
    ///
    /// # Errors
    /// It does not serve.
    pub async fn start(
        program: &DriverProgram,
        name: &str,
        context: WorkContext<'a>,
    ) -> Result<Self, StartError> {
        let driver = RunningDriver::start(program).await?;
        Ok(Self {
            driver,
            name: name.to_owned(),
            context,
            secrets: Vec::new(),
            lines_seen: 0,
            reported_at: Instant::now(),
            last_line: String::new(),
        })
    }

    /// From here on these texts are not shown.
    pub fn hide(&mut self, secrets: Vec<String>) {
        self.secrets = secrets;
    }

    /// The fields that the driver declares as passwords. A driver that declares nothing has none.
    pub async fn passwords(&mut self) -> Vec<String> {
        let mut client = self.client();
        let call = async move { client.get_driver_create_options(Empty {}).await };
        let Ok(flags) = self.short_call("GetDriverCreateOptions", call).await else {
            return Vec::new();
        };
        let passwords = flags.options.into_iter().filter(|(_, flag)| flag.password);
        passwords.filter_map(|(name, _)| driver_contract::field_name(&name).ok()).collect()
    }

    /// The fields that the driver declares as those that can change. Empty if it declares none.
    pub async fn changeable(&mut self) -> Vec<String> {
        let mut client = self.client();
        let call = async move { client.get_driver_update_options(Empty {}).await };
        let Ok(flags) = self.short_call("GetDriverUpdateOptions", call).await else {
            return Vec::new();
        };
        let names = flags.options.into_keys();
        names.filter_map(|name| driver_contract::field_name(&name).ok()).collect()
    }

    /// A client of the driver, for a future that goes to [`Self::call`].
    pub fn client(&self) -> DriverClient {
        self.driver.client()
    }

    /// The text without secrets.
    pub fn redacted(&self, text: &str) -> String {
        redact(text, &self.secrets)
    }

    /// Adds a line of Drover's own to the log.
    pub fn note(&self, text: &str) {
        let cluster = self.context.cluster.name_any();
        self.context.logs.add(&cluster, DROVER, text, &self.secrets);
    }

    /// Awaits a call that may take as long as the cloud does.
    ///
    /// # Errors
    /// See [`CallError`]; the texts have no secrets.
    pub async fn call<T>(
        &mut self,
        name: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        self.note(name);
        self.bounded(name, self.context.call_time_max, call).await
    }

    /// Awaits a call that reads something.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn short_call<T>(
        &mut self,
        name: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        self.bounded(name, SHORT_CALL_TIME_MAX.min(self.context.call_time_max), call).await
    }

    async fn bounded<T>(
        &mut self,
        name: &'static str,
        limit: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        let deadline = Instant::now() + limit;
        let cancelled = self.context.cancelled.clone();
        let mut looks = interval(LOG_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(call);
        let answered = loop {
            tokio::select! {
                answered = &mut call => break answered,
                () = cancelled.cancelled() => return Err(CallError::Cancelled(name)),
                () = tokio::time::sleep_until(deadline) => {
                    return Err(CallError::TimedOut { call: name, limit });
                }
                _ = looks.tick() => self.follow().await,
            }
        };
        self.follow().await;
        match answered {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(self.failure(name, &status).await),
        }
    }

    async fn failure(&mut self, name: &'static str, status: &Status) -> CallError {
        if status.code() == Code::Unimplemented {
            return CallError::NotSupported(name);
        }
        if !self.driver.is_running().await {
            self.follow().await;
            let last = self.last_line.as_str();
            let last = if last.is_empty() { "nothing" } else { last };
            let text = format!("the driver ended in the middle of {name}; it wrote last: {last}");
            return CallError::Ended(redact(&text, &self.secrets));
        }
        let message = status.message();
        let text = match status.code() {
            // What drivers return themselves.
            Code::Unknown if !message.is_empty() => message.to_owned(),
            code => format!("the driver answered to {name} with {code:?}: {message}"),
        };
        CallError::Failed(redact(&text, &self.secrets))
    }

    /// Takes what the driver wrote into the log of the cluster, and shows the last line of it.
    async fn follow(&mut self) {
        let cluster = self.context.cluster.name_any();
        let (lines, seen) = self.driver.log().since(self.lines_seen);
        let dropped = seen - self.lines_seen - lines.len() as u64;
        self.lines_seen = seen;
        if dropped > 0 {
            self.note(&format!("the driver wrote {dropped} more lines, too fast to store them"));
        }
        for line in &lines {
            self.context.logs.add(&cluster, &self.name, line, &self.secrets);
        }
        self.context.logs.store(&cluster).await;
        let Some(last) = lines.into_iter().rfind(|line| !line.is_empty()) else { return };
        self.last_line = redact(&last, &self.secrets);
        if self.reported_at.elapsed() >= PROGRESS_INTERVAL {
            self.reported_at = Instant::now();
            let message = format!("{}: {}", self.context.message, self.last_line);
            let WorkContext { reporter, cluster, stage, .. } = &self.context;
            if let Err(error) = reporter.report(cluster, *stage, &message).await {
                tracing::warn!(error = error.chain(), "progress of a driver is not shown");
            }
        }
    }

    /// Ends the driver, and completes the log.
    pub async fn end(mut self) {
        self.follow().await;
        self.driver.end().await;
    }
}

/// Runs of this server, by cluster: one at a time, which can be cancelled.
#[derive(Clone, Default)]
pub struct RunningWork(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl RunningWork {
    /// Notes a run, which is cancelled by the token or by [`Self::cancel`]. `None` while another
    /// one is under way.
    pub fn begin(&self, cluster: &str) -> Option<CancellationToken> {
        let mut running = self.0.lock();
        if running.contains_key(cluster) {
            return None;
        }
        let token = CancellationToken::new();
        running.insert(cluster.to_owned(), token.clone());
        Some(token)
    }

    /// Cancels the run of a cluster, if there is one. It ends soon.
    pub fn cancel(&self, cluster: &str) {
        if let Some(token) = self.0.lock().get(cluster) {
            token.cancel();
        }
    }

    /// The run has ended.
    pub fn end(&self, cluster: &str) {
        self.0.lock().remove(cluster);
    }
}

/// Ends a run, also one that is dropped.
pub struct EndOfWork<'a>(pub &'a RunningWork, pub &'a str);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}
