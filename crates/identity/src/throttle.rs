//! Slows guessing down: failed attempts are counted per key (a login name, an address) and a key
//! with too many waits.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures that cost nothing yet: people mistype.
const FREE_FAILURES: u32 = 5;
/// The wait after the first failure that counts; it doubles with each further one.
const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Failures are forgotten this long after the last one.
const FORGET_AFTER: Duration = Duration::from_secs(900);
/// Keys remembered; the oldest are forgotten first.
const KEYS_MAX: usize = 10_000;

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// The key for a peer's address. One customer has all of an IPv6 /64, so that is one key.
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("address {address}"),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX));
            format!("address {network}/64")
        }
    }
}

/// Counts failures by key.
#[derive(Default)]
pub struct Throttle(Mutex<HashMap<String, Failures>>);

impl Throttle {
    /// How long the key must still wait before it may try; `None` when it may.
    pub fn wait(&self, key: &str, now: Instant) -> Option<Duration> {
        self.0.lock().get(key)?.wait(now)
    }

    /// Begins an attempt: it counts as failed until [`Throttle::succeeded`], so that a thousand at
    /// once count too, which [`Throttle::wait`] and [`Throttle::failed`] apart would let through.
    ///
    /// # Errors
    /// How long the key must still wait; such an attempt is not counted.
    pub fn attempt(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let mut all = self.0.lock();
        match all.get(key).and_then(|failures| failures.wait(now)) {
            Some(wait) => Err(wait),
            None => {
                count(&mut all, key, now);
                Ok(())
            }
        }
    }

    /// Counts a failure.
    pub fn failed(&self, key: &str, now: Instant) {
        count(&mut self.0.lock(), key, now);
    }

    /// Forgets the key's failures.
    pub fn succeeded(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

impl Failures {
    fn wait(self, now: Instant) -> Option<Duration> {
        let over = self.count.checked_sub(FREE_FAILURES)?;
        let wait = WAIT_FIRST.saturating_mul(1 << over.min(16)).min(WAIT_MAX);
        (self.last + wait).checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

fn count(all: &mut HashMap<String, Failures>, key: &str, now: Instant) {
    let fresh = !all.contains_key(key);
    if fresh && all.len() >= KEYS_MAX {
        all.retain(|_, failures| now.duration_since(failures.last) < FORGET_AFTER);
    }
    if fresh
        && all.len() >= KEYS_MAX
        && let Some(oldest) =
            all.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone())
    {
        all.remove(&oldest);
    }
    let entry = all.entry(key.to_owned()).or_insert(Failures { count: 0, last: now });
    if now.duration_since(entry.last) >= FORGET_AFTER {
        entry.count = 0;
    }
    entry.count = entry.count.saturating_add(1);
    entry.last = now;
}
