//! Limits of login attempts: passwords cannot be guessed without end, and guessing does not lock
//! out the owner.
//!
//! | Counted by | Limit |
//! |---|---|
//! | login name and address | [`FREE_FAILURES_OF_PAIR`], then a wait that doubles from 1 s to 5 min |
//! | address, for all names | [`FREE_FAILURES_OF_ADDRESS`], then the same wait |
//! | login name, from all addresses | [`FAILURES_OF_NAME_AT_ONCE`], then one per [`FAILURE_OF_NAME_EVERY`] |
//!
//! An address from which the name has logged in before is known: only the first row applies to it,
//! so that attempts from other addresses cannot use up what its owner needs.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api_meta::network;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::throttle::{KEYS_MAX, Refusal, Throttle, ThrottleKey, ThrottlePolicy, ThrottledAttempt};

/// Failures of one name from one address without a wait: users mistype.
pub const FREE_FAILURES_OF_PAIR: u32 = 5;
/// Failures from one address without a wait: an office, or a proxy that the server is not
/// configured to trust, is one address.
pub const FREE_FAILURES_OF_ADDRESS: u32 = 100;
/// Concurrent or queued comparisons for logins from one unknown address. Small, so that no address
/// fills the queue of [`crate::Passwords`].
const STRANGERS_PER_ADDRESS: u32 = 2;
/// Failures of one name, from all unknown addresses, that may occur in a burst.
pub const FAILURES_OF_NAME_AT_ONCE: u32 = 100;
/// The interval at which one failure is allowed again: 1,800 guesses an hour at one name, from any
/// number of addresses.
pub const FAILURE_OF_NAME_EVERY: Duration = Duration::from_secs(2);
/// How long an address stays known after the last login of the name from it.
const KNOWN_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Known addresses of one name, the most recent ones. Limited per name, so that one user cannot
/// displace the addresses of others.
const KNOWN_PER_NAME_MAX: usize = 32;

/// Logins that were refused before their password was compared.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Logins that were refused before their password was compared, since the process started.
pub fn refused_count() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

pub(crate) fn count_refused() {
    REFUSED.fetch_add(1, Ordering::Relaxed);
}

/// The key of a peer's address, or of its network.
pub fn address_key(address: IpAddr) -> ThrottleKey {
    match network::customer(address) {
        IpAddr::V4(address) => ThrottleKey::new("address", &[&address.octets()]),
        IpAddr::V6(network) => ThrottleKey::new("network", &[&network.octets()]),
    }
}

/// See the module.
pub struct LoginThrottle {
    pairs: Throttle,
    addresses: Throttle,
    names: NameBudgets,
    known: KnownAddresses,
}

impl Default for LoginThrottle {
    fn default() -> Self {
        let pair = ThrottlePolicy {
            free_failures: FREE_FAILURES_OF_PAIR,
            under_way_max: FREE_FAILURES_OF_PAIR,
        };
        let address = ThrottlePolicy {
            free_failures: FREE_FAILURES_OF_ADDRESS,
            under_way_max: STRANGERS_PER_ADDRESS,
        };
        Self {
            pairs: Throttle::new(pair),
            addresses: Throttle::new(address),
            names: NameBudgets::default(),
            known: KnownAddresses::default(),
        }
    }
}

impl LoginThrottle {
    /// Starts a login, after others of the same name and address that are in progress.
    ///
    /// # Errors
    /// [`Refusal`]; such a login is not counted. Respond with 429.
    pub async fn attempt(
        &self,
        name: &str,
        address: Option<IpAddr>,
    ) -> Result<LoginAttempt<'_>, Refusal> {
        self.begin(name, address).await.inspect_err(|_| count_refused())
    }

    async fn begin(
        &self,
        name: &str,
        address: Option<IpAddr>,
    ) -> Result<LoginAttempt<'_>, Refusal> {
        let name = ThrottleKey::new("login", &[name.as_bytes()]);
        let address = address.map(address_key);
        let from = address.map_or([0; 16], ThrottleKey::bytes);
        let pair = ThrottleKey::new("login from", &[&name.bytes(), &from]);
        let is_known = self.known.contains(name, from);
        let of_address = match address {
            Some(address) if !is_known => Some(self.addresses.attempt(address).await?),
            _ => None,
        };
        let of_pair = self.pairs.attempt(pair).await?;
        let of_name = if is_known { None } else { Some(self.names.take(name)?) };
        Ok(LoginAttempt { throttle: self, name, from, of_pair, of_address, of_name, is_known })
    }
}

