//! The source of a request and what it is part of, as set by a server in front of this one.
//!
//! It is in the extensions of a request, which no client can set. Without it the request's own
//! headers and connection are used.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use http::header::USER_AGENT;

/// The number of characters of a user agent that are recorded.
const USER_AGENT_LENGTH_MAX: usize = 1024;

/// The source of a request. Clones belong to the same request and share what was recorded.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The client first, the peer of the connection last.
    addresses: Vec<IpAddr>,
    user_agent: String,
    /// The request is an internal read of the server, and causes no event.
    is_silent: bool,
    recorded: Arc<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    read: AtomicBool,
    write: AtomicBool,
}

impl Origin {
    /// Creates an origin. `addresses` has the client first and the peer of the connection last;
    /// they are trusted.
    pub fn new(addresses: Vec<IpAddr>, headers: &HeaderMap) -> Self {
        Self { addresses, user_agent: user_agent(headers), ..Self::default() }
    }

    /// Creates an origin whose requests are not recorded.
    pub fn silent() -> Self {
        Self { is_silent: true, ..Self::default() }
    }

    /// Whether requests of this origin are not recorded.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The address of the client, if known.
    pub fn sender(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// The `sourceIPs` of an event: the client first, the peer of the connection last.
    pub fn source_ips(&self) -> Vec<String> {
        self.addresses.iter().map(IpAddr::to_string).collect()
    }

    /// The truncated user agent; empty when the client sent none.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// Whether an event was recorded for the request: the event of a change if `changes`, else any
    /// event.
    pub fn is_recorded(&self, changes: bool) -> bool {
        let write = self.recorded.write.load(Ordering::Relaxed);
        write || (!changes && self.recorded.read.load(Ordering::Relaxed))
    }

    /// Marks that an event with this verb was recorded.
    pub(super) fn record(&self, verb: &str) {
        let reads = matches!(verb, "get" | "list" | "watch" | "head" | "options");
        let flag = if reads { &self.recorded.read } else { &self.recorded.write };
        flag.store(true, Ordering::Relaxed);
    }
}

/// The truncated user agent.
pub(super) fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.chars().take(USER_AGENT_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_event_of_a_change_records_a_change() {
        let origin = Origin::new(Vec::new(), &HeaderMap::new());
        assert!(!origin.is_recorded(false));
        origin.clone().record("get");
        assert!(origin.is_recorded(false));
        assert!(
            !origin.is_recorded(true),
            "a read before a refused write does not record the write"
        );
        origin.record("create");
        assert!(origin.is_recorded(true));
    }
}
