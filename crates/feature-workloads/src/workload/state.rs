//! The state of a workload in one word. Pure.

use jiff::Timestamp;
use rest_view::state::{Summary, Transitioning, summarise};
use serde_json::Value;

use super::kind::WorkloadKind;
use super::path::read_keys;

/// From the object's conditions, and from how many of its pods are ready.
pub fn of(kind: WorkloadKind, stored: &Value, now: Timestamp) -> Summary {
    let mut summary = summarise(stored, now);
    let removed = read_keys(stored, &["metadata", "deletionTimestamp"]).is_some();
    if removed || summary.transitioning == Transitioning::Error && !is_paused(kind, stored) {
        return summary;
    }
    if is_paused(kind, stored) {
        let (state, message) = ("paused".to_owned(), String::new());
        return Summary { state, transitioning: Transitioning::No, message };
    }
    let counts = match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => Some(("replicas", "readyReplicas")),
        WorkloadKind::DaemonSet => Some(("desiredNumberScheduled", "numberReady")),
        _ => None,
    };
    let Some((desired, ready)) = counts else { return summary };
    let count =
        |key: &str| read_keys(stored, &["status", key]).and_then(Value::as_i64).unwrap_or(0);
    // What is counted is of the generation that its controller has seen.
    let generation = read_keys(stored, &["metadata", "generation"]).and_then(Value::as_i64);
    let behind = generation.is_some_and(|generation| count("observedGeneration") < generation);
    if summary.transitioning == Transitioning::No && (behind || count(desired) != count(ready)) {
        summary.state = "updating".to_owned();
        summary.transitioning = Transitioning::Yes;
        summary.message = match behind {
            true => "its controller has not seen the last change yet".to_owned(),
            false => format!("{} of {} pods are ready", count(ready), count(desired)),
        };
    }
    summary
}

fn is_paused(kind: WorkloadKind, stored: &Value) -> bool {
    let paused = read_keys(stored, &["spec", "paused"]) == Some(&Value::Bool(true));
    kind == WorkloadKind::Deployment && paused
}
