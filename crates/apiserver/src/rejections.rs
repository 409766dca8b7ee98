//! What was rejected because a limit was reached, so that an operator sees a flood while it lasts: the metric
//! `drover_rejected_total{limit="…"}`.
//!
//! Counted for the process, as the other figures of a process are: limits of connections and bodies know no server.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counts what one limit rejected.
pub struct Rejections {
    /// The value of the label.
    limit: &'static str,
    count: AtomicU64,
}

impl Rejections {
    pub const fn of(limit: &'static str) -> Self {
        Self { limit, count: AtomicU64::new(0) }
    }

    /// Counts one more.
    pub fn count(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Connections that were closed or refused before anybody had authenticated on them.
pub static CONNECTIONS: Rejections = Rejections::of("connections");
/// Requests over the limit of a connection on which nobody has authenticated.
pub static STREAMS: Rejections = Rejections::of("connection_streams");
/// Heads of requests that are no HTTP/1.1, or for which there was no room.
pub static HEADS: Rejections = Rejections::of("request_heads");
/// Bodies for which there was no room.
pub static BODIES: Rejections = Rejections::of("request_bodies");
/// Bodies that came too slowly.
pub static SLOW_BODIES: Rejections = Rejections::of("slow_request_bodies");
/// Requests without credentials, over the limit of an address or of all.
pub static ANONYMOUS: Rejections = Rejections::of("anonymous_requests");

static OWN: [&Rejections; 6] = [&CONNECTIONS, &STREAMS, &HEADS, &BODIES, &SLOW_BODIES, &ANONYMOUS];

type Reader = (&'static str, fn() -> u64);
static OTHERS: Mutex<Vec<Reader>> = Mutex::new(Vec::new());

/// Shows what other engines count. A limit that is known already stays as it is.
pub fn show(limit: &'static str, read: fn() -> u64) {
    let mut others = OTHERS.lock();
    if others.iter().all(|(known, _)| *known != limit) {
        others.push((limit, read));
    }
}

/// All limits, and how often each rejected something since the process began.
pub fn all() -> Vec<(&'static str, u64)> {
    let own = OWN.iter().map(|one| (one.limit, one.count.load(Ordering::Relaxed)));
    own.chain(OTHERS.lock().iter().map(|(limit, read)| (*limit, read()))).collect()
}
