//! The resources that the process uses, read from `/proc` when metrics are collected.

use prometheus::{Gauge, Opts, Registry};

/// Clock ticks in a second, as `/proc` counts them; fixed for programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes in a page where `/proc` counts pages.
const PAGE_SIZE: f64 = 4096.0;

/// The `process_*` metrics, named like those of the Go client of Prometheus.
pub struct Process {
    cpu: prometheus::Counter,
    resident: Gauge,
    virtual_size: Gauge,
    open_files: Gauge,
    files_max: Gauge,
    started: Gauge,
}

impl Process {
    /// Registers the metrics.
    pub fn new(all: &Registry) -> Self {
        let gauge = |name: &str, help: &str| made!(all, Gauge::new(name, help));
        Self {
            cpu: made!(
                all,
                prometheus::Counter::with_opts(Opts::new(
                    "process_cpu_seconds_total",
                    "Processor time that the process has used.",
                ))
            ),
            resident: gauge("process_resident_memory_bytes", "Memory that is in use."),
            virtual_size: gauge("process_virtual_memory_bytes", "Address space that is in use."),
            open_files: gauge("process_open_fds", "Open file descriptors."),
            files_max: gauge("process_max_fds", "File descriptors that may be open."),
            started: gauge("process_start_time_seconds", "When it was started, in unix seconds."),
        }
    }

    /// Updates the figures. Those that cannot be read stay unchanged.
    pub fn update(&self) {
        if let Some(stat) = read("/proc/self/stat").as_deref().and_then(Stat::parse) {
            self.cpu.inc_by((stat.cpu_seconds - self.cpu.get()).max(0.0));
            self.resident.set(stat.resident_bytes);
            self.virtual_size.set(stat.virtual_bytes);
            let boot = read("/proc/stat").as_deref().and_then(boot_time);
            if let Some(boot) = boot {
                self.started.set(boot + stat.started_after_boot);
            }
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            // One of them belongs to this reading itself.
            self.open_files.set((entries.count() as f64 - 1.0).max(0.0));
        }
        if let Some(max) = read("/proc/self/limits").as_deref().and_then(files_max) {
            self.files_max.set(max);
        }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    started_after_boot: f64,
}

impl Stat {
    /// See proc_pid_stat(5). The program's name, in parentheses, may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (number(11)? + number(12)?) / TICKS_PER_SECOND,
            started_after_boot: number(19)? / TICKS_PER_SECOND,
            virtual_bytes: number(20)?,
            resident_bytes: number(21)? * PAGE_SIZE,
        })
    }
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn files_max(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_in_program_names_do_not_break_parsing() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 1000 8192 3 0";
        let stat = Stat {
            cpu_seconds: 3.0,
            started_after_boot: 10.0,
            virtual_bytes: 8192.0,
            resident_bytes: 12288.0,
        };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(boot_time("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(files_max("Max open files            1024      4096    files\n"), Some(1024.0));
    }
}
