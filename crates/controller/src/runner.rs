//! Drives one controller: takes keys from its queue, runs them with bounds, records the outcome.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, Controllers};
use crate::error::ReconcileError;
use crate::key::Key;
use crate::queue::{Lane, Next, Queue};
use crate::reflector::{Change, Projection, Reflector};

/// How a reconcile ended without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The desired state is reached. The next change of a watched object runs the key again.
    Done,
    /// Like `Done`, and the key runs again after this time.
    RequeueAfter(Duration),
    /// The desired state depends on something else, and a watch reports its change. The text is
    /// shown to users: what the controller waits for.
    WaitingFor(String),
    /// Only a change of the spec helps. The text is shown to users: why.
    Terminal(String),
}

/// A controller: brings the actual state in line with one object at a time.
pub trait Reconcile: Send + Sync + 'static {
    /// Kebab case; also the last part of its identity.
    fn name(&self) -> &'static str;

    /// Observes the actual state and moves it towards the desired state of the object of `key`.
    ///
    /// Must be idempotent and must not rely on having seen every change. The object may not exist
    /// any more. A run that exceeds [`Limits::run_time_max`] is dropped.
    ///
    /// # Errors
    /// A step failed that a retry may cure. The key runs again after a delay that grows with each
    /// failure.
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>>;

    /// The lane of `key`, which groups the keys that may be slow together. By default the namespace
    /// of the key, which for most of Drover's kinds is the cluster, or else its name.
    fn lane(&self, key: &Key) -> Lane {
        if key.namespace.is_empty() { key.name.clone() } else { key.namespace.clone() }
    }
}

/// Bounds of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Keys that run at once.
    pub running_max: usize,
    /// Keys of one lane that run at once.
    pub running_per_lane_max: usize,
    /// Longest run. A longer one is dropped and retried.
    pub run_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { running_max: 16, running_per_lane_max: 2, run_time_max: Duration::from_secs(60) }
    }
}

/// One controller with its queue. Wire it with [`Runner::watch`], then [`Runner::run`] it.
pub struct Runner {
    reconciler: Arc<dyn Reconcile>,
    queue: Arc<Queue>,
    activity: Arc<Activity>,
    run_time_max: Duration,
}

impl Runner {
    /// A runner with the default [`Limits`]: 16 keys at once, 2 per lane, 60 s per run.
    pub fn new(reconciler: Arc<dyn Reconcile>) -> Self {
        Self::with_limits(reconciler, Limits::default())
    }

    /// A runner with these limits. It runs nothing before [`Runner::run`].
    pub fn with_limits(reconciler: Arc<dyn Reconcile>, limits: Limits) -> Self {
        let lanes = reconciler.clone();
        let queue = Arc::new(Queue::new(
            move |key| lanes.lane(key),
            limits.running_max,
            limits.running_per_lane_max,
        ));
        let activity = Arc::new(Activity::new(reconciler.name(), queue.clone()));
        Self { reconciler, queue, activity, run_time_max: limits.run_time_max }
    }

