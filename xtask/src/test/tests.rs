//! Parsing of output, second tries and evidence, with programs that fail on purpose.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::outcome::{KilledProgram, OutputReader, TestFailure, of_vitest};
use super::*;

fn exit(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

fn read(lines: &[&str], code: i32, killed: Option<KilledProgram>) -> TestOutcome {
    let mut reader = OutputReader::new("storage::etcd");
    lines.iter().for_each(|line| reader.line(line));
    reader.finish(exit(code), killed)
}

const FAILED: [&str; 13] = [
    "running 3 tests",
    "test a::quick ... ok <0.002s>",
    "test a::slow ... ok <2.500s>",
    "test a::wrong ... FAILED <0.100s>",
    "failures:",
    "---- a::wrong stdout ----",
    "started",
    "thread 'a::wrong' panicked at src/a.rs:3:5:",
    "it is wrong",
    "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
    "failures:",
    "    a::wrong",
    "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
];

#[test]
fn tests_are_counted_with_their_times_and_failures_with_their_output() {
    let outcome = read(&FAILED, 101, None);
    assert_eq!((outcome.passed, outcome.failure_count()), (2, 1));
    assert_eq!(outcome.slowest(1), [&("storage::etcd::a::slow".to_owned(), 2.5)]);
    let failure = &outcome.failures[0];
    assert_eq!(
        (failure.name.as_str(), failure.test.as_str()),
        ("storage::etcd::a::wrong", "a::wrong")
    );
    assert!(failure.output.starts_with("started\n"), "{failure:?}");
    let assertion = "thread 'a::wrong' panicked at src/a.rs:3:5:\nit is wrong\n";
    assert_eq!(failure.assertion(), assertion);
    assert_eq!(failure.guarantee, None);
    assert!(outcome.broken.is_empty());
}

#[test]
fn the_guarantee_of_a_failed_test_is_read_from_its_output() {
    let mark = format!("{}{}", testbed::NO_SECOND_TRY, testbed::Guarantee::Secrecy);
    let mut lines = FAILED;
    lines[6] = &mark;
    assert_eq!(read(&lines, 101, None).failures[0].guarantee.as_deref(), Some("secrecy"));
}

#[test]
fn a_program_that_aborts_is_a_failure() {
    let outcome = read(&["running 3 tests", "test a ... ok <0.002s>"], 134, None);
    assert_eq!((outcome.passed, outcome.failure_count()), (1, 1));
    assert!(outcome.broken[0].contains("broke off"), "{outcome:?}");
}

#[test]
fn a_program_beyond_its_deadline_is_a_failure_that_names_unfinished_tests() {
    let killed =
        KilledProgram { after: Duration::from_secs(60), unfinished: vec!["a::stuck".to_owned()] };
    let outcome = read(&["running 1 test"], 0, Some(killed));
    assert!(outcome.broken[0].ends_with("not ended: a::stuck"), "{outcome:?}");
}

fn vitest(report: &str, code: i32) -> TestOutcome {
    of_vitest("browser", report, exit(code), None)
}

#[test]
fn tests_of_the_interface_are_counted_with_their_times() {
    let report = r#"{"testResults": [{"name": "/x/a.e2e.ts", "status": "failed", "assertionResults": [
        {"fullName": "one", "status": "passed", "duration": 1500.0},
        {"fullName": "two", "status": "failed", "duration": 3.0, "failureMessages": ["Error: two"],
         "meta": {"guarantee": "rights"}},
        {"fullName": "three", "status": "skipped"}]}]}"#;
    let outcome = vitest(report, 1);
    assert_eq!((outcome.passed, outcome.failure_count(), outcome.ignored), (1, 1, 1));
    assert_eq!(outcome.slowest(1), [&("ui::a::one".to_owned(), 1.5)]);
    let failure = &outcome.failures[0];
    assert_eq!((failure.name.as_str(), failure.test.as_str()), ("ui::a::two", "a::two"));
    assert_eq!(
        (failure.output.as_str(), failure.guarantee.as_deref()),
        ("Error: two", Some("rights"))
    );
}

#[test]
fn a_failed_setup_of_the_interface_tests_is_a_failure() {
    let report = r#"{"testResults": [{"name": "a.e2e.ts", "status": "failed", "message": "no port",
        "assertionResults": [{"fullName": "one", "status": "skipped"}]}]}"#;
    assert_eq!(vitest(report, 1).broken, ["browser (a.e2e.ts) no port"]);
    for (report, code) in [("", 1), ("{\"testResults\": []}", 0), ("not json", 0)] {
        assert!(vitest(report, code).broken[0].contains("broke off"), "{report}");
    }
}

