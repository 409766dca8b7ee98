//! Runs of selected tests: by parts of their names, and repeatedly.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::evidence::Evidence;
use super::outcome::TestOutcome;
use super::program::Selection;
use super::summary::print_result;
use super::{PlannedSuite, SelectedProgram};
use crate::process::duration_text;

/// Deadline of one program in one round.
const ROUND_TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Reduces a plan to the tests whose full names contain one of `names`.
///
/// # Errors
/// No test has such a name.
pub fn choose(mut planned: Vec<PlannedSuite>, names: &[String]) -> Result<Vec<PlannedSuite>> {
    for suite in &mut planned {
        for (_, SelectedProgram { program, selection }) in &mut suite.programs {
            let mut tests = program.tests()?;
            tests.retain(|test| {
                let full = program.full_name(test);
                names.iter().any(|name| full.contains(name.as_str()))
            });
            *selection = Selection::Only(tests);
        }
        suite.programs.retain(|(_, chosen)| match &chosen.selection {
            Selection::All => true,
            Selection::Only(tests) => !tests.is_empty(),
        });
    }
    planned.retain(|suite| !suite.programs.is_empty());
    if planned.is_empty() {
        bail!(
            "no test's name contains '{}'; names are as in 'e2e::subscribe::a_token_that_is_revoked'",
            names.join("' or '")
        );
    }
    Ok(planned)
}

/// Runs a plan `rounds` times, one program after the other, without second tries.
///
/// # Errors
/// A test failed in any round.
pub fn repeat(planned: &[PlannedSuite], rounds: u32, evidence: &Evidence) -> Result<()> {
    let mut failed: BTreeMap<String, u32> = BTreeMap::new();
    let mut sum = TestOutcome::default();
    let begun = Instant::now();
    for round in 1..=rounds {
        for (_, SelectedProgram { program, selection }) in
            planned.iter().flat_map(|suite| &suite.programs)
        {
            let since = Instant::now();
            let outcome = program.run(selection, since + ROUND_TIME_MAX, evidence)?;
            println!(
                "round {round} of {rounds}: {} {} passed, {} failed in {}",
                program.name(),
                outcome.passed,
                outcome.failure_count(),
                duration_text(since.elapsed())
            );
            for failure in &outcome.failures {
                evidence.store_output(failure)?;
                println!("\n{}", evidence.describe(failure));
                *failed.entry(failure.name.clone()).or_default() += 1;
            }
            outcome.broken.iter().for_each(|broken| println!("broken: {broken}"));
            sum.add(outcome);
        }
    }
    for (name, times) in &failed {
        println!("test {name} ... FAILED {times} of {rounds} times");
    }
    print_result(sum.failure_count() == 0, &sum, begun.elapsed());
    ensure!(sum.failure_count() == 0, "{} failures in {rounds} rounds", sum.failure_count());
    Ok(())
}
