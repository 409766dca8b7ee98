//! The addresses and node ports of one cluster's services.
//!
//! Allocated are those of stored services, which [`follow`] tracks, and for a limited time those of
//! writes that may not be stored yet.

pub mod follow;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use apiserver::fields::{items, str_of};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::service_range::ServiceRange;

/// The owner of the API's own service.
const RESERVED_OWNER: &str = "default/kubernetes";
const NODE_PORT_START: u16 = 30_000;
const NODE_PORT_END: u16 = 32_767;
/// Number of candidates that are tried.
const ATTEMPTS_MAX: u32 = 4096;
/// A write that is not stored by then has failed. Longer than any write can take.
const GIVEN_FOR: Duration = Duration::from_secs(120);

const RANGE_FULL: &str = "range is full";

/// An address or port that only one service can have at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Allocation {
    Address(u32),
    /// By protocol.
    Port(String, u16),
}

struct Claim {
    owner: String,
    /// When the reservation of a write that may not be stored ends.
    until: Option<Instant>,
}

#[derive(Default)]
struct Allocations {
    claims: HashMap<Allocation, Claim>,
    /// The allocations of stored services, by owner.
    stored: HashMap<String, Vec<Allocation>>,
    /// The reservations of writes, in the order in which they end.
    given: VecDeque<(Instant, Allocation)>,
}

/// The allocator of one cluster; see the module. An owner is a service: `namespace/name`.
#[derive(Default)]
pub struct Addresses {
    range: ServiceRange,
    allocations: Mutex<Allocations>,
    /// Sends requests to the follower of the stored services.
    follower: OnceLock<mpsc::Sender<oneshot::Sender<()>>>,
}

impl Addresses {
    /// An allocator for `range` without allocations.
    pub fn new(range: ServiceRange) -> Self {
        Self { range, ..Self::default() }
    }

    /// Waits until the follower has seen all stored services, so that the allocations of deleted
    /// services are free.
    pub(super) async fn wait_until_caught_up(&self) {
        let Some(follower) = self.follower.get() else { return };
        let (done, wait_until_caught_up) = oneshot::channel();
        if follower.send(done).await.is_ok() {
            let _ = wait_until_caught_up.await;
        }
    }

    /// Allocates an address for `owner`: `requested`, or a free one when that is empty.
    pub(super) fn address(
        &self,
        owner: &str,
        requested: &str,
        dry_run: bool,
    ) -> Result<String, String> {
        let mut allocations = self.allocations.lock();
        let range = self.range;
        let reserved = u32::from(range.api_address());
        let free = |allocations: &Allocations, address: u32| {
            (address != reserved || owner == RESERVED_OWNER)
                && allocations.is_free(&Allocation::Address(address), owner)
        };
        let address = if requested.is_empty() {
            (0..ATTEMPTS_MAX)
                .map(|attempt| range.start() + 2 + draw(owner, attempt) % (range.size() - 4))
                .find(|address| free(&allocations, *address))
                .ok_or(RANGE_FULL)?
        } else {
            let Ok(address) = requested.parse::<Ipv4Addr>() else {
                // An address of another family is returned unchanged.
                return Ok(requested.to_owned());
            };
            let number = u32::from(address);
            if !range.contains(address) {
                return Err(format!(
                    "failed to allocate IP {requested}: the provided IP ({requested}) is not in the \
                     valid range. The range of valid IPs is {range}"
                ));
            }
            if !free(&allocations, number) {
                return Err(format!(
                    "failed to allocate IP {requested}: provided IP is already allocated"
                ));
            }
            number
        };
        if !dry_run {
            allocations.reserve(Allocation::Address(address), owner);
        }
        Ok(Ipv4Addr::from(address).to_string())
    }

