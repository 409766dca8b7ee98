//! Slows guessing down: failed attempts are counted per key (a login name, an address) and a key
//! with too many waits.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures of one name that cost nothing yet: people mistype.
pub const FREE_FAILURES_OF_NAME: u32 = 5;
/// Failures from one address that cost nothing yet: an office, or a proxy that nobody told the
/// server about, is one address. Also the logins that may be under way from there at once.
pub const FREE_FAILURES_OF_ADDRESS: u32 = 100;
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
pub struct Throttle {
    free_failures: u32,
    failures: Mutex<HashMap<String, Failures>>,
}

impl Throttle {
    /// Nobody waits before there are this many failures of a key.
    pub fn new(free_failures: u32) -> Self {
        Self { free_failures, failures: Mutex::default() }
    }

    /// Begins an attempt: it counts as failed until [`Throttle::succeeded`] or
    /// [`Throttle::forgive`], so that a thousand at once count too.
    ///
    /// # Errors
    /// How long the key must still wait; such an attempt is not counted.
    pub fn attempt(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let mut all = self.failures.lock();
        match all.get(key).and_then(|failures| failures.wait(self.free_failures, now)) {
            Some(wait) => Err(wait),
            None => {
                count(&mut all, key, now);
                Ok(())
            }
        }
    }

    /// Forgets all failures of the key.
    pub fn succeeded(&self, key: &str) {
        self.failures.lock().remove(key);
    }

    /// Takes one attempt back. For keys that many share: the success of one says nothing of the
    /// others, who may be guessing.
    pub fn forgive(&self, key: &str) {
        let mut all = self.failures.lock();
        if let Some(failures) = all.get_mut(key) {
            failures.count = failures.count.saturating_sub(1);
            if failures.count == 0 {
                all.remove(key);
            }
        }
    }
}

impl Failures {
    fn wait(self, free_failures: u32, now: Instant) -> Option<Duration> {
        let over = self.count.checked_sub(free_failures)?;
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
