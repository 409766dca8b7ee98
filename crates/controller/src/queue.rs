//! The queue of a controller: keys, each at most once, in lanes.
//!
//! A lane groups the keys that may be slow together (those of one cluster). Lanes are served round
//! robin, and each runs few keys at a time, so a lane that hangs uses up its own share only. A key
//! never runs twice at once: a key that is added while it runs is run again afterwards. Time is
//! tokio's, so tests can pause it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use backoff::Backoff;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::key::Key;

/// Name of a lane. The empty name is a lane like any other.
pub type Lane = String;

/// Waits after consecutive failures of a key. The jitter separates keys that failed together.
const RETRY: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(60)).with_jitter(0.25);

/// Where a key is between being added and being finished.
enum KeyPhase {
    /// In the queue of its lane.
    Queued,
    /// Due at this time.
    Delayed(Instant, u64),
    /// Reconciled now; with the time of the next run when the key was added meanwhile.
    Running(Option<Instant>),
    /// Not queued; the entry holds only the count of failures.
    Idle,
}

struct KeyEntry {
    phase: KeyPhase,
    failures: u32,
}

#[derive(Default)]
struct LaneState {
    line: VecDeque<Key>,
    running: usize,
    /// Whether the lane is in `QueueState::ready`.
    is_ready: bool,
}

#[derive(Default)]
struct QueueState {
    entries: HashMap<Key, KeyEntry>,
    lanes: HashMap<Lane, LaneState>,
    /// Lanes that have a queued key and may run it, in the order in which they are served.
    ready: VecDeque<Lane>,
    delayed: BTreeMap<(Instant, u64), Key>,
    /// Distinguishes delayed keys that are due at the same time.
    sequence: u64,
    running: usize,
}

/// The queue of one controller. All its methods but [`Queue::changed`] return at once.
pub struct Queue {
    state: Mutex<QueueState>,
    wake: Notify,
    lane_of: Box<dyn Fn(&Key) -> Lane + Send + Sync>,
    running_max: usize,
    running_per_lane_max: usize,
}

/// What the caller of [`Queue::next`] does next.
pub enum Next {
    /// Reconcile this key, then call [`Queue::finished`].
    Run(Key),
    /// Nothing can run now. Call again at this time, if there is one, or after [`Queue::changed`].
    Wait(Option<Instant>),
}

impl Queue {
    /// An empty queue that runs at most `running_max` keys at once, and at most
    /// `running_per_lane_max` of each lane. `lane_of` must always return the same lane for a key.
    pub fn new(
        lane_of: impl Fn(&Key) -> Lane + Send + Sync + 'static,
        running_max: usize,
        running_per_lane_max: usize,
    ) -> Self {
        Self {
            state: Mutex::default(),
            wake: Notify::new(),
            lane_of: Box::new(lane_of),
            running_max,
            running_per_lane_max,
        }
    }

    /// Queues `key` to run as soon as its lane allows. Ends the wait after a failure.
    pub fn add(&self, key: Key) {
        self.add_at(key, Instant::now());
    }

    /// Queues `key` to run after `delay`, or earlier when it is already due earlier.
    pub fn add_after(&self, key: Key, delay: Duration) {
        self.add_at(key, Instant::now() + delay);
    }

    fn add_at(&self, key: Key, at: Instant) {
        let mut state = self.state.lock();
        state.schedule(&(self.lane_of)(&key), key, at, self.running_per_lane_max);
        drop(state);
        self.wake.notify_one();
    }

    /// Removes and returns the next key to run. The caller must call [`Queue::finished`] for it.
    pub fn next(&self) -> Next {
        let now = Instant::now();
        let mut state = self.state.lock();
        while let Some((&(at, sequence), _)) = state.delayed.first_key_value()
            && at <= now
        {
            let key = state.delayed.remove(&(at, sequence)).expect("the first entry exists");
            let lane = (self.lane_of)(&key);
            state.enqueue(&lane, key, self.running_per_lane_max);
        }
        if state.running >= self.running_max {
            return Next::Wait(None);
        }
        match state.start_next(self.running_per_lane_max) {
            Some(key) => Next::Run(key),
            None => Next::Wait(state.delayed.first_key_value().map(|(&(at, _), _)| at)),
        }
    }

