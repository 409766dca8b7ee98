//! `cargo xtask test`: runs every suite, and measures its processor time.
//!
//! One cargo call builds everything, because cargo would rebuild shared dependencies for another
//! selection of crates. `suites` groups the tests, `program` builds and runs them, `schedule` runs
//! programs in parallel that mostly wait, `outcome` parses the output. Then each fuzz target runs a
//! sample of its search, and failed tests with real parts run once more (`second_try`). `summary`
//! ends the run; `evidence` stores the files of failures. ADR 16 explains why this is not an
//! existing tool.

mod child;
mod cores;
mod evidence;
mod named;
mod outcome;
mod program;
mod schedule;
mod second_try;
mod suites;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use crate::fuzz::{FuzzResult, Fuzzer};
use crate::{deps, flaky, image, process, ui, workspace};
use cores::{BusyLoops, Cores};
use evidence::Evidence;
use outcome::TestOutcome;
use program::{CargoProgram, Lints, Selection, TestProgram};
use schedule::Weight;
use second_try::Flaky;
use suites::{DEADLINE_BUDGETS, SUITES, Suite};
use summary::FinishedSuite;

/// What to run.
#[derive(Args)]
pub struct Arguments {
    /// Only tests whose full name contains one of these, as in
    /// `e2e::subscribe::a_token_that_is_revoked`.
    names: Vec<String>,
    /// Only suites without real programs outside the tests' own processes.
    #[arg(long)]
    fast: bool,
    /// Run the named tests this many times, without a second try for failed ones.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "names",
        value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep cores busy during the run; one if no number is given.
    #[arg(long, value_name = "CORES", num_args = 0..=1, default_missing_value = "1")]
    load: Option<usize>,
}

/// Processor time of each fuzz target. `soak` searches for hours.
const FUZZ_TARGET_TIME: Duration = Duration::from_secs(10);
const FUZZ_BUDGET: Duration = Duration::from_secs(5 * 60);
/// The same search in each run, so that the result depends only on the change. `soak` uses random
/// seeds.
const FUZZ_SEED: u32 = 1;
/// A fuzz target has one thread.
const FUZZ_WEIGHT: Weight = schedule::WHOLE / 2;

/// A suite, and its programs to run.
struct PlannedSuite {
    suite: &'static Suite,
    programs: Vec<(Weight, SelectedProgram)>,
}

/// A program, and its tests to run.
struct SelectedProgram {
    program: TestProgram,
    selection: Selection,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    run_with(arguments, Lints::No)
}

/// Runs everything, with Clippy's lints during the build.
pub fn run_linted() -> Result<()> {
    let all = Arguments { names: Vec::new(), fast: false, repeat: 1, load: None };
    run_with(&all, Lints::Clippy)
}

fn run_with(arguments: &Arguments, lints: Lints) -> Result<()> {
    let (start, cores) = (Instant::now(), Cores::now());
    let whole = !arguments.fast && arguments.names.is_empty();
    let planned = prepare(arguments.fast, lints)?;
    let fuzzer = whole.then(Fuzzer::build).transpose()?;
    let (took, busy) = (process::duration_text(start.elapsed()), Cores::busy_since(cores));
    let free = workspace::free_space(&workspace::root())?;
    println!("built in {took}, cores {busy} % busy; the disk has {free}");

    let planned = match arguments.names.as_slice() {
        [] => planned,
        names => named::choose(planned, names)?,
    };
    let evidence = Evidence::begin(&workspace::root().join("target"))?;
    let _load = arguments.load.map(BusyLoops::on);
    if arguments.repeat > 1 {
        return named::repeat(&planned, arguments.repeat, &evidence);
    }
    let mut finished = Vec::new();
    for planned in &planned {
        finished.push(run_suite(planned, &evidence)?);
    }
    if let Some(fuzzer) = fuzzer {
        finished.push(fuzz(&fuzzer)?);
    }
    let flaky = run_second_tries(&planned, &mut finished, &evidence)?;
    flaky::record(&workspace::root(), flaky.iter().map(|one| one.first.name.as_str()))?;
    let left = finished.iter().flat_map(|suite| &suite.outcome.failures);
    let failed = left.chain(flaky.iter().map(|one| &one.first)).map(|one| one.name.as_str());
    evidence.remove_all_but(&failed.collect::<Vec<_>>())?;
    summary::report(finished, &flaky, &evidence, start.elapsed())
}

/// Fetches and builds everything that the tests need.
fn prepare(fast: bool, lints: Lints) -> Result<Vec<PlannedSuite>> {
    ui::install()?;
    if fast {
        return plan(&workspace::root(), true, lints);
    }
    std::thread::scope(|scope| {
        // Waits for the network, and for Go's linker, which has one thread most of the time.
        let real_parts = scope.spawn(deps::run);
        ui::build()?;
        image::run(&image::Arguments::default())?;
        let planned = plan(&workspace::root(), false, lints)?;
        real_parts.join().ok().context("the thread that fetches the real parts panicked")??;
        Ok(planned)
    })
}

