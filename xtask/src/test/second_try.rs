//! Runs a failed test with real parts once more, alone, when all others have ended.
//!
//! On a busy machine such tests fail occasionally. A test that passes alone is reported as flaky,
//! with the output of both runs, and needs an entry in `docs/flaky.md`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::evidence::{Evidence, last_lines};
use super::outcome::TestFailure;
use super::program::{Selection, TestProgram};

/// Maximum number of flaky tests; with more a run fails.
pub const FLAKY_MAX: usize = 2;
/// With more failures in a suite there is no second try: something is broken.
const SECOND_TRIES_MAX: usize = 10;
/// Timeout of one second try; the slowest test takes seven minutes.
const SECOND_TRY_TIME_MAX: Duration = Duration::from_secs(20 * 60);
/// Lines of the output of a second try in the summary.
const OUTPUT_LINES_SHOWN: usize = 30;

/// A test that failed, and passed when it was run once more, alone.
#[derive(Debug)]
pub struct Flaky {
    pub first: TestFailure,
    /// The end of the output of the second try.
    pub second: String,
}

/// The result of second tries.
#[derive(Debug, Default)]
pub struct SecondTryResult {
    pub failures: Vec<TestFailure>,
    pub flaky: Vec<Flaky>,
}

/// Runs each of `failed`, which are tests of `programs`, once more, except tests of a guarantee.
pub fn run(
    programs: &[&TestProgram],
    failed: Vec<TestFailure>,
    evidence: &Evidence,
) -> Result<SecondTryResult> {
    let mut tried = SecondTryResult::default();
    let (again, final_failures): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|failure| failure.guarantee.is_none());
    tried.failures = final_failures;
    if again.len() > SECOND_TRIES_MAX {
        println!("{} tests failed: too many for a second try", again.len());
        tried.failures.extend(again);
        return Ok(tried);
    }
    for first in again {
        let program = programs.iter().find(|one| one.full_name(&first.test) == first.name);
        let program = program.with_context(|| format!("no program has '{}'", first.name))?;
        println!("second try, alone: {}", first.name);
        evidence.rename_first_try(&first.name)?;
        let deadline = Instant::now() + SECOND_TRY_TIME_MAX;
        let only = Selection::Only(vec![first.test.clone()]);
        let mut outcome = program.run(&only, deadline, evidence)?;
        if outcome.failure_count() == 0 && outcome.passed > 0 {
            let log = evidence.log(&program.name());
            let output = std::fs::read_to_string(&log)
                .with_context(|| format!("cannot read '{}'", log.display()))?;
            let second = last_lines(&output, OUTPUT_LINES_SHOWN).join("\n");
            tried.flaky.push(Flaky { first, second });
            continue;
        }
        // A second try that aborts has no failed test of its own.
        let second = outcome.failures.pop().unwrap_or_else(|| TestFailure {
            output: format!("{}\n{}", first.output, outcome.broken.join("\n")),
            ..first
        });
        evidence.store_output(&second)?;
        tried.failures.push(second);
    }
    Ok(tried)
}
