//! What watches are counted by.

use prometheus::{IntCounterVec, Registry};

use super::counters;

const LABELS: [&str; 3] = ["group", "resource", "version"];

pub struct Watches {
    pub events: IntCounterVec,
    pub encodings: IntCounterVec,
}

impl Watches {
    pub fn new(all: &Registry) -> Self {
        Self {
            events: counters(
                all,
                "apiserver_watch_events_total",
                "Events sent to those who watch.",
                &LABELS,
            ),
            encodings: counters(
                all,
                "apiserver_watch_encodings_total",
                "Events encoded for those who watch: once for all who want the same form.",
                &LABELS,
            ),
        }
    }
}
