//! `cargo xtask soak`: runs tests that have a long version.
//!
//! A test has a long version if it reads `DROVER_SOAK_SECONDS` and runs for that long. A suite is a
//! crate with such tests; it is found by its sources, so that no list can be out of date. The suite
//! `fuzz` has the fuzz targets.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::fuzz::{FuzzResult, Fuzzer};
use crate::{deps, process, workspace};

/// Duration of the long version of a test, in seconds.
const SECONDS_ENV: &str = "DROVER_SOAK_SECONDS";
const FUZZ_SUITE: &str = "fuzz";
/// The suite with logins at Keycloak.
const KEYCLOAK_SUITE: &str = "e2e";
/// Default time of each fuzz target.
const FUZZ_TARGET_TIME: Duration = Duration::from_secs(3600);

/// What to run, and for how long.
#[derive(Args)]
pub struct Arguments {
    /// One suite; without it all, one after the other.
    suite: Option<String>,
    /// For all suites together; without it one hour, and one for each fuzz target.
    #[arg(long)]
    hours: Option<f64>,
    /// The same in seconds.
    #[arg(long, conflicts_with = "hours")]
    seconds: Option<u64>,
    /// Only this fuzz target.
    #[arg(long)]
    target: Option<String>,
    /// Seed of the search of a fuzz target; each run reports its own.
    #[arg(long)]
    seed: Option<u32>,
    /// Only list the suites.
    #[arg(long)]
    list: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut suites = suites(&workspace::root().join("crates"))?;
    suites.push(FUZZ_SUITE.to_owned());
    if arguments.list {
        suites.iter().for_each(|suite| println!("{suite}"));
        return Ok(());
    }
    if let Some(only) = &arguments.suite {
        if !suites.contains(only) {
            bail!("there is no soak suite '{only}'; there are: {}", suites.join(", "));
        }
        suites = vec![only.clone()];
    }
    let hours = arguments.hours.map(|hours| Duration::try_from_secs_f64(hours * 3600.0));
    let hours = hours.transpose().context("--hours must be a time")?;
    let given = hours.or(arguments.seconds.map(Duration::from_secs));
    let count = u32::try_from(suites.len()).unwrap_or(u32::MAX);
    let of_fuzz = given.map(|given| given / count);
    let share = given.unwrap_or(Duration::from_secs(3600)) / count;
    if suites.iter().any(|suite| suite != FUZZ_SUITE) {
        deps::run()?;
    }
    if suites.iter().any(|suite| suite == KEYCLOAK_SUITE) {
        deps::run_keycloak()?;
    }
    for suite in &suites {
        let start = Instant::now();
        if suite == FUZZ_SUITE {
            fuzz(arguments.target.as_deref(), of_fuzz, arguments.seed)?;
            continue;
        }
        println!("soak {suite} for {}", process::duration_text(share));
        let mut cargo = workspace::cargo();
        cargo.args(["test", "-p", suite, "--", "--nocapture"]);
        process::run(cargo.env(SECONDS_ENV, share.as_secs().to_string()))?;
        println!("soak {suite} held for {}", process::duration_text(start.elapsed()));
    }
    Ok(())
}

/// Runs every fuzz target, or `only` one, for their shares of `time`.
fn fuzz(only: Option<&str>, time: Option<Duration>, seed: Option<u32>) -> Result<()> {
    let fuzzer = Fuzzer::build()?;
    let targets = match only {
        Some(only) => vec![only.to_owned()],
        None => fuzzer.targets()?,
    };
    let count = u32::try_from(targets.len()).unwrap_or(u32::MAX);
    let share = time.map_or(FUZZ_TARGET_TIME, |time| time / count);
    let mut broken = Vec::new();
    for target in &targets {
        if fuzzer.run(target, share, seed, &mut |line| println!("{line}"))? == FuzzResult::Broken {
            broken.push(target.as_str());
        }
    }
    if !broken.is_empty() {
        bail!("inputs that break {} are below target/fuzz", broken.join(", "));
    }
    Ok(())
}

/// Crates whose sources read the variable.
fn suites(crates: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(crates)? {
        let entry = entry?;
        if reads_variable(&entry.path())? {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

fn reads_variable(folder: &Path) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let reads = if path.is_dir() {
            reads_variable(&path)?
        } else {
            path.extension().is_some_and(|ending| ending == "rs")
                && std::fs::read_to_string(&path)?.contains(SECONDS_ENV)
        };
        if reads {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
