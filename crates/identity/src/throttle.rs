//! Slows down guessing: failed attempts are counted per key, and a key with too many of them must
//! wait.
//!
//! Each throttle counts by one key. [`crate::login_throttle`] combines several for logins. Attempts
//! in progress are limited too: further ones queue until the earlier ones are decided. So a hundred
//! concurrent guesses get no further than sequential ones, and twelve concurrent correct logins all
//! succeed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use backoff::Backoff;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Waits from the first failure that counts on. Without jitter: the user is shown the wait.
const WAIT: Backoff = Backoff::new(Duration::from_secs(1), WAIT_MAX);
/// Failures are forgotten this long after the last one.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(900);
/// Interval at which forgotten keys are removed from memory.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Keys remembered, some 100 bytes each; the oldest are forgotten first.
pub(crate) const KEYS_MAX: usize = 20_000;
/// Attempts of one key that wait for earlier ones.
const QUEUED_PER_KEY_MAX: usize = 64;
/// How long an attempt queues: less than clients wait for a response.
const QUEUE_TIME_MAX: Duration = Duration::from_secs(15);

/// What attempts are counted by: a hash, so that its size does not depend on the input, and
/// attempts of different purposes have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThrottleKey([u8; 16]);

impl ThrottleKey {
    /// The key of `parts` for one `purpose`, such as `"login"`.
    pub fn new(purpose: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            // With its length, so that two different lists of parts never give the same bytes.
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

/// The limits of one key.
#[derive(Clone, Copy, Debug)]
pub struct ThrottlePolicy {
    /// Failures without a wait: users mistype.
    pub free_failures: u32,
    /// Concurrent attempts; further ones queue.
    pub under_way_max: u32,
}

/// Counts failures by key.
pub struct Throttle {
    policy: ThrottlePolicy,
    state: Mutex<ThrottleState>,
}

struct ThrottleState {
    entries: HashMap<ThrottleKey, KeyEntry>,
    purged_at: Instant,
}

struct KeyEntry {
    failures: u32,
    last: Instant,
    under_way: u32,
    queued: usize,
    /// Wakes queued attempts when an attempt was decided.
    decided: Arc<Notify>,
}

enum AttemptStart {
    Begin,
    Queue(Arc<Notify>),
}

impl Throttle {
    /// A throttle without failures.
    pub fn new(policy: ThrottlePolicy) -> Self {
        let state = ThrottleState { entries: HashMap::new(), purged_at: Instant::now() };
        Self { policy, state: Mutex::new(state) }
    }

    /// Starts an attempt, after those of the same key that are in progress, within the limits.
    ///
    /// # Errors
    /// [`Refusal`]; such an attempt is not counted.
    pub async fn attempt(&self, key: ThrottleKey) -> Result<ThrottledAttempt<'_>, Refusal> {
        let decided = match self.step(key)? {
            AttemptStart::Begin => {
                return Ok(ThrottledAttempt { throttle: self, key, is_counted: false });
            }
            AttemptStart::Queue(decided) => decided,
        };
        let _queued = self.queue(key)?;
        let end = Instant::now() + QUEUE_TIME_MAX;
        loop {
            // Registered before the check, so that no decision in between is missed.
            let mut next = std::pin::pin!(decided.notified());
            next.as_mut().enable();
            if let AttemptStart::Begin = self.step(key)? {
                return Ok(ThrottledAttempt { throttle: self, key, is_counted: false });
            }
            tokio::time::timeout_at(end, next).await.map_err(|_| Refusal::Busy)?;
        }
    }

    fn step(&self, key: ThrottleKey) -> Result<AttemptStart, Refusal> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.make_room(now);
        let entry = state.entries.entry(key).or_insert_with(|| KeyEntry::new(now));
        if now.duration_since(entry.last) >= FORGET_AFTER {
            entry.failures = 0;
        }
        if let Some(wait) = self.wait(entry, now) {
            return Err(Refusal::Slowed(wait));
        }
        let left = self.policy.free_failures.saturating_sub(entry.failures).max(1);
        if entry.under_way >= left.min(self.policy.under_way_max) {
            return Ok(AttemptStart::Queue(entry.decided.clone()));
        }
        entry.under_way += 1;
        Ok(AttemptStart::Begin)
    }

    fn queue(&self, key: ThrottleKey) -> Result<Queued<'_>, Refusal> {
        let mut state = self.state.lock();
        let entry = state.entries.entry(key).or_insert_with(|| KeyEntry::new(Instant::now()));
        if entry.queued >= QUEUED_PER_KEY_MAX {
            return Err(Refusal::Busy);
        }
        entry.queued += 1;
        Ok(Queued { throttle: self, key })
    }

    /// How long the key must still wait.
    fn wait(&self, entry: &KeyEntry, now: Instant) -> Option<Duration> {
        let over = entry.failures.checked_sub(self.policy.free_failures)?;
        let wait = WAIT.delay(over + 1);
        (entry.last + wait).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn decide(&self, key: ThrottleKey, outcome: AttemptOutcome) {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&key) else { return };
        entry.under_way = entry.under_way.saturating_sub(1);
        match outcome {
            AttemptOutcome::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                entry.last = Instant::now();
            }
            AttemptOutcome::Succeeded => entry.failures = 0,
            AttemptOutcome::Withdrawn => {}
        }
        entry.decided.notify_waiters();
        if entry.is_empty() {
            state.entries.remove(&key);
        }
    }

    /// Number of keys in memory.
    pub fn key_count(&self) -> usize {
        self.state.lock().entries.len()
    }
}

impl KeyEntry {
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

impl ThrottleState {
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

enum AttemptOutcome {
    Failed,
    Succeeded,
    Withdrawn,
}

/// One attempt in progress. Dropped before [`ThrottledAttempt::begin`] it does not count; dropped
/// after it, it counts as failed: a caller who gives up while a guess is compared has made the
/// guess.
pub struct ThrottledAttempt<'a> {
    throttle: &'a Throttle,
    key: ThrottleKey,
    is_counted: bool,
}

impl ThrottledAttempt<'_> {
    /// From now on the attempt counts.
    pub fn begin(&mut self) {
        self.is_counted = true;
    }

    /// Ends the attempt and forgets all failures of the key.
    pub fn succeed(self) {
        self.end(AttemptOutcome::Succeeded);
    }

    /// Ends the attempt without counting it. For keys that many users share: the success of one
    /// says nothing about the others, who may be guessing.
    pub fn withdraw(self) {
        self.end(AttemptOutcome::Withdrawn);
    }

    fn end(self, outcome: AttemptOutcome) {
        self.throttle.decide(self.key, outcome);
        std::mem::forget(self);
    }
}

impl Drop for ThrottledAttempt<'_> {
    fn drop(&mut self) {
        let outcome =
            if self.is_counted { AttemptOutcome::Failed } else { AttemptOutcome::Withdrawn };
        self.throttle.decide(self.key, outcome);
    }
}

/// A position in the queue of a key.
struct Queued<'a> {
    throttle: &'a Throttle,
    key: ThrottleKey,
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
