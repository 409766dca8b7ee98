//! The metrics of mutating policies.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, Registry};

use super::{counters, histograms};

/// Seconds: the buckets of kube-apiserver for one expression.
const BUCKETS: &[f64] = &[0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const LABELS: [&str; 3] = ["policy", "policy_binding", "error_type"];

/// Evaluations of mutations.
pub struct Mutations {
    checks: IntCounterVec,
    durations: HistogramVec,
}

impl Mutations {
    /// Registers the metrics.
    pub fn new(all: &Registry) -> Self {
        Self {
            checks: counters(
                all,
                "apiserver_mutating_admission_policy_check_total",
                "Mutations of policies that were evaluated, by what came of them.",
                &LABELS,
            ),
            durations: histograms(
                all,
                "apiserver_mutating_admission_policy_check_duration_seconds",
                "Time that one mutation of a policy takes.",
                BUCKETS,
                &LABELS,
            ),
        }
    }

    /// Records one evaluation. The labels have the order of [`LABELS`].
    pub fn record(&self, labels: [&str; 3], took: Duration) {
        self.checks.with_label_values(&labels).inc();
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }
}
