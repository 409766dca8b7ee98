//! What a run says at its end: per suite how long it took and how busy the cores were, what failed with
//! its evidence, what was flaky, and last the line that counts.

use std::time::Duration;

use anyhow::{Result, bail};

use super::evidence::Evidence;
use super::outcome::Outcome;
use super::second_try::{FLAKY_MAX, Flaky};
use crate::process::length;

const SLOWEST_SHOWN: usize = 10;

/// A suite that has run.
pub struct Finished {
    pub name: &'static str,
    pub budget: Duration,
    pub took: Duration,
    /// Percent of all cores, of whatever process.
    pub busy: u64,
    pub outcome: Outcome,
}

/// Prints the summary.
///
/// # Errors
/// Something failed, or more than [`FLAKY_MAX`] tests were flaky.
pub fn report(
    finished: Vec<Finished>,
    flaky: &[Flaky],
    evidence: &Evidence,
    total: Duration,
) -> Result<()> {
    println!();
    println!("suite          clock  processor  of budget  cores busy  passed  failed");
    let mut sum = Outcome::default();
    for suite in finished {
        let outcome = suite.outcome;
        println!(
            "{:<12} {:>9} {:>9} {:>10} {:>9} % {:>7} {:>7}",
            suite.name,
            length(suite.took),
            length(outcome.processor),
            length(suite.budget),
            suite.busy,
            outcome.passed,
            outcome.failed()
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
        println!("the first time it failed:\n{}", evidence.shown(&one.first));
        println!("alone it passed:\n{}", one.second);
    }
    for failure in &sum.failures {
        println!("\n{}", evidence.shown(failure));
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
    let problem = problem(sum.failed(), flaky.len());
    sum.passed += flaky.len();
    print_result(problem.is_none(), &sum, total);
    match problem {
        None => Ok(()),
        Some(problem) => bail!("{problem}"),
    }
}

/// The line that counts, in the form that cargo's own tests end with.
pub fn print_result(is_ok: bool, sum: &Outcome, total: Duration) {
    println!(
        "test result: {}. {} passed; {} failed; {} ignored; finished in {:.2}s",
        if is_ok { "ok" } else { "FAILED" },
        sum.passed,
        sum.failed(),
        sum.ignored,
        total.as_secs_f64()
    );
}

/// Why a run is red.
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
    fn two_flaky_tests_are_green_and_three_are_red() {
        assert_eq!(problem(0, 0), None);
        assert_eq!(problem(0, 2), None);
        assert!(problem(0, 3).unwrap().contains("3 tests were flaky"));
        assert_eq!(problem(1, 0).unwrap(), "1 tests failed");
    }
}
