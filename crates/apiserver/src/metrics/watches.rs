//! The metrics of watches.

use prometheus::{IntCounterVec, Registry};

use super::counters;

const LABELS: [&str; 3] = ["group", "resource", "version"];

/// Events of watches, by resource.
pub struct Watches {
    /// Sent to clients.
    pub events: IntCounterVec,
    /// Encoded: an encoding that several watches share counts once.
    pub encodings: IntCounterVec,
}

impl Watches {
    /// Registers the metrics.
    pub fn new(all: &Registry) -> Self {
        Self {
            events: counters(
                all,
                "apiserver_watch_events_total",
                "Events sent to watches.",
                &LABELS,
            ),
            encodings: counters(
                all,
                "apiserver_watch_encodings_total",
                "Events encoded for watches: once for all watches of the same encoding.",
                &LABELS,
            ),
        }
    }
}