    /// The queue, to add keys that do not come from a watch.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
    /// What the controller did so far.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Queues the keys that `map` returns for each change, beginning with all present objects.
    /// `map` runs under the lock of the reflector; see [`Reflector::subscribe`].
    pub fn watch<P: Projection, I: IntoIterator<Item = Key>>(
        &self,
        reflector: &Reflector<P>,
        map: impl Fn(&Change<'_, P::Projected>) -> I + Send + Sync + 'static,
    ) {
        let queue: Weak<Queue> = Arc::downgrade(&self.queue);
        reflector.subscribe(move |change| {
            let Some(queue) = queue.upgrade() else { return false };
            map(change).into_iter().for_each(|key| queue.add(key));
            true
        });
    }

    /// As [`Self::watch`], with a delay, so that a burst of changes is one run.
    pub fn watch_bursts<P: Projection, I: IntoIterator<Item = Key>>(
        &self,
        reflector: &Reflector<P>,
        delay: Duration,
        map: impl Fn(&Change<'_, P::Projected>) -> I + Send + Sync + 'static,
    ) {
        let queue: Weak<Queue> = Arc::downgrade(&self.queue);
        reflector.subscribe(move |change| {
            let Some(queue) = queue.upgrade() else { return false };
            map(change).into_iter().for_each(|key| queue.add_after(key, delay));
            true
        });
    }

    /// Like [`Self::watch`], with the key of the changed object.
    pub fn watch_own<P: Projection>(&self, reflector: &Reflector<P>) {
        self.watch(reflector, |change| [change.key().clone()]);
    }

    /// Queues, for each changed object of `others`, the object of `own` with the same name, if it
    /// exists. Both kinds are cluster-scoped.
    pub fn watch_namesakes<P: Projection, Q: Projection>(
        &self,
        own: &Arc<Reflector<P>>,
        others: &Reflector<Q>,
    ) {
        let own = own.clone();
        self.watch(others, move |change| {
            let key = Key::cluster_scoped(&change.key().name);
            own.get(&key).map(|_| key)
        });
    }

    /// Runs the controller until `stop` fires or the future is dropped; active runs are dropped
    /// then. The controller is listed in `controllers` under `scope` meanwhile.
    pub async fn run(self, scope: &str, controllers: &Controllers, stop: CancellationToken) {
        let _listed = controllers.list(scope, self.activity.clone());
        self.drain(&stop).await;
    }

    async fn drain(&self, stop: &CancellationToken) {
        let mut running = JoinSet::new();
        loop {
            let due = match self.queue.next() {
                Next::Run(key) => {
                    self.start(&mut running, key);
                    continue;
                }
                Next::Wait(due) => due,
            };
            let alarm = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.queue.changed() => {}
                () = alarm => {}
                Some(_) = running.join_next() => {}
            }
        }
    }

    fn start(&self, running: &mut JoinSet<()>, key: Key) {
        let reconciler = self.reconciler.clone();
        let (queue, activity) = (self.queue.clone(), self.activity.clone());
        let run_time_max = self.run_time_max;
        running.spawn(async move {
            let began = Instant::now();
            let run = AssertUnwindSafe(reconciler.reconcile(&key)).catch_unwind();
            let result = tokio::time::timeout(run_time_max, run).await;
            let (word, message, again, failed) = match result {
                Ok(Ok(Ok(outcome))) => outcome.into_report(),
                Ok(Ok(Err(error))) => ("error", error.chain(), None, true),
                Ok(Err(panic)) => ("panic", panic_text(panic.as_ref()), None, true),
                Err(_) => {
                    ("timeout", format!("the run was stopped after {run_time_max:?}"), None, true)
                }
            };
            let failures = queue.finished(&key, again, failed);
            report(activity.name, &key, word, &message, failures);
            activity.record(&key, began.elapsed(), word, message, failures);
        });
    }
}

impl Outcome {
    /// The word of the outcome, its message, when to run again, and whether the run failed.
    fn into_report(self) -> (&'static str, String, Option<Duration>, bool) {
        match self {
            Self::Done => ("done", String::new(), None, false),
            Self::RequeueAfter(delay) => ("requeue", String::new(), Some(delay), false),
            Self::WaitingFor(what) => ("waiting", what, None, false),
            Self::Terminal(why) => ("terminal", why, None, false),
        }
    }
}

/// Consecutive failures that are logged as a warning.
const FAILURES_WARN: u32 = 5;

fn report(controller: &str, object: &Key, outcome: &str, message: &str, failures: u32) {
    if outcome == "panic" {
        tracing::error!(controller, %object, message, "reconcile panicked");
    } else if failures == FAILURES_WARN {
        tracing::warn!(controller, %object, outcome, message, failures, "reconcile failed repeatedly");
    } else {
        tracing::debug!(controller, %object, outcome, message, failures, "reconciled");
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
