//! Connections on which nobody has authenticated yet: how many there may be, from one address and in all, and which of
//! them yield when there are more.
//!
//! Whoever holds the most has the most to give: the connection that is closed is one of the address that has most of
//! them, the oldest that is idle. So a flood from some addresses keeps nobody out who comes from another, however fast
//! it opens connections anew.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api_meta::network;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rejections;

/// In all. Measured, one costs some 30 KiB once TLS is set up.
pub const STRANGERS_MAX: usize = 2_048;
/// From one address (IPv6: one /64). A load balancer that nobody told the server about is one address, with all agents
/// behind it.
pub const STRANGERS_PER_ADDRESS_MAX: usize = 512;
/// A connection this young is not closed for others, unless their address has fewer: its TLS handshake and its first
/// request take less.
const YOUNG: Duration = Duration::from_secs(1);
/// One with a request under way is left alone for this long.
const BUSY_SPARED: Duration = Duration::from_secs(5);

/// The connections. Cheap to clone.
#[derive(Clone, Default)]
pub struct Strangers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    count: usize,
    /// By address, by age.
    by_address: HashMap<Option<IpAddr>, BTreeMap<u64, Arc<Guest>>>,
}

struct Guest {
    since: Instant,
    under_way: AtomicUsize,
    is_known: AtomicBool,
    cut: CancellationToken,
}

/// One connection, until dropped.
pub struct Ticket {
    all: Strangers,
    address: Option<IpAddr>,
    number: u64,
    guest: Arc<Guest>,
}

/// One request of a connection, until dropped.
pub struct UnderWay(Arc<Guest>);

impl Strangers {
    /// Counts a new connection. Without an address (it comes from a trusted proxy, with many people behind it) it
    /// counts only in all.
    ///
    /// `None`: there are too many, and none that could yield.
    pub fn admit(&self, address: Option<IpAddr>) -> Option<Ticket> {
        let address = address.map(network::customer);
        let mut state = self.0.lock();
        let here = state.by_address.get(&address).map_or(0, BTreeMap::len);
        let is_crowded = address.is_some() && here >= STRANGERS_PER_ADDRESS_MAX;
        let has_room = if is_crowded {
            state.close_one_of(address)
        } else if state.count >= STRANGERS_MAX {
            state.close_one() || state.close_one_of_more_than(here + 1)
        } else {
            true
        };
        if !has_room {
            rejections::CONNECTIONS.count();
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.count += 1;
        let guest = Arc::new(Guest {
            since: Instant::now(),
            under_way: AtomicUsize::new(0),
            is_known: AtomicBool::new(false),
            cut: CancellationToken::new(),
        });
        state.by_address.entry(address).or_default().insert(number, guest.clone());
        Some(Ticket { all: self.clone(), address, number, guest })
    }

    /// Closes a connection on which nobody has authenticated, for one that needs its place. False when there is none.
    pub fn yield_one(&self) -> bool {
        self.0.lock().close_one()
    }
}

impl State {
    /// Closes one of the address that has most.
    fn close_one(&mut self) -> bool {
        let most = self.by_address.iter().max_by_key(|(_, guests)| guests.len());
        let most = most.map(|(address, _)| *address);
        most.is_some_and(|address| self.close_one_of(address))
    }

    fn close_one_of(&mut self, address: Option<IpAddr>) -> bool {
        let Some(guests) = self.by_address.get(&address) else { return false };
        // Their order is that of their age.
        let idle = guests.iter().find(|(_, guest)| guest.is_idle() && guest.is_older_than(YOUNG));
        let busy = || guests.iter().find(|(_, guest)| guest.is_older_than(BUSY_SPARED));
        let Some((&number, _)) = idle.or_else(busy) else { return false };
        self.close(address, number);
        true
    }

    /// Closes the oldest of the address that has most, if those are more than `count`. Proxies are spared: nobody knows
    /// how many people are behind one.
    fn close_one_of_more_than(&mut self, count: usize) -> bool {
        let of_one = self.by_address.iter().filter(|(address, _)| address.is_some());
        let most = of_one.max_by_key(|(_, guests)| guests.len());
        let Some((&address, guests)) = most.filter(|(_, guests)| guests.len() > count) else {
            return false;
        };
        let Some((&oldest, _)) = guests.first_key_value() else { return false };
        self.close(address, oldest);
        true
    }

    fn close(&mut self, address: Option<IpAddr>, number: u64) {
        if let Some(guest) = self.by_address.get(&address).and_then(|guests| guests.get(&number)) {
            guest.cut.cancel();
            rejections::CONNECTIONS.count();
        }
        self.remove(address, number);
    }

    fn remove(&mut self, address: Option<IpAddr>, number: u64) {
        let Some(guests) = self.by_address.get_mut(&address) else { return };
        if guests.remove(&number).is_some() {
            self.count -= 1;
        }
        if guests.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Guest {
    fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
    }

    fn is_older_than(&self, age: Duration) -> bool {
        self.since.elapsed() >= age
    }
}

impl Ticket {
    /// Somebody has authenticated on the connection: from now on it is none of these.
    pub fn authenticated(&self) {
        if !self.guest.is_known.swap(true, Ordering::Relaxed) {
            self.all.0.lock().remove(self.address, self.number);
        }
    }

    /// Whether somebody has authenticated on the connection; from then on it has no limits here.
    pub fn is_authenticated(&self) -> bool {
        self.guest.is_known.load(Ordering::Relaxed)
    }

    /// Counts a request. `None`: nobody has authenticated, and `under_way_max` are under way.
    pub fn begin(&self, under_way_max: usize) -> Option<UnderWay> {
        let before = self.guest.under_way.fetch_add(1, Ordering::Relaxed);
        let under_way = UnderWay(self.guest.clone());
        (before < under_way_max || self.is_authenticated()).then_some(under_way)
    }

    /// Waits until the connection must make room for another.
    pub async fn cut(&self) {
        self.guest.cut.cancelled().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_authenticated() {
            self.all.0.lock().remove(self.address, self.number);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
