//! Which suite a crate belongs to, and what is read from test programs.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::outcome::{Reader, of_vitest};
use super::*;

#[test]
fn every_crate_belongs_to_exactly_one_suite() {
    let metadata = workspace::metadata(&workspace::root(), &["--no-deps", "--offline"]).unwrap();
    for package in &metadata.packages {
        let suites = SUITES.iter().filter(|suite| suite.holds(&package.name)).count();
        assert_eq!(suites, 1, "{}", package.name);
    }
}

fn read(lines: &[&str], code: i32, over: Option<Duration>) -> Outcome {
    let mut reader = Reader::new("storage");
    lines.iter().for_each(|line| reader.line(line));
    reader.finish("lib storage", ExitStatus::from_raw(code << 8), over)
}

#[test]
fn passed_and_failed_tests_are_counted_with_their_times() {
    let outcome = read(
        &[
            "running 3 tests",
            "test a::quick ... ok <0.002s>",
            "test a::slow ... ok <2.500s>",
            "test a::wrong ... FAILED <0.100s>",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 2.60s",
        ],
        101,
        None,
    );
    assert_eq!((outcome.passed, outcome.failed()), (2, 1));
    assert_eq!(outcome.failures, ["storage a::wrong"]);
    assert_eq!(outcome.slowest(1), [("storage a::slow".to_owned(), 2.5)]);
    assert!(outcome.broken.is_empty());
}

#[test]
fn a_program_that_breaks_off_is_a_failure() {
    let outcome = read(&["running 3 tests"], 134, None);
    assert_eq!(outcome.failed(), 1);
    assert!(outcome.broken[0].contains("broke off"), "{outcome:?}");
}

#[test]
fn a_suite_beyond_its_budget_is_killed_and_fails() {
    let mut child = Command::new("tail").args(["-f", "/dev/null"]).spawn().unwrap();
    let watch = Watch::over(child.id(), Duration::from_millis(1)).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(watch.end());
    let outcome = read(&["running 1 test"], 0, Some(Duration::from_millis(1)));
    assert!(outcome.broken[0].contains("over budget"), "{outcome:?}");
}

#[test]
fn a_program_that_ends_in_time_is_not_killed() {
    let mut child = Command::new("true").spawn().unwrap();
    let watch = Watch::over(child.id(), minutes(1)).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!watch.end());
}

fn vitest(report: &str, code: i32) -> Outcome {
    of_vitest("browser", report, ExitStatus::from_raw(code << 8), None)
}

#[test]
fn tests_of_the_interface_are_counted_with_their_times() {
    let report = r#"{"testResults": [{"name": "a.test.ts", "status": "failed", "assertionResults": [
        {"fullName": "one", "status": "passed", "duration": 1500.0},
        {"fullName": "two", "status": "failed", "duration": 3.0},
        {"fullName": "three", "status": "skipped"}]}]}"#;
    let outcome = vitest(report, 1);
    assert_eq!((outcome.passed, outcome.failed(), outcome.ignored), (1, 1, 1));
    assert_eq!(outcome.failures, ["ui two"]);
    assert_eq!(outcome.slowest(1), [("ui one".to_owned(), 1.5)]);
}

#[test]
fn a_world_of_the_interface_that_cannot_be_made_is_a_failure() {
    let report = r#"{"testResults": [{"name": "a.e2e.ts", "status": "failed", "assertionResults": [
        {"fullName": "one", "status": "skipped"}]}]}"#;
    assert_eq!(vitest(report, 1).broken, ["browser (a.e2e.ts)"]);
    for (report, code) in [("", 1), ("{\"testResults\": []}", 0), ("not json", 0)] {
        assert!(vitest(report, code).broken[0].contains("broke off"), "{report}");
    }
}