/// Builds all programs and assigns them to the suites.
fn plan(root: &Path, fast: bool, lints: Lints) -> Result<Vec<PlannedSuite>> {
    let skipped = |suite: &&Suite| fast && suite.real_parts;
    let excluded: Vec<&str> = SUITES.iter().filter(skipped).flat_map(Suite::packages).collect();
    let mut built: Vec<CargoProgram> = program::build(root, &excluded, lints)?;
    let planned = SUITES.iter().map(|suite| {
        let programs = suite.programs(&mut built).into_iter().map(|(weight, program)| {
            (weight, SelectedProgram { program, selection: Selection::All })
        });
        PlannedSuite { suite, programs: programs.collect() }
    });
    Ok(planned.filter(|planned| !skipped(&planned.suite)).collect())
}

/// Runs the programs of a suite, in parallel as far as their weights allow.
fn run_suite(planned: &PlannedSuite, evidence: &Evidence) -> Result<FinishedSuite> {
    let suite = planned.suite;
    let deadline = Instant::now() + suite.budget * DEADLINE_BUDGETS;
    run_in_parallel(
        suite.name,
        suite.budget,
        &planned.programs,
        |SelectedProgram { program, selection }| {
            let since = Instant::now();
            let mut outcome = program.run(selection, deadline, evidence)?;
            let name = program.name();
            println!(
                "  {name:<36} {:>5} passed {:>3} failed {:>9}, processor {:>9}",
                outcome.passed,
                outcome.failure_count(),
                process::duration_text(since.elapsed()),
                process::duration_text(outcome.processor)
            );
            let guarantee = suites::guarantee(&name);
            for failure in &mut outcome.failures {
                failure.guarantee = failure.guarantee.take().or(guarantee.map(str::to_owned));
                evidence.store_output(failure)?;
                println!("  test {} ... FAILED\n{}", failure.name, failure.assertion());
            }
            if !outcome.broken.is_empty() {
                println!("  broken: {}\n{}", outcome.broken.join(", "), evidence.end_of_log(&name));
            }
            Ok(outcome)
        },
    )
}

/// Runs a sample of the search of every fuzz target.
fn fuzz(fuzzer: &Fuzzer) -> Result<FinishedSuite> {
    let targets: Vec<(Weight, String)> =
        fuzzer.targets()?.into_iter().map(|target| (FUZZ_WEIGHT, target)).collect();
    run_in_parallel("fuzz", FUZZ_BUDGET, &targets, |target| {
        let mut output = String::new();
        let mut collect = |line: &str| output.extend([line, "\n"]);
        let ended = fuzzer.run(target, FUZZ_TARGET_TIME, Some(FUZZ_SEED), &mut collect)?;
        let mut outcome = TestOutcome { processor: FUZZ_TARGET_TIME, ..TestOutcome::default() };
        match ended {
            FuzzResult::Clean => {
                println!("  {}", output.lines().last().unwrap_or(target));
                outcome.passed += 1;
            }
            FuzzResult::Broken => {
                print!("{output}");
                outcome.broken.push(format!("fuzz {target}"));
            }
        }
        Ok(outcome)
    })
}

/// Calls `run` with every item like [`schedule::run`], and adds up the outcomes of a suite.
fn run_in_parallel<T: Sync>(
    name: &'static str,
    budget: Duration,
    items: &[(Weight, T)],
    run: impl Fn(&T) -> Result<TestOutcome> + Sync,
) -> Result<FinishedSuite> {
    println!("suite {name}");
    let (begun, cores) = (Instant::now(), Cores::now());
    let mut outcome = TestOutcome::default();
    schedule::run(items, run)?.into_iter().for_each(|one| outcome.add(one));
    Ok(FinishedSuite {
        name,
        budget,
        took: begun.elapsed(),
        busy: Cores::busy_since(cores),
        outcome,
    })
}

/// Runs failed tests of suites with real parts once more. Tests that pass are flaky, not failed.
fn run_second_tries(
    planned: &[PlannedSuite],
    finished: &mut [FinishedSuite],
    evidence: &Evidence,
) -> Result<Vec<Flaky>> {
    let mut flaky = Vec::new();
    for planned in planned.iter().filter(|planned| planned.suite.real_parts) {
        let programs: Vec<&TestProgram> =
            planned.programs.iter().map(|(_, chosen)| &chosen.program).collect();
        for suite in finished.iter_mut().filter(|suite| suite.name == planned.suite.name) {
            let failed = std::mem::take(&mut suite.outcome.failures);
            let tried = second_try::run(&programs, failed, evidence)?;
            suite.outcome.failures = tried.failures;
            flaky.extend(tried.flaky);
        }
    }
    Ok(flaky)
}

#[cfg(test)]
mod tests;
