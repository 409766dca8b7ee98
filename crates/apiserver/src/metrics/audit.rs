//! Audit events, by what became of them.

use prometheus::{IntCounter, IntCounterVec, Registry};

use super::counters;

/// Counts them.
pub struct AuditCounts {
    /// Written or queued.
    pub events: IntCounter,
    /// Those of them whose request was none of this API, by what it was.
    pub outside: IntCounterVec,
    /// Of callers without credentials: counted instead of written.
    pub suppressed: IntCounter,
    /// Nobody will read them.
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
