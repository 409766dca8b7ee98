//! The outcome of tests, parsed from the output of a test program or the report of Vitest.
//!
//! The name of a test is as in `e2e::subscribe::a_token_that_is_revoked`: package, the file under
//! `tests` if any, and its path in it.

use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;

static PASSED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^test (.+) \.\.\. ok <([0-9.]+)s>"));
static FAILED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^test (.+) \.\.\. FAILED"));
static OUTPUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^---- (.+) stdout ----$"));
static RESULT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;"));
/// The output of `testbed::no_second_try`.
static MARK: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?m)^{}(\w+)$", testbed::NO_SECOND_TRY)));
/// Separates the outputs of failed tests from the list of their names.
const LIST_OF_FAILURES: &str = "failures:";

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

/// The outcome of some tests.
#[derive(Debug, Default)]
pub struct TestOutcome {
    pub passed: usize,
    pub ignored: usize,
    pub failures: Vec<TestFailure>,
    /// Programs that aborted, each with the reason.
    pub broken: Vec<String>,
    /// Names of tests and their seconds.
    pub times: Vec<(String, f64)>,
    /// Processor time of the programs and of the children that they waited for.
    pub processor: Duration,
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFailure {
    /// Full name, with program or file.
    pub name: String,
    /// Its name within the program.
    pub test: String,
    /// Its whole output, with the failed assertion and its location.
    pub output: String,
    /// The guarantee that it protects; such a test gets no second try.
    pub guarantee: Option<String>,
}

impl TestFailure {
    /// The failed assertion and its location: from the message of the panic on, without the
    /// backtrace.
    pub fn assertion(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let begin = lines.iter().position(|line| line.contains(" panicked at ")).unwrap_or(0);
        let lines = lines[begin..]
            .iter()
            .take_while(|line| !BACKTRACES.iter().any(|begin| line.starts_with(begin)));
        lines.take(ASSERTION_LINES_MAX).fold(String::new(), |text, line| text + line + "\n")
    }
}

/// Lines that end the message of a panic.
const BACKTRACES: [&str; 3] = ["stack backtrace:", "Stack backtrace:", "note: run with"];
/// Enough for a readable message; the whole output is stored in a file.
const ASSERTION_LINES_MAX: usize = 40;

impl TestOutcome {
    /// Number of failed tests; a program that aborted counts as one.
    pub fn failure_count(&self) -> usize {
        self.failures.len() + self.broken.len()
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.broken.extend(other.broken);
        self.times.extend(other.times);
        self.processor += other.processor;
    }

    pub fn slowest(&self, number: usize) -> Vec<&(String, f64)> {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|one, other| other.1.total_cmp(&one.1));
        times.truncate(number);
        times
    }
}

/// A program that was killed at its deadline.
#[derive(Clone, Debug)]
pub struct KilledProgram {
    pub after: Duration,
    /// Tests that had not ended: one of them may be the cause.
    pub unfinished: Vec<String>,
}

/// Parses the lines of one test program.
pub struct OutputReader {
    program: String,
    outcome: TestOutcome,
    /// The failed test whose output is being read.
    current: Option<usize>,
    complete: bool,
}

