//! Slows guessing down: failed attempts are counted per key, and a key with too many of them waits.
//!
//! Counts one thing per key. [`crate::login_throttle`] puts several together for logins. Attempts under way count too,
//! but as neither good nor bad: further ones queue until the earlier ones are decided, so that a hundred wrong guesses
//! at once get no further than one after the other, and twelve correct logins at once are all correct.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The wait after the first failure that counts; it doubles with each further one.
const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Failures are forgotten this long after the last one.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(900);
/// How often forgotten keys are removed from memory.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Keys remembered, some 100 bytes each; the oldest are forgotten first.
pub(crate) const KEYS_MAX: usize = 20_000;
/// Attempts of one key that queue for earlier ones.
const QUEUED_PER_KEY_MAX: usize = 64;
/// How long an attempt queues: less than clients wait for a response.
const QUEUE_TIME_MAX: Duration = Duration::from_secs(15);

/// What attempts are counted by: a hash, so that it has the same size whatever a caller chooses, and attempts of
/// different purposes never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of `parts` for one `purpose`, such as `"login"`.
    pub fn new(purpose: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            // With its length, so that no two lists of parts give the same bytes.
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let (half, _) = digest.split_at(16);
        Self(half.try_into().expect("half of 32 bytes"))
    }

    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// Why an attempt was refused. It is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many failures; the next attempt is possible after this time.
    Slowed(Duration),
    /// Too many attempts at once. Says nothing about the password.
    Busy,
}

/// How many attempts a key has.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Failures that cost nothing yet: people mistype.
    pub free_failures: u32,
    /// Attempts under way at once; further ones queue.
    pub under_way_max: u32,
}

/// Counts failures by key.
pub struct Throttle {
    policy: Policy,
    state: Mutex<State>,
}

struct State {
    entries: HashMap<Key, Entry>,
    purged_at: Instant,
}

struct Entry {
    failures: u32,
    last: Instant,
    under_way: u32,
    queued: usize,
    /// Wakes those who queue when an attempt was decided.
    decided: Arc<Notify>,
}

enum Step {
    Go,
    Queue(Arc<Notify>),
}

impl Throttle {
    /// Knows of no failures.
    pub fn new(policy: Policy) -> Self {
        let state = State { entries: HashMap::new(), purged_at: Instant::now() };
        Self { policy, state: Mutex::new(state) }
    }

    /// Begins an attempt, after those of the same key that are under way, within limits.
    ///
    /// # Errors
    /// [`Refusal`]; such an attempt is not counted.
    pub async fn attempt(&self, key: Key) -> Result<Attempt<'_>, Refusal> {
        let decided = match self.step(key)? {
            Step::Go => return Ok(Attempt { throttle: self, key, is_judged: false }),
            Step::Queue(decided) => decided,
        };
        let _queued = self.queue(key)?;
        let end = Instant::now() + QUEUE_TIME_MAX;
        loop {
            // Registered before the look, so that nothing decided in between is missed.
            let mut next = std::pin::pin!(decided.notified());
            next.as_mut().enable();
            if let Step::Go = self.step(key)? {
                return Ok(Attempt { throttle: self, key, is_judged: false });
            }
            tokio::time::timeout_at(end, next).await.map_err(|_| Refusal::Busy)?;
        }
    }

    fn step(&self, key: Key) -> Result<Step, Refusal> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.make_room(now);
        let entry = state.entries.entry(key).or_insert_with(|| Entry::new(now));
        if now.duration_since(entry.last) >= FORGET_AFTER {
            entry.failures = 0;
        }
        if let Some(wait) = self.wait(entry, now) {
            return Err(Refusal::Slowed(wait));
        }
        let left = self.policy.free_failures.saturating_sub(entry.failures).max(1);
        if entry.under_way >= left.min(self.policy.under_way_max) {
            return Ok(Step::Queue(entry.decided.clone()));
        }
        entry.under_way += 1;
        Ok(Step::Go)
    }

    fn queue(&self, key: Key) -> Result<Queued<'_>, Refusal> {
        let mut state = self.state.lock();
        let entry = state.entries.entry(key).or_insert_with(|| Entry::new(Instant::now()));
        if entry.queued >= QUEUED_PER_KEY_MAX {
            return Err(Refusal::Busy);
        }
        entry.queued += 1;
        Ok(Queued { throttle: self, key })
    }

    /// How long the key must still wait.
    fn wait(&self, entry: &Entry, now: Instant) -> Option<Duration> {
        let over = entry.failures.checked_sub(self.policy.free_failures)?;
        let wait = WAIT_FIRST.saturating_mul(1 << over.min(16)).min(WAIT_MAX);
        (entry.last + wait).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn decide(&self, key: Key, outcome: Outcome) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&key) else { return };
        entry.under_way = entry.under_way.saturating_sub(1);
        match outcome {
            Outcome::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                entry.last = Instant::now();
            }
            Outcome::Succeeded => entry.failures = 0,
            Outcome::Withdrawn => {}
        }
        entry.decided.notify_waiters();
        if entry.is_empty() {
            state.entries.remove(&key);
        }
    }

    /// Keys in memory.
    pub fn key_count(&self) -> usize {
        self.state.lock().entries.len()
    }
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self { failures: 0, last: now, under_way: 0, queued: 0, decided: Arc::default() }
    }

    fn is_used(&self) -> bool {
        self.under_way > 0 || self.queued > 0
    }

    fn is_empty(&self) -> bool {
        self.failures == 0 && !self.is_used()
    }
}

impl State {
    /// Removes what is forgotten, from time to time, and the oldest when there are too many.
    fn make_room(&mut self, now: Instant) {
        if now.duration_since(self.purged_at) >= PURGE_EVERY {
            self.purged_at = now;
            self.entries.retain(|_, entry| {
                entry.is_used() || now.duration_since(entry.last) < FORGET_AFTER
            });
        }
        if self.entries.len() >= KEYS_MAX {
            let unused = self.entries.iter().filter(|(_, entry)| !entry.is_used());
            let oldest = unused.min_by_key(|(_, entry)| entry.last).map(|(key, _)| *key);
            oldest.map(|key| self.entries.remove(&key));
        }
    }
}

enum Outcome {
    Failed,
    Succeeded,
    Withdrawn,
}

/// One attempt under way. Dropped before [`Attempt::begin`] it counts as nothing, after it as failed: who gives up
/// while a guess is judged has made it.
pub struct Attempt<'a> {
    throttle: &'a Throttle,
    key: Key,
    is_judged: bool,
}

impl Attempt<'_> {
    /// From now on the attempt is judged.
    pub fn begin(&mut self) {
        self.is_judged = true;
    }

    /// Forgets all failures of the key.
    pub fn succeed(self) {
        self.end(Outcome::Succeeded);
    }

    /// Takes the attempt back. For keys that many share: the success of one says nothing of the others, who may be
    /// guessing.
    pub fn withdraw(self) {
        self.end(Outcome::Withdrawn);
    }

    fn end(self, outcome: Outcome) {
        self.throttle.decide(self.key, outcome);
        std::mem::forget(self);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let outcome = if self.is_judged { Outcome::Failed } else { Outcome::Withdrawn };
        self.throttle.decide(self.key, outcome);
    }
}

/// A place in the queue of a key.
struct Queued<'a> {
    throttle: &'a Throttle,
    key: Key,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.state.lock();
        if let Some(entry) = state.entries.get_mut(&self.key) {
            entry.queued = entry.queued.saturating_sub(1);
            if entry.is_empty() {
                state.entries.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
