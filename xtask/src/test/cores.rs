//! The load of the processor cores, and a generator of load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Ticks of all cores since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    busy: u64,
    all: u64,
}

impl Cores {
    pub fn now() -> Self {
        // Without the file every share is 0; it is only displayed.
        Self::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// `cpu user nice system idle iowait irq softirq steal …`
    fn read(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        let all = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Self { busy: all - idle, all }
    }

    /// Percent of all cores that were busy since then, with any process.
    pub fn busy_since(before: Self) -> u64 {
        Self::now().busy_share(before)
    }

    fn busy_share(self, before: Self) -> u64 {
        let all = self.all.saturating_sub(before.all);
        (100 * self.busy.saturating_sub(before.busy)).checked_div(all).unwrap_or(0)
    }
}

/// Keeps cores busy until it is dropped.
pub struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    pub fn on(cores: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..cores {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stop)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_ticks_between_two_reads() {
        let before = Cores::read("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 …");
        let after = Cores::read("cpu  40 0 30 120 10 0 0 0 0 0\ncpu0 …");
        assert_eq!(after.busy_share(before), 50);
        assert_eq!(before.busy_share(before), 0);
    }
}
