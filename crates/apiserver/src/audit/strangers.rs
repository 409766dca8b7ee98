//! Limits the events of callers without credentials: anybody can send many requests, and their
//! events would displace those of others.
//!
//! Each address (IPv6: each /64) has a budget per minute, and so have all together. Failed logins
//! have a separate budget, so that no flood of other requests hides them. Events above the budget
//! are counted, and one event reports their number.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use api_meta::audit::AuditEvent;
use api_meta::network;

/// The time to which a budget applies.
pub const WINDOW: Duration = Duration::from_secs(60);
/// The number of events per address and window, for logins and for all others each.
pub const PER_ADDRESS_MAX: u32 = 30;
/// The number of events of all addresses per window, for logins and for all others each: about 120
/// MB a day, and never more than 300.
pub const IN_ALL_MAX: u32 = 60;
/// The size of a recorded path with its query, and of a user agent, in bytes.
pub const TEXT_BYTES_MAX: usize = 512;
/// The number of addresses in the summary, those with most events first.
const NAMED_MAX: usize = 16;
/// The number of addresses whose suppressed events are counted separately.
const COUNTED_MAX: usize = 1024;

/// The suppressed events of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of suppressed events.
    pub total: u64,
    /// The number of suppressed events by kind.
    pub by_event: BTreeMap<AuditEvent, u64>,
    /// The addresses with most suppressed events, in descending order.
    pub addresses: Vec<IpAddr>,
    /// When the window began.
    pub since: jiff::Timestamp,
}

/// The budgets of the current window.
#[derive(Debug)]
pub struct Strangers {
    since: (Instant, jiff::Timestamp),
    /// The number of written events by network, and whether they are logins. Never more than
    /// [`IN_ALL_MAX`] of each.
    written: HashMap<(Option<IpAddr>, bool), u32>,
    in_all: [u32; 2],
    suppressed: BTreeMap<AuditEvent, u64>,
    by_address: HashMap<IpAddr, u64>,
}

impl Strangers {
    /// Begins a window with full budgets at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            since: (now, jiff::Timestamp::now()),
            written: HashMap::new(),
            in_all: [0; 2],
            suppressed: BTreeMap::new(),
            by_address: HashMap::new(),
        }
    }

    /// Whether the budgets allow an event, which then uses them. Otherwise the event is counted.
    pub fn admit(&mut self, address: Option<IpAddr>, event: AuditEvent) -> bool {
        let is_login = matches!(event, AuditEvent::LoginRefused | AuditEvent::LoginSlowed);
        let in_all = &mut self.in_all[usize::from(is_login)];
        let key = (address.map(network::customer), is_login);
        let here = self.written.get(&key).copied().unwrap_or_default();
        if *in_all < IN_ALL_MAX && here < PER_ADDRESS_MAX {
            *in_all += 1;
            self.written.insert(key, here + 1);
            return true;
        }
        *self.suppressed.entry(event).or_default() += 1;
        if let Some(address) = address
            && (self.by_address.len() < COUNTED_MAX || self.by_address.contains_key(&address))
        {
            *self.by_address.entry(address).or_default() += 1;
        }
        false
    }

    /// Begins the next window if the current one is over, or in any case if `end`. Returns the
    /// summary of the ended window if events were suppressed in it.
    pub fn begin_window(&mut self, now: Instant, end: bool) -> Option<Summary> {
        if !end && now.duration_since(self.since.0) < WINDOW {
            return None;
        }
        let ended = std::mem::replace(self, Self::new(now));
        if ended.suppressed.is_empty() {
            return None;
        }
        let mut addresses: Vec<(IpAddr, u64)> = ended.by_address.into_iter().collect();
        addresses.sort_by_key(|(address, count)| (std::cmp::Reverse(*count), *address));
        addresses.truncate(NAMED_MAX);
        Some(Summary {
            total: ended.suppressed.values().sum(),
            by_event: ended.suppressed,
            addresses: addresses.into_iter().map(|(address, _)| address).collect(),
            since: ended.since.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_from_one_address_writes_few_events_and_hides_no_other_address() {
        let begun = Instant::now();
        let mut strangers = Strangers::new(begun);
        let attacker: IpAddr = "203.0.113.9".parse().unwrap();
        let refused = AuditEvent::CredentialRefused;
        let written = (0..10_000).filter(|_| strangers.admit(Some(attacker), refused)).count();
        assert_eq!(written, PER_ADDRESS_MAX as usize);
        assert!(strangers.admit(Some("198.51.100.1".parse().unwrap()), refused));
        assert!(strangers.admit(Some(attacker), AuditEvent::LoginRefused));
        assert_eq!(strangers.begin_window(begun + WINDOW / 2, false), None);
        let summary = strangers.begin_window(begun + WINDOW, false).unwrap();
        assert_eq!(summary.total, 10_000 - u64::from(PER_ADDRESS_MAX));
        assert_eq!(summary.by_event[&refused], summary.total);
        assert_eq!(summary.addresses, [attacker]);
        assert!(strangers.admit(Some(attacker), refused), "the next minute has a budget again");
        assert_eq!(strangers.begin_window(begun + WINDOW, true), None);
    }

    #[test]
    fn many_addresses_have_one_budget_and_bounded_memory() {
        let begun = Instant::now();
        let mut strangers = Strangers::new(begun);
        let address = |n: u32| Some(IpAddr::V4(n.into()));
        let refused = AuditEvent::CredentialRefused;
        let written = (0..100_000).filter(|n| strangers.admit(address(*n), refused)).count();
        assert_eq!(written, IN_ALL_MAX as usize);
        assert!(strangers.by_address.len() <= COUNTED_MAX);
        assert!(strangers.written.len() <= IN_ALL_MAX as usize);
        let summary = strangers.begin_window(begun, true).unwrap();
        assert_eq!(summary.total, 100_000 - u64::from(IN_ALL_MAX));
        assert_eq!(summary.addresses.len(), NAMED_MAX);
    }

    #[test]
    fn a_network_of_one_customer_is_one_address() {
        let mut strangers = Strangers::new(Instant::now());
        let address = |n: u32| format!("2001:db8::{n:x}").parse().ok();
        let written =
            (0..100).filter(|n| strangers.admit(address(*n), AuditEvent::Request)).count();
        assert_eq!(written, PER_ADDRESS_MAX as usize);
    }
}
