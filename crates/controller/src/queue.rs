//! The queue of a controller: keys, each at most once, in lanes.
//!
//! A lane is what may be slow together (a cluster). Lanes take turns, and each runs few keys at a time,
//! so a lane that hangs uses up its own share only. A key never runs twice at once: what comes while it
//! runs makes it run again afterwards. Time is tokio's, so tests can hold it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::key::Key;

/// Name of a lane; the empty one is as good as any.
pub type Lane = String;

/// First wait after a failure; doubles with each further one.
pub const RETRY_DELAY_MIN: Duration = Duration::from_millis(100);
/// Longest wait between tries.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

enum Place {
    /// In its lane's line.
    Queued,
    /// Due at this time.
    Delayed(Instant, u64),
    /// Being worked on; with the time at which to run again, when something came meanwhile.
    Running(Option<Instant>),
    /// Not waiting for anything; remembered for its failures.
    Idle,
}

struct Entry {
    place: Place,
    failures: u32,
}

#[derive(Default)]
struct LaneState {
    line: VecDeque<Key>,
    running: usize,
    /// In `State::turns`.
    in_turn: bool,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    lanes: HashMap<Lane, LaneState>,
    /// Lanes that may run something, in order.
    turns: VecDeque<Lane>,
    delayed: BTreeMap<(Instant, u64), Key>,
    sequence: u64,
    running: usize,
}

/// The queue of one controller.
pub struct Queue {
    state: Mutex<State>,
    wake: Notify,
    lane_of: Box<dyn Fn(&Key) -> Lane + Send + Sync>,
    running_max: usize,
    running_per_lane_max: usize,
}

/// What is next.
pub enum Next {
    Run(Key),
    /// Nothing now; something is due at this time, if any.
    Wait(Option<Instant>),
}

impl Queue {
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

    /// Has `key` worked on as soon as its lane allows. Ends a wait after failures.
    pub fn add(&self, key: Key) {
        self.add_at(key, Instant::now());
    }

    /// Has `key` worked on after `delay`, or earlier when it is due earlier already.
    pub fn add_after(&self, key: Key, delay: Duration) {
        self.add_at(key, Instant::now() + delay);
    }

    fn add_at(&self, key: Key, at: Instant) {
        let mut state = self.state.lock();
        state.schedule(&(self.lane_of)(&key), key, at, self.running_per_lane_max);
        drop(state);
        self.wake.notify_one();
    }

    /// Takes the next key to run; [`Queue::finished`] must follow.
    pub fn next(&self) -> Next {
        let now = Instant::now();
        let mut state = self.state.lock();
        while let Some((&(at, sequence), _)) = state.delayed.first_key_value()
            && at <= now
        {
            let key = state.delayed.remove(&(at, sequence)).expect("it was the first");
            let lane = (self.lane_of)(&key);
            state.enqueue(&lane, key, self.running_per_lane_max);
        }
        if state.running >= self.running_max {
            return Next::Wait(None);
        }
        match state.take_turn(self.running_per_lane_max) {
            Some(key) => Next::Run(key),
            None => Next::Wait(state.delayed.first_key_value().map(|(&(at, _), _)| at)),
        }
    }

    /// Waits until something was added or finished. May return early.
    pub async fn changed(&self) {
        self.wake.notified().await;
    }

    /// `key` has run. `again`: when to run it the next time; it runs earlier when something came
    /// meanwhile.
    pub fn finished(&self, key: &Key, again: Option<Duration>, failed: bool) -> u32 {
        let lane_name = (self.lane_of)(key);
        let mut state = self.state.lock();
        state.running -= 1;
        state.leave(&lane_name, self.running_per_lane_max);
        let Some(entry) = state.entries.get_mut(key) else { return 0 };
        entry.failures = if failed { entry.failures + 1 } else { 0 };
        let failures = entry.failures;
        let meanwhile = match entry.place {
            Place::Running(meanwhile) => meanwhile,
            _ => None,
        };
        entry.place = Place::Idle;
        let retry = failed.then(|| retry_delay(failures));
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

    /// Keys that wait for their turn now.
    pub fn depth(&self) -> usize {
        self.state.lock().lanes.values().map(|lane| lane.line.len()).sum()
    }
    /// Keys being worked on.
    pub fn running(&self) -> usize {
        self.state.lock().running
    }
}

impl State {
    fn schedule(&mut self, lane: &str, key: Key, at: Instant, per_lane: usize) {
        let entry = self.entries.entry(key.clone());
        let entry = entry.or_insert(Entry { place: Place::Idle, failures: 0 });
        match entry.place {
            Place::Queued => {}
            Place::Running(meanwhile) => {
                let at = meanwhile.map_or(at, |earlier| earlier.min(at));
                entry.place = Place::Running(Some(at));
            }
            Place::Delayed(due, _) if due <= at => {}
            Place::Delayed(due, sequence) => {
                self.delayed.remove(&(due, sequence));
                self.place(lane, key, at, per_lane);
            }
            Place::Idle => self.place(lane, key, at, per_lane),
        }
    }

    fn place(&mut self, lane: &str, key: Key, at: Instant, per_lane: usize) {
        if at <= Instant::now() {
            self.enqueue(lane, key, per_lane);
            return;
        }
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Delayed(at, sequence);
        }
        self.delayed.insert((at, sequence), key);
    }

    fn enqueue(&mut self, lane_name: &str, key: Key, per_lane: usize) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Queued;
        }
        let lane = self.lanes.entry(lane_name.to_owned()).or_default();
        lane.line.push_back(key);
        if !lane.in_turn && lane.running < per_lane {
            lane.in_turn = true;
            self.turns.push_back(lane_name.to_owned());
        }
    }

    fn take_turn(&mut self, per_lane: usize) -> Option<Key> {
        let lane_name = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&lane_name).expect("lanes in turn exist");
        let key = lane.line.pop_front().expect("lanes in turn have something to run");
        lane.running += 1;
        lane.in_turn = !lane.line.is_empty() && lane.running < per_lane;
        if lane.in_turn {
            self.turns.push_back(lane_name);
        }
        self.running += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Running(None);
        }
        Some(key)
    }

    fn leave(&mut self, lane_name: &str, per_lane: usize) {
        let Some(lane) = self.lanes.get_mut(lane_name) else { return };
        lane.running -= 1;
        if lane.line.is_empty() {
            if lane.running == 0 {
                self.lanes.remove(lane_name);
            }
        } else if !lane.in_turn && lane.running < per_lane {
            lane.in_turn = true;
            self.turns.push_back(lane_name.to_owned());
        }
    }
}

/// The wait after this many failures in a row, with a quarter of jitter taken from the clock's lowest
/// digits: keys that failed together need not come back together.
fn retry_delay(failures: u32) -> Duration {
    let doubled = RETRY_DELAY_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let delay = doubled.min(RETRY_DELAY_MAX);
    let quarter = delay.as_micros() as u64 / 4;
    let now = jiff::Timestamp::now().as_microsecond().unsigned_abs();
    delay - Duration::from_micros(if quarter == 0 { 0 } else { now % quarter })
}
