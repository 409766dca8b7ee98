//! Counters of other engines in this process, which `/metrics` contains beside those of this
//! server.

use parking_lot::Mutex;
use prometheus::IntCounter;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;

/// A counter of another engine.
pub struct ExternalCounter {
    /// Name of the metric.
    pub name: &'static str,
    /// Its description in the text format.
    pub help: &'static str,
    /// The count since the process started.
    pub read: fn() -> u64,
}

static ALL: Mutex<Vec<ExternalCounter>> = Mutex::new(Vec::new());

/// Adds a counter to `/metrics`. A counter whose name is registered already is ignored.
pub fn register(counter: ExternalCounter) {
    let mut all = ALL.lock();
    if all.iter().all(|registered| registered.name != counter.name) {
        all.push(counter);
    }
}

pub(super) fn families() -> Vec<MetricFamily> {
    let all = ALL.lock();
    let families = all.iter().flat_map(|counter| {
        let collected = IntCounter::new(counter.name, counter.help).expect("names are constants");
        collected.inc_by((counter.read)());
        collected.collect()
    });
    families.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_registered_twice_is_exported_once() {
        for _ in 0..2 {
            register(ExternalCounter { name: "drover_test_total", help: "Of a test.", read: || 7 });
        }
        let text = crate::metrics::Metrics::default().text();
        assert_eq!(text.matches("drover_test_total 7\n").count(), 1, "{text}");
    }
}
