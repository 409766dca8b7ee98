//! Runs a failed test with real parts once more, alone, when all others have ended.
//!
//! A machine that is busy at the wrong moment makes such tests fail now and then. What passes alone is
//! reported as flaky, with what it printed both times, and has to get an entry in `docs/flaky.md`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::evidence::{Evidence, last_lines};
use super::outcome::Failure;
use super::program::{Program, Selection};

/// A run may have so many flaky tests; with more it fails.
pub const FLAKY_MAX: usize = 2;
/// With more failures in a suite something is broken, and trying again would only take time.
const SECOND_TRIES_MAX: usize = 10;
/// Of one second try; the slowest test takes seven minutes.
const SECOND_TRY_TIME_MAX: Duration = Duration::from_secs(20 * 60);
/// Lines of the output of a second try that are shown.
const OUTPUT_LINES_SHOWN: usize = 30;

/// A test that failed, and passed when it was run once more, alone.
#[derive(Debug)]
pub struct Flaky {
    pub first: Failure,
    /// The end of the output of the second try.
    pub second: String,
}

/// What is left of failures after a second try.
#[derive(Debug, Default)]
pub struct Tried {
    pub failures: Vec<Failure>,
    pub flaky: Vec<Flaky>,
}

/// Runs each of `failed`, which are tests of `programs`, once more, but those that guard what must
/// never fail.
pub fn run(programs: &[&Program], failed: Vec<Failure>, evidence: &Evidence) -> Result<Tried> {
    let mut tried = Tried::default();
    let (again, for_good): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|failure| failure.guarantee.is_none());
    tried.failures = for_good;
    if again.len() > SECOND_TRIES_MAX {
        println!("{} tests failed: too many for a second try", again.len());
        tried.failures.extend(again);
        return Ok(tried);
    }
    for first in again {
        let program = programs.iter().find(|one| one.full_name(&first.test) == first.name);
        let program = program.with_context(|| format!("no program has '{}'", first.name))?;
        println!("second try, alone: {}", first.name);
        evidence.set_first_try_aside(&first.name)?;
        let deadline = Instant::now() + SECOND_TRY_TIME_MAX;
        let only = Selection::Only(vec![first.test.clone()]);
        let mut outcome = program.run(&only, deadline, evidence)?;
        if outcome.failed() == 0 && outcome.passed > 0 {
            let log = evidence.log(&program.name());
            let output = std::fs::read_to_string(&log)
                .with_context(|| format!("cannot read '{}'", log.display()))?;
            let second = last_lines(&output, OUTPUT_LINES_SHOWN).join("\n");
            tried.flaky.push(Flaky { first, second });
            continue;
        }
        // A second try that breaks off has no failed test of its own.
        let second = outcome.failures.pop().unwrap_or_else(|| Failure {
            output: format!("{}\n{}", first.output, outcome.broken.join("\n")),
            ..first
        });
        evidence.keep_output(&second)?;
        tried.failures.push(second);
    }
    Ok(tried)
}
