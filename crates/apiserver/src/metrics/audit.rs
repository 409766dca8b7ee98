//! Counts audit events by outcome.

use prometheus::{IntCounter, IntCounterVec, Registry};

use super::counters;

/// The counters of audit events.
pub struct AuditCounts {
    /// Written or queued.
    pub events: IntCounter,
    /// Those of them whose request was not for this API, by the kind of the event.
    pub outside: IntCounterVec,
    /// Events of callers without credentials that were counted instead of written.
    pub suppressed: IntCounter,
    /// Events that did not reach the log.
    pub lost: IntCounterVec,
}

impl AuditCounts {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str| made!(registry, IntCounter::new(name, help));
        Self {
            events: counter("apiserver_audit_event_total", "Audit events handed to the log."),
            outside: counters(
                registry,
                "drover_audit_event_total",
                "Audit events of requests that were none of the Kubernetes API, by what they were.",
                &["event"],
            ),
            suppressed: counter(
                "drover_audit_suppressed_total",
                "Audit events of callers without credentials above their budget.",
            ),
            lost: counters(
                registry,
                "apiserver_audit_error_total",
                "Audit events that did not reach the log.",
                &["plugin"],
            ),
        }
    }
}
