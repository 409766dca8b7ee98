//! Unauthenticated connections: how many there may be, from one address and in all, and which of
//! them are closed when there are more.
//!
//! The closed connection belongs to the address with the most such connections: its oldest idle
//! one. A flood from some addresses therefore excludes no client from another address, however fast
//! it reconnects.

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

/// Unauthenticated connections in all. Measured, one costs some 30 KiB once TLS is set up.
pub const STRANGERS_MAX: usize = 2_048;
/// Unauthenticated connections from one address (IPv6: one /64). A load balancer that the server
/// does not know as a proxy is one address, with all agents behind it.
pub const STRANGERS_PER_ADDRESS_MAX: usize = 512;
/// A younger connection is not closed for others, unless their address has fewer: its TLS handshake
/// and its first request take less.
const YOUNG: Duration = Duration::from_secs(1);
/// A connection with an open request is spared for this long.
const BUSY_SPARED: Duration = Duration::from_secs(5);

/// The unauthenticated connections of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Strangers(Arc<Mutex<StrangersState>>);

#[derive(Default)]
struct StrangersState {
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

/// One connection, counted until dropped.
pub struct Ticket {
    all: Strangers,
    address: Option<IpAddr>,
    number: u64,
    guest: Arc<Guest>,
}

/// One request of a connection, counted until dropped.
pub struct UnderWay(Arc<Guest>);

impl Strangers {
    /// Counts a new connection. Without an address (it comes from a trusted proxy, with many users
    /// behind it) it counts only in all.
    ///
    /// `None` when there are too many, and none of them can be closed: close the new one.
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

    /// Closes one unauthenticated connection to make room. `false` when there is none.
    pub fn yield_one(&self) -> bool {
        self.0.lock().close_one()
    }
}

impl StrangersState {
    /// Closes a connection of the address that has most.
    fn close_one(&mut self) -> bool {
        let most = self.by_address.iter().max_by_key(|(_, guests)| guests.len());
        let most = most.map(|(address, _)| *address);
        most.is_some_and(|address| self.close_one_of(address))
    }

    fn close_one_of(&mut self, address: Option<IpAddr>) -> bool {
        let Some(guests) = self.by_address.get(&address) else { return false };
        // They are ordered by age.
        let idle = guests.iter().find(|(_, guest)| guest.is_idle() && guest.is_older_than(YOUNG));
        let busy = || guests.iter().find(|(_, guest)| guest.is_older_than(BUSY_SPARED));
        let Some((&number, _)) = idle.or_else(busy) else { return false };
        self.close(address, number);
        true
    }

    /// Closes the oldest connection of the address that has most, if it has more than `count`.
    /// Proxies are spared: the number of users behind one is unknown.
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
    /// Records that a caller has authenticated on the connection: it no longer counts here.
    pub fn mark_authenticated(&self) {
        if !self.guest.is_known.swap(true, Ordering::Relaxed) {
            self.all.0.lock().remove(self.address, self.number);
        }
    }

    /// Whether a caller has authenticated on the connection; from then on it has no limits here.
    pub fn is_authenticated(&self) -> bool {
        self.guest.is_known.load(Ordering::Relaxed)
    }

    /// Counts a request until the result is dropped. `None` when no caller has authenticated, and
    /// `under_way_max` requests are open already: reject the request.
    pub fn begin(&self, under_way_max: usize) -> Option<UnderWay> {
        let before = self.guest.under_way.fetch_add(1, Ordering::Relaxed);
        let under_way = UnderWay(self.guest.clone());
        (before < under_way_max || self.is_authenticated()).then_some(under_way)
    }

    /// Waits until the connection must be closed to make room for another one.
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
