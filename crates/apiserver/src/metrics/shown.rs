//! Counters of other engines in this process, beside this server's own.

use parking_lot::Mutex;
use prometheus::IntCounter;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;

/// A counter since the process began.
pub struct Shown {
    pub name: &'static str,
    pub help: &'static str,
    pub read: fn() -> u64,
}

static ALL: Mutex<Vec<Shown>> = Mutex::new(Vec::new());

/// Shows a counter in `/metrics`. One whose name is known already stays as it is.
pub fn show(counter: Shown) {
    let mut all = ALL.lock();
    if all.iter().all(|known| known.name != counter.name) {
        all.push(counter);
    }
}

pub(super) fn families() -> Vec<MetricFamily> {
    let all = ALL.lock();
    let families = all.iter().flat_map(|shown| {
        let counter = IntCounter::new(shown.name, shown.help).expect("names are constants");
        counter.inc_by((shown.read)());
        counter.collect()
    });
    families.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_in_the_text_once() {
        for _ in 0..2 {
            show(Shown { name: "drover_test_total", help: "Of a test.", read: || 7 });
        }
        let text = crate::metrics::Metrics::default().text();
        assert_eq!(text.matches("drover_test_total 7\n").count(), 1, "{text}");
    }
}
