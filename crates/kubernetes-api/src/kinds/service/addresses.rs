//! The addresses and node ports of one cluster's services.
//!
//! Taken is what stored services have, which [`follow`] keeps up with, and for a while what a write was
//! given that may not be stored yet.

pub mod follow;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use apiserver::fields::{items, str_of};
use apiserver::service_range::ServiceRange;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The service of the API itself.
const RESERVED_OWNER: &str = "default/kubernetes";
const NODE_PORT_START: u16 = 30_000;
const NODE_PORT_END: u16 = 32_767;
/// Places tried for a free one.
const ATTEMPTS_MAX: u32 = 4096;
/// A write that is not stored by then failed. Longer than any write may take.
const GIVEN_FOR: Duration = Duration::from_secs(120);

const RANGE_FULL: &str = "range is full";

/// What a service can have and no other at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Address(u32),
    /// By protocol.
    Port(String, u16),
}

struct Claim {
    owner: String,
    /// Of a write that may not be stored.
    until: Option<Instant>,
}

#[derive(Default)]
struct Taken {
    claims: HashMap<Place, Claim>,
    /// What stored services have, by owner.
    stored: HashMap<String, Vec<Place>>,
    /// What writes were given, soonest to end first.
    given: VecDeque<(Instant, Place)>,
}

/// See the module. An owner is a service: `namespace/name`.
#[derive(Default)]
pub struct Addresses {
    range: ServiceRange,
    taken: Mutex<Taken>,
    /// Reaches who follows the stored services.
    follower: OnceLock<mpsc::Sender<oneshot::Sender<()>>>,
}

impl Addresses {
    /// Those of `range`, all free.
    pub fn new(range: ServiceRange) -> Self {
        Self { range, ..Self::default() }
    }

    /// Waits until what is stored now is known, so that what a deleted service had is free.
    pub(super) async fn caught_up(&self) {
        let Some(follower) = self.follower.get() else { return };
        let (done, caught_up) = oneshot::channel();
        if follower.send(done).await.is_ok() {
            let _ = caught_up.await;
        }
    }

    /// The address of `owner`: `wanted`, or a free one when that is empty.
    pub(super) fn address(
        &self,
        owner: &str,
        wanted: &str,
        dry_run: bool,
    ) -> Result<String, String> {
        let mut taken = self.taken.lock();
        let range = self.range;
        let reserved = u32::from(range.api_address());
        let free = |taken: &Taken, address: u32| {
            (address != reserved || owner == RESERVED_OWNER)
                && taken.is_free(&Place::Address(address), owner)
        };
        let address = if wanted.is_empty() {
            (0..ATTEMPTS_MAX)
                .map(|attempt| range.start() + 2 + draw(owner, attempt) % (range.size() - 4))
                .find(|address| free(&taken, *address))
                .ok_or(RANGE_FULL)?
        } else {
            let Ok(address) = wanted.parse::<Ipv4Addr>() else {
                // Another family: kept as it is.
                return Ok(wanted.to_owned());
            };
            let number = u32::from(address);
            if !range.contains(address) {
                return Err(format!(
                    "failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the \
                     valid range. The range of valid IPs is {range}"
                ));
            }
            if !free(&taken, number) {
                return Err(format!(
                    "failed to allocate IP {wanted}: provided IP is already allocated"
                ));
            }
            number
        };
        if !dry_run {
            taken.give(Place::Address(address), owner);
        }
        Ok(Ipv4Addr::from(address).to_string())
    }

    /// A node port of `owner`: `wanted`, or a free one that is not among `others` when that is 0.
    pub(super) fn node_port(
        &self,
        owner: &str,
        protocol: &str,
        wanted: i64,
        others: &HashSet<u16>,
        dry_run: bool,
    ) -> Result<u16, String> {
        let mut taken = self.taken.lock();
        let free = |taken: &Taken, port: u16| {
            taken.is_free(&Place::Port(protocol.to_owned(), port), owner)
        };
        let count = u32::from(NODE_PORT_END - NODE_PORT_START) + 1;
        let port = if wanted == 0 {
            (0..ATTEMPTS_MAX)
                .map(|attempt| {
                    let offset = draw(owner, attempt) % count;
                    NODE_PORT_START + u16::try_from(offset).expect("below the range's size")
                })
                .find(|port| free(&taken, *port) && !others.contains(port))
                .ok_or(RANGE_FULL)?
        } else {
            let port = u16::try_from(wanted).unwrap_or_default();
            if !(NODE_PORT_START..=NODE_PORT_END).contains(&port) {
                return Err(format!(
                    "provided port is not in the valid range. The range of valid ports is \
                     {NODE_PORT_START}-{NODE_PORT_END}"
                ));
            }
            if !free(&taken, port) {
                return Err("provided port is already allocated".to_owned());
            }
            port
        };
        if !dry_run {
            taken.give(Place::Port(protocol.to_owned(), port), owner);
        }
        Ok(port)
    }
}

impl Taken {
    fn is_free(&self, place: &Place, owner: &str) -> bool {
        let is_over = |claim: &Claim| claim.until.is_some_and(|until| until <= Instant::now());
        self.claims.get(place).is_none_or(|claim| claim.owner == owner || is_over(claim))
    }

    /// To a write.
    fn give(&mut self, place: Place, owner: &str) {
        let now = Instant::now();
        while self.given.front().is_some_and(|(until, _)| *until <= now) {
            let Some((_, place)) = self.given.pop_front() else { break };
            let is_over = |claim: &Claim| claim.until.is_some_and(|until| until <= now);
            if self.claims.get(&place).is_some_and(is_over) {
                self.claims.remove(&place);
            }
        }
        let is_stored = |claim: &Claim| claim.until.is_none() && claim.owner == owner;
        if self.claims.get(&place).is_some_and(is_stored) {
            return;
        }
        let until = now + GIVEN_FOR;
        self.claims.insert(place.clone(), Claim { owner: owner.to_owned(), until: Some(until) });
        self.given.push_back((until, place));
    }

    /// A service is stored with these, and has nothing else any more.
    fn hold(&mut self, owner: &str, places: Vec<Place>) {
        self.release(owner);
        for place in &places {
            let claim = Claim { owner: owner.to_owned(), until: None };
            self.claims.insert(place.clone(), claim);
        }
        self.stored.insert(owner.to_owned(), places);
    }

    /// What a service was stored with is free.
    fn release(&mut self, owner: &str) {
        for place in self.stored.remove(owner).unwrap_or_default() {
            let is_its = |claim: &Claim| claim.until.is_none() && claim.owner == owner;
            if self.claims.get(&place).is_some_and(is_its) {
                self.claims.remove(&place);
            }
        }
    }
}

/// What a service has.
fn places(service: &Value) -> Vec<Place> {
    let spec = &service["spec"];
    let addresses = items(&spec["clusterIPs"]).iter().map(str_of);
    let addresses = addresses.filter_map(|address| address.parse::<Ipv4Addr>().ok());
    let port = |protocol: &str, number: &Value| {
        let number = number.as_u64().and_then(|number| u16::try_from(number).ok())?;
        (number != 0).then(|| Place::Port(protocol.to_owned(), number))
    };
    let ports = items(&spec["ports"]).iter();
    let ports = ports.filter_map(|one| port(str_of(&one["protocol"]), &one["nodePort"]));
    let health = port("TCP", &spec["healthCheckNodePort"]);
    addresses.map(|address| Place::Address(address.into())).chain(ports).chain(health).collect()
}

/// The same owner draws the same places in every run.
fn draw(owner: &str, attempt: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    (owner, attempt).hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).expect("half of 64 bits")
}