    /// Waits until a key is added or finished. May return early. Cancel-safe, for one waiter.
    pub async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Marks the run of `key` as finished and returns its consecutive failures, this run included.
    /// The key runs again after `again`, after the retry delay when the run `failed`, or when it
    /// was added meanwhile: whichever is earliest.
    pub fn finished(&self, key: &Key, again: Option<Duration>, failed: bool) -> u32 {
        let lane_name = (self.lane_of)(key);
        let mut state = self.state.lock();
        state.running -= 1;
        state.leave(&lane_name, self.running_per_lane_max);
        let Some(entry) = state.entries.get_mut(key) else { return 0 };
        entry.failures = if failed { entry.failures + 1 } else { 0 };
        let failures = entry.failures;
        let meanwhile = match entry.phase {
            KeyPhase::Running(meanwhile) => meanwhile,
            _ => None,
        };
        entry.phase = KeyPhase::Idle;
        let retry = failed.then(|| RETRY.delay(failures));
        let after = match (again, retry) {
            (Some(again), Some(retry)) => Some(again.min(retry)),
            (again, retry) => again.or(retry),
        };
        let at = after.map(|delay| Instant::now() + delay);
        let at = match (at, meanwhile) {
            (Some(at), Some(meanwhile)) => Some(at.min(meanwhile)),
            (at, meanwhile) => at.or(meanwhile),
        };
        match at {
            Some(at) => state.schedule(&lane_name, key.clone(), at, self.running_per_lane_max),
            None => {
                state.entries.remove(key);
            }
        }
        drop(state);
        self.wake.notify_one();
        failures
    }

    /// Keys that are due and queued, without those that are delayed or running.
    pub fn depth(&self) -> usize {
        self.state.lock().lanes.values().map(|lane| lane.line.len()).sum()
    }
    /// Keys that are running.
    pub fn running(&self) -> usize {
        self.state.lock().running
    }
}

impl QueueState {
    fn schedule(&mut self, lane: &str, key: Key, at: Instant, per_lane: usize) {
        let entry = self.entries.entry(key.clone());
        let entry = entry.or_insert(KeyEntry { phase: KeyPhase::Idle, failures: 0 });
        match entry.phase {
            KeyPhase::Queued => {}
            KeyPhase::Running(meanwhile) => {
                let at = meanwhile.map_or(at, |earlier| earlier.min(at));
                entry.phase = KeyPhase::Running(Some(at));
            }
            KeyPhase::Delayed(due, _) if due <= at => {}
            KeyPhase::Delayed(due, sequence) => {
                self.delayed.remove(&(due, sequence));
                self.enqueue_at(lane, key, at, per_lane);
            }
            KeyPhase::Idle => self.enqueue_at(lane, key, at, per_lane),
        }
    }

    fn enqueue_at(&mut self, lane: &str, key: Key, at: Instant, per_lane: usize) {
        if at <= Instant::now() {
            self.enqueue(lane, key, per_lane);
            return;
        }
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = KeyPhase::Delayed(at, sequence);
        }
        self.delayed.insert((at, sequence), key);
    }

    fn enqueue(&mut self, lane_name: &str, key: Key, per_lane: usize) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = KeyPhase::Queued;
        }
        let lane = self.lanes.entry(lane_name.to_owned()).or_default();
        lane.line.push_back(key);
        if !lane.is_ready && lane.running < per_lane {
            lane.is_ready = true;
            self.ready.push_back(lane_name.to_owned());
        }
    }

    fn start_next(&mut self, per_lane: usize) -> Option<Key> {
        let lane_name = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&lane_name).expect("ready lanes exist");
        let key = lane.line.pop_front().expect("ready lanes have a queued key");
        lane.running += 1;
        lane.is_ready = !lane.line.is_empty() && lane.running < per_lane;
        if lane.is_ready {
            self.ready.push_back(lane_name);
        }
        self.running += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = KeyPhase::Running(None);
        }
        Some(key)
    }

    /// Frees a running slot of the lane.
    fn leave(&mut self, lane_name: &str, per_lane: usize) {
        let Some(lane) = self.lanes.get_mut(lane_name) else { return };
        lane.running -= 1;
        if lane.line.is_empty() {
            if lane.running == 0 {
                self.lanes.remove(lane_name);
            }
        } else if !lane.is_ready && lane.running < per_lane {
            lane.is_ready = true;
            self.ready.push_back(lane_name.to_owned());
        }
    }
}
