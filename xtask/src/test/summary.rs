//! The summary of a run: time and load per suite, failures with their evidence, flaky tests, and
//! last the result.

use std::time::Duration;

use anyhow::{Result, bail};

use super::evidence::Evidence;
use super::outcome::TestOutcome;
use super::second_try::{FLAKY_MAX, Flaky};
use crate::process::duration_text;

const SLOWEST_SHOWN: usize = 10;

/// A suite that has run.
pub struct FinishedSuite {
    pub name: &'static str,
    pub budget: Duration,
    pub took: Duration,
    /// Percent of all cores, with any process.
    pub busy: u64,
    pub outcome: TestOutcome,
}

/// Prints the summary.
///
/// # Errors
/// Something failed, or more than [`FLAKY_MAX`] tests were flaky.
pub fn report(
    finished: Vec<FinishedSuite>,
    flaky: &[Flaky],
    evidence: &Evidence,
    total: Duration,
) -> Result<()> {
    println!();
    println!("suite          clock  processor  of budget  cores busy  passed  failed");
    let mut sum = TestOutcome::default();
    for suite in finished {
        let outcome = suite.outcome;
        println!(
            "{:<12} {:>9} {:>9} {:>10} {:>9} % {:>7} {:>7}",
            suite.name,
            duration_text(suite.took),
            duration_text(outcome.processor),
            duration_text(suite.budget),
            suite.busy,
            outcome.passed,
            outcome.failure_count()
        );
        if outcome.processor > suite.budget {
            println!("warning: suite '{}' used more of the processor than its budget", suite.name);
        }
        sum.add(outcome);
    }
    println!("slowest tests:");
    for (name, seconds) in sum.slowest(SLOWEST_SHOWN) {
        println!("  {seconds:>7.2} s  {name}");
    }
    for one in flaky {
        println!("\nflaky: {}", one.first.name);
        println!("the first time it failed:\n{}", evidence.describe(&one.first));
        println!("alone it passed:\n{}", one.second);
    }
    for failure in &sum.failures {
        println!("\n{}", evidence.describe(failure));
    }
    for failure in &sum.failures {
        let why = failure.guarantee.as_ref();
        let why = why.map(|guarantee| format!(" (no second try: {guarantee})")).unwrap_or_default();
        println!("test {} ... FAILED{why}", failure.name);
    }
    for broken in &sum.broken {
        println!("broken: {broken}");
    }
    for one in flaky {
        println!("test {} ... flaky: add it to docs/flaky.md", one.first.name);
    }
    let problem = problem(sum.failure_count(), flaky.len());
    sum.passed += flaky.len();
    print_result(problem.is_none(), &sum, total);
    match problem {
        None => Ok(()),
        Some(problem) => bail!("{problem}"),
    }
}

/// The result, in the format of cargo's own tests.
pub fn print_result(is_ok: bool, sum: &TestOutcome, total: Duration) {
    println!(
        "test result: {}. {} passed; {} failed; {} ignored; finished in {:.2}s",
        if is_ok { "ok" } else { "FAILED" },
        sum.passed,
        sum.failure_count(),
        sum.ignored,
        total.as_secs_f64()
    );
}

/// Why a run failed.
fn problem(failed: usize, flaky: usize) -> Option<String> {
    match (failed, flaky) {
        (0, flaky) if flaky <= FLAKY_MAX => None,
        (0, flaky) => Some(format!("{flaky} tests were flaky; a run may have {FLAKY_MAX}")),
        (failed, _) => Some(format!("{failed} tests failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn a_run_passes_with_two_flaky_tests_and_fails_with_three() {
        assert_eq!(problem(0, 0), None);
        assert_eq!(problem(0, 2), None);
        assert!(problem(0, 3).unwrap().contains("3 tests were flaky"));
        assert_eq!(problem(1, 0).unwrap(), "1 tests failed");
    }
}