/// Programs built from `xtask/fixtures/test-programs`, run once, and their evidence.
struct Ran {
    _folder: tempfile::TempDir,
    programs: Vec<TestProgram>,
    evidence: Evidence,
    outcome: TestOutcome,
}

impl Ran {
    fn once() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&workspace::root().join("xtask/fixtures/test-programs"), folder.path());
        let built = program::build(folder.path(), &[], Lints::Clippy).unwrap();
        let programs: Vec<TestProgram> = built.into_iter().map(TestProgram::Cargo).collect();
        let evidence = Evidence::begin(&folder.path().join("target")).unwrap();
        let mut outcome = TestOutcome::default();
        for program in &programs {
            outcome.add(program.run(&Selection::All, deadline(), &evidence).unwrap());
        }
        outcome.failures.iter().for_each(|failure| evidence.store_output(failure).unwrap());
        Self { _folder: folder, programs, evidence, outcome }
    }

    fn try_again(&self, tests: &[&str]) -> second_try::SecondTryResult {
        let failed = |test: &&str| {
            let mut failures = self.outcome.failures.iter();
            failures.find(|failure| failure.test == *test).expect("it has failed").clone()
        };
        let failed: Vec<TestFailure> = tests.iter().map(failed).collect();
        let programs: Vec<&TestProgram> = self.programs.iter().collect();
        second_try::run(&programs, failed, &self.evidence).unwrap()
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_failed_test_is_flaky_if_it_passes_alone_and_fails_if_it_fails_twice_or_guards_rights() {
    let ran = Ran::once();
    assert_eq!((ran.outcome.passed, ran.outcome.failure_count()), (1, 4), "{:?}", ran.outcome);
    assert!(ran.outcome.processor > Duration::ZERO);

    let tried = ran.try_again(&["fails_first_one", "fails_first_two"]);
    let names: Vec<&str> = tried.flaky.iter().map(|one| one.first.name.as_str()).collect();
    assert_eq!(names, ["fixture::trouble::fails_first_one", "fixture::trouble::fails_first_two"]);
    assert!(tried.failures.is_empty());
    let first = &tried.flaky[0];
    assert!(first.first.output.contains("a race"), "{first:?}");
    assert!(first.second.contains("test fails_first_one ... ok"), "{first:?}");
    assert!(ran.evidence.describe(&first.first).contains("fails_first_one.first-try"));

    let tried = ran.try_again(&["fails_always", "fails_first_and_guards_rights"]);
    assert!(tried.flaky.is_empty());
    let causes: Vec<(&str, Option<&str>)> = tried
        .failures
        .iter()
        .map(|failure| (failure.test.as_str(), failure.guarantee.as_deref()))
        .collect();
    let expected = [("fails_first_and_guards_rights", Some("rights")), ("fails_always", None)];
    assert_eq!(causes, expected);
    let shown = ran.evidence.describe(&tried.failures[1]);
    assert!(shown.contains("tests/trouble.rs:") && shown.contains("arithmetic"), "{shown}");
}

fn plan_of(programs: Vec<TestProgram>) -> Vec<PlannedSuite> {
    let programs = programs
        .into_iter()
        .map(|program| (1, SelectedProgram { program, selection: Selection::All }));
    vec![PlannedSuite { suite: &SUITES[0], programs: programs.collect() }]
}

#[test]
fn named_tests_are_run_as_often_as_desired_without_a_second_try() {
    let Ran { _folder, programs, evidence, .. } = Ran::once();
    let names = ["::fails_first".to_owned(), "passes".to_owned()];
    let chosen = named::choose(plan_of(programs), &names).unwrap();
    // All of these have failed once already.
    named::repeat(&chosen, 3, &evidence).unwrap();
    let error = named::choose(chosen, &["nothing".to_owned()]).err().unwrap();
    assert!(error.to_string().contains("no test's name contains 'nothing'"), "{error}");
}

#[test]
fn a_named_test_that_fails_in_any_round_is_a_failure() {
    let Ran { _folder, programs, evidence, .. } = Ran::once();
    let chosen = named::choose(plan_of(programs), &["fails_always".to_owned()]).unwrap();
    let error = named::repeat(&chosen, 2, &evidence).unwrap_err();
    assert_eq!(error.to_string(), "2 failures in 2 rounds");
}

#[test]
fn a_lint_stops_the_build_of_ci() {
    let folder = tempfile::tempdir().unwrap();
    copy(&workspace::root().join("xtask/fixtures/test-programs"), folder.path());
    let linted = "//! A needless return.\n\n/// Two.\npub fn two() -> u8 {\n    return 2;\n}\n";
    fs::write(folder.path().join("src/lib.rs"), linted).unwrap();
    assert!(program::build(folder.path(), &[], Lints::Clippy).is_err());
}
