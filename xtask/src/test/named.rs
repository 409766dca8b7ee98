//! `cargo xtask test NAME…`: chosen tests, as often as desired, each time with the same result.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::evidence::Evidence;
use super::outcome::Outcome;
use super::program::{Program, Selection};
use crate::process::length;

/// Of one program with its chosen tests, once.
const ROUND_TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Runs every test whose full name contains one of `names`, `repeat` times.
///
/// # Errors
/// No test has such a name, or one failed in any round.
pub fn run(programs: &[Program], names: &[String], repeat: u32, evidence: &Evidence) -> Result<()> {
    let chosen = choose(programs, names)?;
    let mut failed: BTreeMap<String, u32> = BTreeMap::new();
    let mut sum = Outcome::default();
    let begun = Instant::now();
    for round in 1..=repeat {
        for (program, tests) in &chosen {
            let since = Instant::now();
            let outcome = program.run(Selection::Only(tests), since + ROUND_TIME_MAX, evidence)?;
            println!(
                "round {round} of {repeat}: {} {} passed, {} failed in {}",
                program.name(),
                outcome.passed,
                outcome.failed(),
                length(since.elapsed())
            );
            for failure in &outcome.failures {
                evidence.keep_output(failure)?;
                println!("\n{}", evidence.shown(failure));
                *failed.entry(failure.name.clone()).or_default() += 1;
            }
            outcome.broken.iter().for_each(|broken| println!("broken: {broken}"));
            sum.add(outcome);
        }
    }
    for (name, times) in &failed {
        println!("test {name} ... FAILED {times} of {repeat} times");
    }
    println!(
        "test result: {}. {} passed; {} failed; {} ignored; finished in {:.2}s",
        if sum.failed() == 0 { "ok" } else { "FAILED" },
        sum.passed,
        sum.failed(),
        sum.ignored,
        begun.elapsed().as_secs_f64()
    );
    ensure!(sum.failed() == 0, "{} of {repeat} rounds' tests failed", sum.failed());
    Ok(())
}

/// Programs with those of their tests whose full names contain one of `names`.
fn choose<'a>(
    programs: &'a [Program],
    names: &[String],
) -> Result<Vec<(&'a Program, Vec<String>)>> {
    let mut chosen = Vec::new();
    for program in programs {
        let mut tests = program.tests()?;
        tests.retain(|test| {
            let full = program.full_name(test);
            names.iter().any(|name| full.contains(name.as_str()))
        });
        if !tests.is_empty() {
            chosen.push((program, tests));
        }
    }
    if chosen.is_empty() {
        bail!(
            "no test's name contains '{}'; names are as in 'e2e::subscribe::a_token_that_is_revoked'",
            names.join("' or '")
        );
    }
    Ok(chosen)
}