impl OutputReader {
    /// `program`: the prefix of the names of its tests.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            outcome: TestOutcome::default(),
            current: None,
            complete: false,
        }
    }

    pub fn line(&mut self, line: &str) {
        if let Some(result) = RESULT.captures(line) {
            let number = |index: usize| result[index].parse::<usize>().unwrap_or(0);
            self.outcome.passed = number(1);
            self.outcome.ignored = number(3);
            self.current = None;
            self.complete = true;
            return;
        }
        if let Some(begin) = OUTPUT.captures(line) {
            let failures = &self.outcome.failures;
            self.current = failures.iter().position(|failure| failure.test == begin[1]);
            return;
        }
        if line == LIST_OF_FAILURES {
            self.current = None;
            return;
        }
        if let Some(current) = self.current {
            let output = &mut self.outcome.failures[current].output;
            output.push_str(line);
            output.push('\n');
            return;
        }
        if let Some(test) = PASSED.captures(line) {
            let seconds = test[2].parse().unwrap_or(0.0);
            self.outcome.times.push((self.name(&test[1]), seconds));
        } else if let Some(test) = FAILED.captures(line) {
            let (name, test) = (self.name(&test[1]), test[1].to_owned());
            let output = String::new();
            self.outcome.failures.push(TestFailure { name, test, output, guarantee: None });
        }
    }

    fn name(&self, test: &str) -> String {
        format!("{}::{test}", self.program)
    }

    /// Names of the ended tests, within the program.
    pub fn ended_tests(&self) -> impl Iterator<Item = &str> {
        let begin = self.program.len() + "::".len();
        let passed = self.outcome.times.iter().map(move |(name, _)| &name[begin..]);
        passed.chain(self.outcome.failures.iter().map(|failure| failure.test.as_str()))
    }

    pub fn finish(mut self, status: ExitStatus, killed: Option<KilledProgram>) -> TestOutcome {
        for failure in &mut self.outcome.failures {
            failure.guarantee = MARK.captures(&failure.output).map(|mark| mark[1].to_owned());
        }
        let failed = !self.outcome.failures.is_empty();
        if !self.complete {
            // The line with the number of passed tests is missing.
            self.outcome.passed = self.outcome.times.len();
        }
        if let Some(killed) = killed {
            self.outcome.broken.push(over_deadline(&self.program, &killed));
        } else if !self.complete || (!status.success() && !failed) {
            self.outcome.broken.push(format!("{} broke off ({status})", self.program));
        }
        self.outcome
    }
}

fn over_deadline(program: &str, killed: &KilledProgram) -> String {
    let after = crate::process::duration_text(killed.after);
    let unfinished = match killed.unfinished.join(", ") {
        tests if tests.is_empty() => tests,
        tests => format!("; not ended: {tests}"),
    };
    format!("{program} was killed after {after}, at the deadline of its suite{unfinished}")
}

/// The part of Vitest's JSON report that is read.
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
    message: Option<String>,
    assertion_results: Vec<Assertion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assertion {
    full_name: String,
    status: String,
    /// Milliseconds; none for a test that was not run.
    duration: Option<f64>,
    #[serde(default)]
    failure_messages: Vec<String>,
    #[serde(default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    /// Set by `noSecondTry`.
    guarantee: Option<String>,
}

/// `keyboard` of `…/keyboard.e2e.ts`.
pub fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

/// The outcome of a run of Vitest from its `report`; `suite` is its name in messages if the report
/// is invalid.
pub fn of_vitest(
    suite: &str,
    report: &str,
    status: ExitStatus,
    killed: Option<KilledProgram>,
) -> TestOutcome {
    let mut outcome = TestOutcome::default();
    if let Some(killed) = killed {
        outcome.broken.push(over_deadline(suite, &killed));
        return outcome;
    }
    let Ok(report) = serde_json::from_str::<Report>(report) else {
        outcome.broken.push(format!("{suite} broke off ({status})"));
        return outcome;
    };
    for file in report.test_results {
        // A file that could not be loaded, or whose preparation failed, has no failed test to name.
        let failed = file.assertion_results.iter().any(|test| test.status == "failed");
        if file.status == "failed" && !failed {
            let why = file.message.unwrap_or_default();
            outcome.broken.push(format!("{suite} ({}) {why}", file.name).trim_end().to_owned());
        }
        for test in file.assertion_results {
            let test_name = format!("{}::{}", stem(&file.name), test.full_name);
            let name = format!("ui::{test_name}");
            match test.status.as_str() {
                "passed" => outcome.passed += 1,
                "failed" => outcome.failures.push(TestFailure {
                    name: name.clone(),
                    test: test_name,
                    output: test.failure_messages.join("\n"),
                    guarantee: test.meta.guarantee,
                }),
                _ => outcome.ignored += 1,
            }
            outcome.times.push((name, test.duration.unwrap_or_default() / 1000.0));
        }
    }
    if outcome.failure_count() == 0 && (!status.success() || outcome.passed == 0) {
        outcome.broken.push(format!("{suite} broke off ({status})"));
    }
    outcome
}