/// One login in progress. Dropped after [`LoginAttempt::begin`], it counts as failed; dropped
/// before, it does not count.
pub struct LoginAttempt<'a> {
    throttle: &'a LoginThrottle,
    name: ThrottleKey,
    from: [u8; 16],
    of_pair: ThrottledAttempt<'a>,
    of_address: Option<ThrottledAttempt<'a>>,
    of_name: Option<ReservedFailure<'a>>,
    is_known: bool,
}

impl LoginAttempt<'_> {
    /// Whether the name has logged in from this address before.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// The password is compared from now on: call it directly before.
    pub fn begin(&mut self) {
        self.of_pair.begin();
        self.of_address.iter_mut().for_each(ThrottledAttempt::begin);
        self.of_name.iter_mut().for_each(|reserved| reserved.is_spent = true);
    }

    /// The password was right. The address becomes known for the name.
    pub fn succeed(self) {
        self.throttle.known.insert(self.name, self.from);
        self.of_pair.succeed();
        // Other clients at this address may be guessing.
        self.of_address.into_iter().for_each(ThrottledAttempt::withdraw);
        self.of_name.into_iter().for_each(|mut reserved| reserved.is_spent = false);
    }
}

/// The failures that each name has left, as the time at which it has all of them again.
#[derive(Default)]
struct NameBudgets(Mutex<HashMap<ThrottleKey, Instant>>);

/// One reserved failure, released on drop unless it was spent.
struct ReservedFailure<'a> {
    budgets: &'a NameBudgets,
    name: ThrottleKey,
    is_spent: bool,
}

impl NameBudgets {
    fn take(&self, name: ThrottleKey) -> Result<ReservedFailure<'_>, Refusal> {
        let now = Instant::now();
        let mut full_at = self.0.lock();
        if full_at.len() >= KEYS_MAX {
            full_at.retain(|_, at| *at > now);
        }
        if full_at.len() >= KEYS_MAX && !full_at.contains_key(&name) {
            // The names with the fewest attempts are forgotten first.
            let least = full_at.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key);
            least.map(|key| full_at.remove(&key));
        }
        let entry = full_at.entry(name).or_insert(now);
        let next = (*entry).max(now) + FAILURE_OF_NAME_EVERY;
        let debt = next - now;
        let most = FAILURE_OF_NAME_EVERY * FAILURES_OF_NAME_AT_ONCE;
        if debt > most {
            return Err(Refusal::Slowed(debt - most));
        }
        *entry = next;
        Ok(ReservedFailure { budgets: self, name, is_spent: false })
    }
}

impl Drop for ReservedFailure<'_> {
    fn drop(&mut self) {
        if !self.is_spent
            && let Some(full_at) = self.budgets.0.lock().get_mut(&self.name)
        {
            *full_at -= FAILURE_OF_NAME_EVERY;
        }
    }
}

/// Addresses from which names have logged in, the latest last.
#[derive(Default)]
struct KnownAddresses(Mutex<HashMap<ThrottleKey, VecDeque<KnownAddress>>>);

/// An address, and when it was last logged in from.
type KnownAddress = ([u8; 16], Instant);

impl KnownAddresses {
    fn contains(&self, name: ThrottleKey, from: [u8; 16]) -> bool {
        let known = self.0.lock();
        let mut addresses = known.get(&name).into_iter().flatten();
        addresses.any(|(address, at)| *address == from && at.elapsed() < KNOWN_FOR)
    }

    fn insert(&self, name: ThrottleKey, from: [u8; 16]) {
        let now = Instant::now();
        let mut known = self.0.lock();
        if known.len() >= KEYS_MAX && !known.contains_key(&name) {
            let latest = |addresses: &VecDeque<KnownAddress>| addresses.back().map(|last| last.1);
            let oldest = known.iter().min_by_key(|(_, addresses)| latest(addresses));
            let oldest = oldest.map(|(name, _)| *name);
            oldest.map(|name| known.remove(&name));
        }
        let addresses = known.entry(name).or_default();
        addresses.retain(|(address, _)| *address != from);
        if addresses.len() >= KNOWN_PER_NAME_MAX {
            addresses.pop_front();
        }
        addresses.push_back((from, now));
    }
}

#[cfg(test)]
mod tests;
