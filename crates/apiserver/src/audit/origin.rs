//! Where a request really comes from, and what it is part of, for a server that stands in front of this one.
//!
//! In the extensions of a request, where no client can put it. Without it the request's own headers and connection
//! count.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use http::header::USER_AGENT;

/// Characters of a client's name for itself; the rest is cut.
const USER_AGENT_LENGTH_MAX: usize = 1024;

/// See the module. Clones are of the same request.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The caller first, the other end of the connection last.
    addresses: Vec<IpAddr>,
    user_agent: String,
    /// The request is the server's own way to learn what changed, and no event.
    is_silent: bool,
    recorded: Arc<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    read: AtomicBool,
    write: AtomicBool,
}

impl Origin {
    /// `addresses`: the caller first, the other end of the connection last. They are believed.
    pub fn new(addresses: Vec<IpAddr>, headers: &HeaderMap) -> Self {
        Self { addresses, user_agent: user_agent(headers), ..Self::default() }
    }

    /// Nothing is recorded of requests with it.
    pub fn silent() -> Self {
        Self { is_silent: true, ..Self::default() }
    }

    /// Whether it is the server's own way to learn what changed, and leaves no event.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Who sent it, as far as it is known.
    pub fn sender(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// As `sourceIPs` of an event: the caller first, the other end of the connection last.
    pub fn source_ips(&self) -> Vec<String> {
        self.addresses.iter().map(IpAddr::to_string).collect()
    }

    /// What the client calls itself, cut; empty when it does not say.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// Whether an event was recorded of what was done with it: of a change if it `changes` something, else of
    /// anything.
    pub fn is_recorded(&self, changes: bool) -> bool {
        let write = self.recorded.write.load(Ordering::Relaxed);
        write || (!changes && self.recorded.read.load(Ordering::Relaxed))
    }

    /// Notes that an event was recorded.
    pub(super) fn record(&self, verb: &str) {
        let reads = matches!(verb, "get" | "list" | "watch" | "head" | "options");
        let flag = if reads { &self.recorded.read } else { &self.recorded.write };
        flag.store(true, Ordering::Relaxed);
    }
}

/// What the client calls itself, cut.
pub(super) fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.chars().take(USER_AGENT_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_recorded_by_an_event_of_a_change_only() {
        let origin = Origin::new(Vec::new(), &HeaderMap::new());
        assert!(!origin.is_recorded(false));
        origin.clone().record("get");
        assert!(origin.is_recorded(false));
        assert!(
            !origin.is_recorded(true),
            "a read before a refused write is no trace of the write"
        );
        origin.record("create");
        assert!(origin.is_recorded(true));
    }
}
