//! A reconcile that reports in a condition of an object whether it succeeds: for what no object of
//! its own stands for, such as roles in a downstream cluster.

use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::{ReconcileError, is_code, words_of};
use crate::key::Key;
use crate::queue::Lane;
use crate::runner::{Outcome, Reconcile};
use crate::status::{ConditionState, OwnedCondition, StatusPatch, StatusTarget};

/// How long a run fails before that is reported, where the next try may cure it. Longer than an
/// API server takes to know a role that was just bound, for requests and for the watches of a
/// reflector, which try again on their own.
const TRANSIENT_MAX: Duration = Duration::from_secs(3);
/// Reason of a condition whose reconcile fails: clients show such an object as failed.
const FAILED: &str = "Error";

/// The condition that a [`WithCondition`] writes.
pub struct ConditionReport {
    pub condition: OwnedCondition,
    /// Writes the status of `target`.
    pub client: Client,
    pub target: StatusTarget,
    /// What a user can do about a failure; follows the error in the message.
    pub next_step: String,
}

/// See the module. For a reconcile whose only key stands for all that it does.
pub struct WithCondition<R> {
    reconcile: R,
    report: ConditionReport,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    failing_since: Option<Instant>,
    written: Option<ConditionState>,
}

impl Progress {
    /// What the condition is to say after a run; `None` while that is not known.
    fn state_after(
        &mut self,
        result: &Result<Outcome, ReconcileError>,
        now: Instant,
        next_step: &str,
    ) -> Option<ConditionState> {
        let error = match result {
            Ok(outcome) => {
                self.failing_since = None;
                return Some(match outcome {
                    Outcome::Done | Outcome::RequeueAfter(_) => ConditionState::yes(),
                    Outcome::WaitingFor(what) => ConditionState::unknown("Waiting", what),
                    Outcome::Terminal(why) => ConditionState::no(FAILED, why),
                });
            }
            Err(error) => error,
        };
        let since = *self.failing_since.get_or_insert(now);
        if !is_refusal(error) && now.duration_since(since) < TRANSIENT_MAX {
            return None;
        }
        let cause = match error {
            ReconcileError::Api { source, .. } => format!("{error}: {}", words_of(source)),
            ReconcileError::Other { .. } => error.to_string(),
        };
        Some(ConditionState::no(FAILED, format!("{cause}; {next_step}")))
    }
}

impl<R: Reconcile> WithCondition<R> {
    /// Reports every run of `reconcile` in the condition of `report`. One for each target: it
    /// caches what it wrote.
    pub fn new(reconcile: R, report: ConditionReport) -> Self {
        Self { reconcile, report, progress: Mutex::default() }
    }

    async fn write(&self, state: ConditionState) -> Result<(), ReconcileError> {
        if self.progress.lock().written.as_ref() == Some(&state) {
            return Ok(());
        }
        let ConditionReport { condition, client, target, .. } = &self.report;
        let patch = StatusPatch::new().condition(*condition, state.clone());
        match patch.write(client, target).await {
            Err(ReconcileError::Api { source, .. }) if is_code(&source, 404) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                self.progress.lock().written = Some(state);
                Ok(())
            }
        }
    }
}

/// Whether an API rejected the request for what it is: the next try fails like this one. Not 403:
/// an API server takes a moment until it knows a role that was just bound.
fn is_refusal(error: &ReconcileError) -> bool {
    const MAY_PASS: [u16; 6] = [403, 404, 408, 409, 410, 429];
    let ReconcileError::Api { source, .. } = error else { return false };
    matches!(&**source, kube::Error::Api(status)
        if (400..500).contains(&status.code) && !MAY_PASS.contains(&status.code))
}

impl<R: Reconcile> Reconcile for WithCondition<R> {
    fn name(&self) -> &'static str {
        self.reconcile.name()
    }

    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(async move {
            let result = self.reconcile.reconcile(key).await;
            let next_step = &self.report.next_step;
            let state = self.progress.lock().state_after(&result, Instant::now(), next_step);
            let written = match state {
                Some(state) => self.write(state).await,
                None => Ok(()),
            };
            result.and_then(|outcome| written.map(|()| outcome))
        })
    }

    fn lane(&self, key: &Key) -> Lane {
        self.reconcile.lane(key)
    }
}

#[cfg(test)]
mod tests;
