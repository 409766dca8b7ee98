//! What each controller last did, for which object, and what it waits for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde::Serialize;

use crate::key::Key;
use crate::queue::Queue;

/// Keys remembered per controller; beyond it the results with the oldest run are dropped.
pub const REMEMBERED_MAX: usize = 10_000;

/// The last run for one key.
#[derive(Clone, Debug, Serialize)]
pub struct LastRun {
    /// End of the run.
    pub at: Timestamp,
    pub took: Duration,
    /// `done`, `requeue`, `waiting`, `terminal`, `error`, `panic` or `timeout`.
    pub outcome: &'static str,
    /// What the controller waits for, or the error. Empty for `done` and `requeue`.
    pub message: String,
    /// Consecutive failures, this run included.
    pub failures: u32,
    /// Runs for this key since it was last dropped from the record.
    pub runs: u64,
}

/// Counters of one controller since it started.
#[derive(Default)]
pub struct Counters {
    pub runs: AtomicU64,
    pub errors: AtomicU64,
    pub panics: AtomicU64,
    pub timeouts: AtomicU64,
    /// Time spent in runs, in microseconds. Concurrent runs add up.
    pub busy_micros: AtomicU64,
}

/// What one controller did: its counters, its queue, and the last run of each key.
pub struct Activity {
    /// The controller's [`crate::Reconcile::name`].
    pub name: &'static str,
    pub counters: Counters,
    queue: Arc<Queue>,
    last: Mutex<HashMap<Key, LastRun>>,
}

impl Activity {
    pub(crate) fn new(name: &'static str, queue: Arc<Queue>) -> Self {
        Self { name, counters: Counters::default(), queue, last: Mutex::default() }
    }

    /// The last run for `key`; `None` before the first, and when the record dropped it
    /// ([`REMEMBERED_MAX`]).
    pub fn last_run(&self, key: &Key) -> Option<LastRun> {
        self.last.lock().get(key).cloned()
    }
    /// Keys that are queued now; see [`Queue::depth`].
    pub fn queue_depth(&self) -> usize {
        self.queue.depth()
    }
    /// Keys that are reconciled now; see [`Queue::running`].
    pub fn running(&self) -> usize {
        self.queue.running()
    }

    pub(crate) fn record(
        &self,
        key: &Key,
        took: Duration,
        outcome: &'static str,
        message: String,
        failures: u32,
    ) {
        let counters = &self.counters;
        counters.runs.fetch_add(1, Ordering::Relaxed);
        counters.busy_micros.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
        match outcome {
            "error" => drop(counters.errors.fetch_add(1, Ordering::Relaxed)),
            "panic" => drop(counters.panics.fetch_add(1, Ordering::Relaxed)),
            "timeout" => drop(counters.timeouts.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        let mut last = self.last.lock();
        if last.len() >= REMEMBERED_MAX && !last.contains_key(key) {
            let oldest = last.iter().min_by_key(|(_, run)| run.at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                last.remove(&oldest);
            }
        }
        let runs = last.get(key).map_or(1, |run| run.runs + 1);
        let at = Timestamp::now();
        last.insert(key.clone(), LastRun { at, took, outcome, message, failures, runs });
    }
}

/// The scope of a controller (the cluster's id, empty for management controllers) and its activity.
pub type Scoped = (String, Arc<Activity>);

/// The activities of all controllers in the process, for `/debug` and metrics. Cheap to clone.
#[derive(Clone, Default)]
pub struct Controllers(Arc<RwLock<Vec<Scoped>>>);

/// The listing of a controller in [`Controllers`]; dropping it ends the listing.
pub(crate) struct Listed {
    controllers: Controllers,
    activity: Arc<Activity>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.controllers.0.write().retain(|(_, known)| !Arc::ptr_eq(known, &self.activity));
    }
}

impl Controllers {
    /// `scope` is the cluster for downstream controllers and empty for the management cluster's.
    pub(crate) fn list(&self, scope: &str, activity: Arc<Activity>) -> Listed {
        self.0.write().push((scope.to_owned(), activity.clone()));
        Listed { controllers: self.clone(), activity }
    }
    /// All controllers that run now, with their scope.
    pub fn all(&self) -> Vec<Scoped> {
        self.0.read().clone()
    }
    /// The last run of every controller for `key`, as (scope, controller name, run).
    pub fn last_runs(&self, key: &Key) -> Vec<(String, &'static str, LastRun)> {
        let all = self.0.read();
        let runs = all.iter().filter_map(|(scope, activity)| {
            activity.last_run(key).map(|run| (scope.clone(), activity.name, run))
        });
        runs.collect()
    }
}
