//! The ledger of flaky tests, `docs/flaky.md`, and the record of flaky tests in runs,
//! `target/flaky-tests.json`.
//!
//! A row is `| test | first seen | suspected cause | what was done | state |`; the state is `open`,
//! or `closed` with the day. An entry is closed when its cause is fixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The ledger, below the root.
pub const LEDGER: &str = "docs/flaky.md";
/// With more open entries, they must be fixed before new work.
pub const OPEN_MAX: usize = 5;
const RECORD: &str = "target/flaky-tests.json";

/// The last day on which each test was flaky, as in `2026-11-23`.
pub type Met = BTreeMap<String, String>;

/// Reads the record of the runs in this tree.
///
/// # Errors
/// The record exists and cannot be read.
pub fn met(root: &Path) -> Result<Met> {
    match fs::read_to_string(root.join(RECORD)) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("cannot read '{RECORD}'")),
        Err(_) => Ok(Met::new()),
    }
}

/// Adds tests to the record.
///
/// # Errors
/// It cannot be read or written.
pub fn record<'a>(root: &Path, tests: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut met = met(root)?;
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    met.extend(tests.map(|test| (test.to_owned(), today.clone())));
    let path: PathBuf = root.join(RECORD);
    fs::write(&path, serde_json::to_string_pretty(&met)?)
        .with_context(|| format!("cannot write '{}'", path.display()))
}

/// One row of the ledger.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// From 1.
    pub line: usize,
    pub test: &'a str,
    pub state: State<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum State<'a> {
    Open,
    /// On this day.
    Closed(&'a str),
}

/// The rows of the ledger; for an invalid row, its line and the problem.
pub fn entries(ledger: &str) -> Vec<Result<Entry<'_>, (usize, String)>> {
    let rows = ledger.lines().enumerate().filter_map(|(index, line)| {
        let row = line.strip_prefix("| `")?;
        Some((index + 1, row))
    });
    rows.map(|(line, row)| entry(line, row).map_err(|problem| (line, problem))).collect()
}

fn entry(line: usize, row: &str) -> Result<Entry<'_>, String> {
    let cells: Vec<&str> = row.trim_end_matches(['|', ' ']).split('|').map(str::trim).collect();
    let [test, seen, cause, done, state] = cells.as_slice() else {
        return Err("a row has test, first seen, suspected cause, what was done, state".to_owned());
    };
    let test = test.trim_end_matches('`');
    if !is_day(seen) {
        return Err(format!("'{seen}' is not a day as in 2026-11-23"));
    }
    if cause.is_empty() {
        return Err(format!("'{test}' has no suspected cause"));
    }
    let state = match state.split_once(' ') {
        None if *state == "open" => State::Open,
        Some(("closed", day)) if is_day(day) => State::Closed(day),
        _ => return Err(format!("'{state}' is neither 'open' nor 'closed' with a day")),
    };
    if matches!(state, State::Closed(_)) && done.is_empty() {
        return Err(format!("'{test}' is closed, and nothing was done"));
    }
    Ok(Entry { line, test, state })
}

fn is_day(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok()
}

/// Flaky tests of the record without an entry that covers them: open, or closed on that day or
/// later.
pub fn without_entry<'a>(met: &'a Met, entries: &[Entry]) -> Vec<(&'a str, &'a str)> {
    let covered = |test: &str, day: &str| {
        entries.iter().filter(|entry| entry.test == test).any(|entry| match entry.state {
            State::Open => true,
            State::Closed(closed) => closed >= day,
        })
    };
    met.iter()
        .filter(|(test, day)| !covered(test, day))
        .map(|(test, day)| (test.as_str(), day.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEDGER_TEXT: &str = "# Flaky tests\n\n| Test | First seen | Cause | Done | State |\n|---|---|---|---|---|\n\
        | `e2e::a::one` | 2026-11-20 | a race | | open |\n\
        | `e2e::b::two` | 2026-11-20 | a race | waits for it | closed 2026-11-22 |\n";

    #[test]
    fn a_flaky_test_needs_an_entry_that_is_open_or_closed_since() {
        let entries: Vec<Entry> =
            entries(LEDGER_TEXT).into_iter().collect::<Result<_, _>>().unwrap();
        let met = |test: &str, day: &str| Met::from([(test.to_owned(), day.to_owned())]);
        assert!(without_entry(&met("e2e::a::one", "2026-12-01"), &entries).is_empty());
        assert!(without_entry(&met("e2e::b::two", "2026-11-22"), &entries).is_empty());
        assert_eq!(without_entry(&met("e2e::b::two", "2026-11-23"), &entries).len(), 1);
        assert_eq!(without_entry(&met("e2e::c::three", "2026-11-01"), &entries).len(), 1);
    }

    #[test]
    fn invalid_rows_are_refused_with_the_problem() {
        for (row, problem) in [
            ("| `a` | yesterday | race | | open |", "not a day"),
            ("| `a` | 2026-11-20 | | | open |", "no suspected cause"),
            ("| `a` | 2026-11-20 | race | | closed 2026-11-21 |", "nothing was done"),
            ("| `a` | 2026-11-20 | race | x | closed |", "neither"),
            ("| `a` | 2026-11-20 | open |", "a row has"),
        ] {
            let found = entries(row).remove(0).unwrap_err();
            assert!(found.1.contains(problem), "{row}: {found:?}");
        }
    }

    #[test]
    fn the_record_accumulates_flaky_tests_of_all_runs() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("target")).unwrap();
        record(root.path(), ["one"].into_iter()).unwrap();
        record(root.path(), ["two"].into_iter()).unwrap();
        assert_eq!(met(root.path()).unwrap().into_keys().collect::<Vec<_>>(), ["one", "two"]);
    }
}