    /// Allocates a node port for `owner`: `requested`, or a free one that is not in `others` when
    /// that is 0.
    pub(super) fn node_port(
        &self,
        owner: &str,
        protocol: &str,
        requested: i64,
        others: &HashSet<u16>,
        dry_run: bool,
    ) -> Result<u16, String> {
        let mut allocations = self.allocations.lock();
        let free = |allocations: &Allocations, port: u16| {
            allocations.is_free(&Allocation::Port(protocol.to_owned(), port), owner)
        };
        let count = u32::from(NODE_PORT_END - NODE_PORT_START) + 1;
        let port = if requested == 0 {
            (0..ATTEMPTS_MAX)
                .map(|attempt| {
                    let offset = draw(owner, attempt) % count;
                    NODE_PORT_START + u16::try_from(offset).expect("below the range's size")
                })
                .find(|port| free(&allocations, *port) && !others.contains(port))
                .ok_or(RANGE_FULL)?
        } else {
            let port = u16::try_from(requested).unwrap_or_default();
            if !(NODE_PORT_START..=NODE_PORT_END).contains(&port) {
                return Err(format!(
                    "provided port is not in the valid range. The range of valid ports is \
                     {NODE_PORT_START}-{NODE_PORT_END}"
                ));
            }
            if !free(&allocations, port) {
                return Err("provided port is already allocated".to_owned());
            }
            port
        };
        if !dry_run {
            allocations.reserve(Allocation::Port(protocol.to_owned(), port), owner);
        }
        Ok(port)
    }
}

impl Allocations {
    fn is_free(&self, allocation: &Allocation, owner: &str) -> bool {
        let is_over = |claim: &Claim| claim.until.is_some_and(|until| until <= Instant::now());
        self.claims.get(allocation).is_none_or(|claim| claim.owner == owner || is_over(claim))
    }

    /// Reserves an allocation for a write.
    fn reserve(&mut self, allocation: Allocation, owner: &str) {
        let now = Instant::now();
        while self.given.front().is_some_and(|(until, _)| *until <= now) {
            let Some((_, allocation)) = self.given.pop_front() else { break };
            let is_over = |claim: &Claim| claim.until.is_some_and(|until| until <= now);
            if self.claims.get(&allocation).is_some_and(is_over) {
                self.claims.remove(&allocation);
            }
        }
        let is_stored = |claim: &Claim| claim.until.is_none() && claim.owner == owner;
        if self.claims.get(&allocation).is_some_and(is_stored) {
            return;
        }
        let until = now + GIVEN_FOR;
        self.claims
            .insert(allocation.clone(), Claim { owner: owner.to_owned(), until: Some(until) });
        self.given.push_back((until, allocation));
    }

    /// Records that a service is stored with exactly these allocations.
    fn hold(&mut self, owner: &str, places: Vec<Allocation>) {
        self.release(owner);
        for allocation in &places {
            let claim = Claim { owner: owner.to_owned(), until: None };
            self.claims.insert(allocation.clone(), claim);
        }
        self.stored.insert(owner.to_owned(), places);
    }

    /// Releases the allocations of a deleted service.
    fn release(&mut self, owner: &str) {
        for allocation in self.stored.remove(owner).unwrap_or_default() {
            let is_its = |claim: &Claim| claim.until.is_none() && claim.owner == owner;
            if self.claims.get(&allocation).is_some_and(is_its) {
                self.claims.remove(&allocation);
            }
        }
    }
}

/// The allocations of a service.
fn places(service: &Value) -> Vec<Allocation> {
    let spec = &service["spec"];
    let addresses = items(&spec["clusterIPs"]).iter().map(str_of);
    let addresses = addresses.filter_map(|address| address.parse::<Ipv4Addr>().ok());
    let port = |protocol: &str, number: &Value| {
        let number = number.as_u64().and_then(|number| u16::try_from(number).ok())?;
        (number != 0).then(|| Allocation::Port(protocol.to_owned(), number))
    };
    let ports = items(&spec["ports"]).iter();
    let ports = ports.filter_map(|one| port(str_of(&one["protocol"]), &one["nodePort"]));
    let health = port("TCP", &spec["healthCheckNodePort"]);
    addresses
        .map(|address| Allocation::Address(address.into()))
        .chain(ports)
        .chain(health)
        .collect()
}

/// The same owner draws the same candidates in every run.
fn draw(owner: &str, attempt: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    (owner, attempt).hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).expect("half of 64 bits")
}
