//! Counts what limits rejected, so that an operator sees a flood while it lasts: the metric
//! `drover_rejected_total{limit="…"}`.
//!
//! The counts are those of the process, like its other figures: limits of connections and bodies do
//! not know a server.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The number of rejections by one limit.
pub struct Rejections {
    /// The value of the label.
    limit: &'static str,
    count: AtomicU64,
}

impl Rejections {
    /// A counter with this value of the label `limit`.
    pub const fn of(limit: &'static str) -> Self {
        Self { limit, count: AtomicU64::new(0) }
    }

    /// Counts one rejection.
    pub fn count(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Connections that were closed or rejected before a caller had authenticated on them.
pub static CONNECTIONS: Rejections = Rejections::of("connections");
/// Requests over the limit of an unauthenticated connection.
pub static STREAMS: Rejections = Rejections::of("connection_streams");
/// Request heads that are not HTTP/1.1, or that found no buffer space.
pub static HEADS: Rejections = Rejections::of("request_heads");
/// Request bodies that found no buffer space.
pub static BODIES: Rejections = Rejections::of("request_bodies");
/// Request bodies that arrived too slowly.
pub static SLOW_BODIES: Rejections = Rejections::of("slow_request_bodies");
/// Requests without credentials, over the limit of an address or of the whole server.
pub static ANONYMOUS: Rejections = Rejections::of("anonymous_requests");

static OWN: [&Rejections; 6] = [&CONNECTIONS, &STREAMS, &HEADS, &BODIES, &SLOW_BODIES, &ANONYMOUS];

type CountReader = (&'static str, fn() -> u64);
static OTHERS: Mutex<Vec<CountReader>> = Mutex::new(Vec::new());

/// Adds the counter of another engine. A limit that is registered already is ignored.
pub fn register(limit: &'static str, read: fn() -> u64) {
    let mut others = OTHERS.lock();
    if others.iter().all(|(registered, _)| *registered != limit) {
        others.push((limit, read));
    }
}

/// All limits, with the number of their rejections since the process started.
pub fn all() -> Vec<(&'static str, u64)> {
    let own = OWN.iter().map(|one| (one.limit, one.count.load(Ordering::Relaxed)));
    own.chain(OTHERS.lock().iter().map(|(limit, read)| (*limit, read()))).collect()
}
