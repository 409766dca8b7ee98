//! The addresses and node ports of one cluster's services.
//!
//! Known are those handed out or claimed since the start. An address is drawn from its owner's name
//! first, so that a restart finds the same one; a service that never changed since is not known,
//! and
//! a clash with it is possible but unlikely (one in a million per pair).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;

use parking_lot::Mutex;

/// 10.96.0.0/12, the usual range of services.
const RANGE_START: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const RANGE_SIZE: u32 = 1 << 20;
/// The service of the API itself has the first address.
const RESERVED: u32 = RANGE_START + 1;
const RESERVED_OWNER: &str = "default/kubernetes";
const NODE_PORT_START: u16 = 30_000;
const NODE_PORT_END: u16 = 32_767;
/// Places tried for a free one.
const ATTEMPTS_MAX: u32 = 4096;

#[derive(Default)]
pub struct Addresses {
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Owner by address.
    addresses: HashMap<u32, String>,
    /// Owner by protocol and port.
    ports: HashMap<(String, u16), String>,
}

impl Addresses {
    /// All addresses that are handed out.
    pub const RANGE: &str = "10.96.0.0/12";

    /// The address of `owner`: `wanted`, or a free one when that is empty.
    pub fn address(&self, owner: &str, wanted: &str, dry_run: bool) -> Result<String, String> {
        let mut taken = self.taken.lock();
        let free = |taken: &Taken, address: u32| {
            let mine = address != RESERVED || owner == RESERVED_OWNER;
            mine && taken.addresses.get(&address).is_none_or(|other| other == owner)
        };
        let address = if wanted.is_empty() {
            (0..ATTEMPTS_MAX)
                .map(|attempt| RANGE_START + 2 + draw(owner, attempt) % (RANGE_SIZE - 4))
                .find(|address| free(&taken, *address))
                .ok_or("range is full")?
        } else {
            let Ok(address) = wanted.parse::<Ipv4Addr>() else {
                // Another family: kept as it is.
                return Ok(wanted.to_owned());
            };
            let number = u32::from(address);
            if !(RANGE_START..RANGE_START + RANGE_SIZE).contains(&number) {
                return Err(format!(
                    "failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the \
                     valid range. The range of valid IPs is 10.96.0.0/12"
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
            taken.addresses.insert(address, owner.to_owned());
        }
        Ok(Ipv4Addr::from(address).to_string())
    }

    /// The node port of `owner`, one port of a service: `wanted`, or a free one when that is 0.
    pub fn node_port(
        &self,
        owner: &str,
        protocol: &str,
        wanted: i64,
        dry_run: bool,
    ) -> Result<u16, String> {
        let mut taken = self.taken.lock();
        let free = |taken: &Taken, port: u16| {
            let place = (protocol.to_owned(), port);
            taken.ports.get(&place).is_none_or(|other| other == owner)
        };
        let count = u32::from(NODE_PORT_END - NODE_PORT_START) + 1;
        let port = if wanted == 0 {
            (0..ATTEMPTS_MAX)
                .map(|attempt| {
                    let offset = draw(owner, attempt) % count;
                    NODE_PORT_START + u16::try_from(offset).expect("below the range's size")
                })
                .find(|port| free(&taken, *port))
                .ok_or("range is full")?
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
            taken.ports.insert((protocol.to_owned(), port), owner.to_owned());
        }
        Ok(port)
    }
}

/// The same owner draws the same places in every run.
fn draw(owner: &str, attempt: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    (owner, attempt).hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).expect("half of 64 bits")
}
