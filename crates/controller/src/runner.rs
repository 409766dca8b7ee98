//! Drives one controller: takes keys from its queue, runs them with bounds, remembers the outcome.

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
    /// The world is as it should be; a change will say when it is not.
    Done,
    /// As `Done`, but look again after this time.
    RequeueAfter(Duration),
    /// Nothing to do until something else happens; a watch will tell. For people: what is awaited.
    WaitingFor(String),
    /// Only a change of the spec helps. For people: why.
    Terminal(String),
}

/// A controller: makes the world agree with one object at a time.
pub trait Reconcile: Send + Sync + 'static {
    /// Kebab case; also the last part of its identity.
    fn name(&self) -> &'static str;

    /// Looks at the world and moves it towards what the object of `key` asks for.
    ///
    /// Must be idempotent and must not rely on having seen every change. The object may be gone.
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>>;

    /// What may be slow together with `key`. By default its namespace, which for most of our kinds is
    /// the cluster.
    fn lane(&self, key: &Key) -> Lane {
        if key.namespace.is_empty() { key.name.clone() } else { key.namespace.clone() }
    }
}

/// Bounds of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Keys worked on at once.
    pub running_max: usize,
    /// Of those, of one lane.
    pub running_per_lane_max: usize,
    /// Longest run; then it is dropped and tried again.
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
    pub fn new(reconciler: Arc<dyn Reconcile>) -> Self {
        Self::with_limits(reconciler, Limits::default())
    }

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

    /// Where keys can be added from elsewhere.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Adds the keys that `map` makes of each change, beginning with all there is.
    pub fn watch<P: Projection, I: IntoIterator<Item = Key>>(
        &self,
        reflector: &Reflector<P>,
        map: impl Fn(&Change<'_, P::Kept>) -> I + Send + Sync + 'static,
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
        map: impl Fn(&Change<'_, P::Kept>) -> I + Send + Sync + 'static,
    ) {
        let queue: Weak<Queue> = Arc::downgrade(&self.queue);
        reflector.subscribe(move |change| {
            let Some(queue) = queue.upgrade() else { return false };
            map(change).into_iter().for_each(|key| queue.add_after(key, delay));
            true
        });
    }

    /// As [`Self::watch`], with the object's own key.
    pub fn watch_own<P: Projection>(&self, reflector: &Reflector<P>) {
        self.watch(reflector, |change| [change.key().clone()]);
    }

    /// Adds the key of the object of `own` that has the name of a changed one of `others`, if there is one. Both are
    /// cluster-scoped.
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

    /// Runs until `stop`, or until it is dropped, and is listed in `controllers` under `scope` as long. Runs
    /// under way are dropped then.
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
                Ok(Ok(Ok(outcome))) => outcome.told(),
                Ok(Ok(Err(error))) => ("error", error.chain(), None, true),
                Ok(Err(panic)) => ("panic", panic_text(panic.as_ref()), None, true),
                Err(_) => ("timeout", format!("gave up after {run_time_max:?}"), None, true),
            };
            let failures = queue.finished(&key, again, failed);
            report(activity.name, &key, word, &message, failures);
            activity.record(&key, began.elapsed(), word, message, failures);
        });
    }
}

impl Outcome {
    fn told(self) -> (&'static str, String, Option<Duration>, bool) {
        match self {
            Self::Done => ("done", String::new(), None, false),
            Self::RequeueAfter(delay) => ("requeue", String::new(), Some(delay), false),
            Self::WaitingFor(what) => ("waiting", what, None, false),
            Self::Terminal(why) => ("terminal", why, None, false),
        }
    }
}

/// Failures in a row from which on a person should know.
const FAILURES_WARN: u32 = 5;

fn report(controller: &str, object: &Key, outcome: &str, message: &str, failures: u32) {
    if outcome == "panic" {
        tracing::error!(controller, %object, message, "reconcile panicked");
    } else if failures == FAILURES_WARN {
        tracing::warn!(controller, %object, outcome, message, failures, "reconcile keeps failing");
    } else {
        tracing::debug!(controller, %object, outcome, message, failures, "reconciled");
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
