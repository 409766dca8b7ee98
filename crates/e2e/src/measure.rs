//! Measurements of the release binaries from outside: numbers with their targets, as a table.
//!
//! A missed target is shown, not an error; a measurement that cannot be made is one. Each module
//! below measures one thing.

pub mod access;
pub mod apiserver;
pub mod fleet;
pub mod flood;
pub mod history;
pub mod kinds;
pub mod lists;
mod people;
pub mod provisioning;
pub mod proxied;
pub mod proxy;
pub mod rights;
pub mod start;
pub mod subscribers;

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::poll_until;

/// Memory is settled when it has stayed within [`SETTLED_RATIO`] for this many samples.
const SETTLED_LOOKS: usize = 8;
const SETTLED_INTERVAL: Duration = Duration::from_millis(500);
const SETTLED_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLED_RATIO: f64 = 1.02;
/// The kernel's unit of processor time, per second; the same on every current Linux machine.
const TICKS_PER_SECOND: f64 = 100.0;
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// The target of a number.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Has no target; shown to interpret the others.
    Context,
}

/// One number with its target.
#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub target: Target,
    /// The conditions: repetitions, sizes, concurrent load.
    pub note: String,
    /// Whether [`history`] records it. Numbers with a target are always recorded.
    pub is_recorded: bool,
}

impl Row {
    /// A number without a note. `unit` is that of `value` and of the target.
    #[must_use]
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str, target: Target) -> Self {
        Self { what: what.into(), value, unit, target, note: String::new(), is_recorded: false }
    }

    /// Adds the conditions of the measurement.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether [`history`] records a number that has no target.
    #[must_use]
    pub fn recorded(mut self, is_recorded: bool) -> Self {
        self.is_recorded = is_recorded;
        self
    }

    fn cells(&self) -> [String; 5] {
        let (target, ratio, missed) = match self.target {
            Target::AtMost(limit) => {
                (format!("≤ {limit} {}", self.unit), self.value / limit, self.value > limit)
            }
            Target::AtLeast(limit) => {
                (format!("≥ {limit} {}", self.unit), self.value / limit, self.value < limit)
            }
            Target::Context => (String::new(), 0.0, false),
        };
        let ratio = match self.target {
            Target::Context => String::new(),
            _ => format!("{ratio:.2}{}", if missed { " **missed**" } else { "" }),
        };
        let value = format!("{} {}", rounded(self.value), self.unit);
        [self.what.clone(), value, target, ratio, self.note.clone()]
    }
}

fn rounded(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// The rows as a Markdown table.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let head = ["measurement", "value", "target", "value / target", "how"].map(str::to_owned);
    let mut lines = vec![head, [(); 5].map(|()| "---".to_owned())];
    lines.extend(rows.iter().map(Row::cells));
    let mut text = String::new();
    for cells in lines {
        writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes everything");
    }
    text
}

/// Repeated measurements of one duration.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one measurement.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The value that `percent` of the samples do not exceed, in milliseconds.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(rank).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e3)
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The median in milliseconds; not a number without samples.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<T: IntoIterator<Item = Duration>>(samples: T) -> Self {
        Self(samples.into_iter().collect())
    }
}

/// Resident memory of a process in megabytes, once it has stopped changing.
///
/// # Errors
/// The process has ended, or its memory keeps changing.
pub fn settled_memory(process: u32) -> Result<f64> {
    let mut seen = Vec::new();
    poll_until(SETTLED_TIMEOUT, SETTLED_INTERVAL, || {
        seen.push(memory(process)?);
        let last = &seen[seen.len().saturating_sub(SETTLED_LOOKS)..];
        let (low, high) = last
            .iter()
            .fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)));
        anyhow::ensure!(
            last.len() == SETTLED_LOOKS && high <= low * SETTLED_RATIO,
            "memory still changes: {last:?}"
        );
        Ok(high)
    })
}

/// Resident memory of a process now, in megabytes.
///
/// # Errors
/// The process has ended.
pub fn memory(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read '{path}'"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes: f64 = kilobytes.context("no resident memory")?.parse()?;
    Ok(kilobytes * 1024.0 / MEGABYTE)
}

/// Time on processors that a process has used so far, in seconds.
///
/// # Errors
/// The process has ended.
pub fn processor_time(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read '{path}'"))?;
    // The second field is the program's name in parentheses and may itself contain some.
    let (_, fields) = text.rsplit_once(") ").context("a line of another form")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.get(index).context("a line of another form")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests;
