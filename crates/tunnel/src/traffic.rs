//! What the streams of this process have carried, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

static SENT: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicU64 = AtomicU64::new(0);
static STALLS: AtomicU64 = AtomicU64::new(0);

/// Bytes that streams have passed to their sessions to be sent, since the process started.
pub fn sent_bytes() -> u64 {
    SENT.load(Ordering::Relaxed)
}

/// Bytes that streams have received and their readers have read, since the process started.
pub fn received_bytes() -> u64 {
    RECEIVED.load(Ordering::Relaxed)
}

/// How often a stream had to wait before it could send, since the process started: the peer had not
/// read the earlier bytes, or the connection did not accept more.
pub fn stalls() -> u64 {
    STALLS.load(Ordering::Relaxed)
}

pub(crate) fn count_sent(bytes: usize) {
    SENT.fetch_add(bytes as u64, Ordering::Relaxed);
}

pub(crate) fn count_received(bytes: usize) {
    RECEIVED.fetch_add(bytes as u64, Ordering::Relaxed);
}

pub(crate) fn count_stall() {
    STALLS.fetch_add(1, Ordering::Relaxed);
}
