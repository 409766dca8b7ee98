//! The history of measurements, which shows a slow drift: one line per run and measurement, with
//! its main figures. Only `cargo xtask bench` records; it names the file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Row, Target, rounded};

/// Path of the history. Without it nothing is recorded.
const FILE: &str = "DROVER_BENCH_HISTORY";
/// First columns of each line, tabs between them: date, commit, machine.
const RUN: &str = "DROVER_BENCH_RUN";

/// Appends the line of one measurement to the history that the environment names, if it names one.
///
/// # Errors
/// The environment does not describe the run, or the file cannot be written.
pub fn record(measurement: &str, rows: &[Row]) -> Result<()> {
    let Some(file) = std::env::var_os(FILE) else { return Ok(()) };
    let run = std::env::var(RUN).with_context(|| format!("{FILE} is set, and {RUN} is not"))?;
    let Some(line) = line(&run, measurement, rows) else { return Ok(()) };
    append(Path::new(&file), &line)
        .with_context(|| format!("cannot append to '{}'", Path::new(&file).display()))
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

/// The line of one measurement, with `name=value` for each main figure; none without figures.
pub(super) fn line(run: &str, measurement: &str, rows: &[Row]) -> Option<String> {
    let main = rows.iter().filter(|row| {
        let has_target = !matches!(row.target, Target::Context);
        row.value.is_finite() && (row.is_recorded || has_target)
    });
    let figures: Vec<String> =
        main.map(|row| format!("{}={}{}", name(&row.what), rounded(row.value), row.unit)).collect();
    (!figures.is_empty()).then(|| format!("{run}\t{measurement}\t{}\n", figures.join(" ")))
}

/// `page-of-1000-p99` of `page of 1,000: p99`.
fn name(what: &str) -> String {
    let what = what.replace(',', "").to_lowercase();
    let words = what.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}
