//! Reads what a test program prints (one line per test, one line at the end) and what Vitest writes.

use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;

use crate::process;

static TEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^test (.+) \.\.\. ok <([0-9.]+)s>"));
static FAILED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^test (.+) \.\.\. FAILED"));
static RESULT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

/// What came out of some test programs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub passed: usize,
    failed: usize,
    pub ignored: usize,
    /// Names of failed tests.
    pub failures: Vec<String>,
    /// Programs that broke off, each with the reason.
    pub broken: Vec<String>,
    times: Vec<(String, f64)>,
}

impl Outcome {
    /// Failed tests; a program that broke off counts as one.
    pub fn failed(&self) -> usize {
        self.failed + self.broken.len()
    }

    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures.iter().cloned());
        self.broken.extend(other.broken.iter().cloned());
        self.times.extend(other.times.iter().cloned());
    }

    pub fn slowest(&self, number: usize) -> Vec<(String, f64)> {
        let mut times = self.times.clone();
        times.sort_by(|one, other| other.1.total_cmp(&one.1));
        times.truncate(number);
        times
    }
}

/// Takes in the lines of one test program.
pub struct Reader {
    package: String,
    outcome: Outcome,
    complete: bool,
}

impl Reader {
    pub fn new(package: &str) -> Self {
        Self { package: package.to_owned(), outcome: Outcome::default(), complete: false }
    }

    pub fn line(&mut self, line: &str) {
        if let Some(test) = TEST.captures(line) {
            let seconds = test[2].parse().unwrap_or(0.0);
            self.outcome.times.push((format!("{} {}", self.package, &test[1]), seconds));
        }
        if let Some(test) = FAILED.captures(line) {
            self.outcome.failures.push(format!("{} {}", self.package, &test[1]));
        }
        if let Some(result) = RESULT.captures(line) {
            let number = |index: usize| result[index].parse::<usize>().unwrap_or(0);
            self.outcome.passed += number(1);
            self.outcome.failed += number(2);
            self.outcome.ignored += number(3);
            self.complete = true;
        }
    }

    /// `over` is the time that was left for the program when it was killed for taking longer.
    pub fn finish(mut self, target: &str, status: ExitStatus, over: Option<Duration>) -> Outcome {
        let name = format!("{} ({target})", self.package);
        if let Some(left) = over {
            let left = process::length(left);
            self.outcome.broken.push(format!(
                "{name} was killed: its suite is over budget, {left} were left when it started"
            ));
        } else if !self.complete || (!status.success() && self.outcome.failed == 0) {
            self.outcome.broken.push(format!("{name} broke off ({status})"));
        }
        self.outcome
    }
}

/// The part of Vitest's JSON report that counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    test_results: Vec<TestFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestFile {
    name: String,
    status: String,
    assertion_results: Vec<Assertion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assertion {
    full_name: String,
    status: String,
    /// Milliseconds; none for a test that was not run.
    duration: Option<f64>,
}

/// What came out of a run of Vitest that wrote `report`. `over`: as in [`Reader::finish`].
pub fn of_vitest(suite: &str, report: &str, status: ExitStatus, over: Option<Duration>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(budget) = over {
        let budget = process::length(budget);
        outcome.broken.push(format!("{suite} was killed: over its budget of {budget}"));
        return outcome;
    }
    let Ok(report) = serde_json::from_str::<Report>(report) else {
        outcome.broken.push(format!("{suite} broke off ({status})"));
        return outcome;
    };
    for file in &report.test_results {
        // A file that could not be loaded, or whose preparation failed, has no failed test to tell of.
        let failed = |test: &&Assertion| test.status == "failed";
        if file.status == "failed" && !file.assertion_results.iter().any(|test| failed(&test)) {
            outcome.broken.push(format!("{suite} ({})", file.name));
        }
        for test in &file.assertion_results {
            match test.status.as_str() {
                "passed" => outcome.passed += 1,
                "failed" => {
                    outcome.failed += 1;
                    outcome.failures.push(format!("ui {}", test.full_name));
                }
                _ => outcome.ignored += 1,
            }
            let seconds = test.duration.unwrap_or_default() / 1000.0;
            outcome.times.push((format!("ui {}", test.full_name), seconds));
        }
    }
    if outcome.failed() == 0 && (!status.success() || outcome.passed == 0) {
        outcome.broken.push(format!("{suite} broke off ({status})"));
    }
    outcome
}
