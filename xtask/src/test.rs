//! `cargo xtask test`: every suite, with what it takes of the processor.
//!
//! Everything is built in one go, because cargo would build shared dependencies anew for another
//! selection of crates. `suites` says what belongs together, `program` builds and runs, `schedule` lets
//! programs that wait run beside others, `outcome` reads what came out. When all have ended, each
//! fuzz target gets a sample of its search, and tests with real parts that failed are run once more
//! (`second_try`). `summary` ends the run; `evidence` is what failures leave. Why it is no tool of
//! the ecosystem: ADR 16.

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

use crate::fuzz::{Ended, Fuzzer};
use crate::{deps, flaky, image, process, ui, workspace};
use cores::{BusyLoops, Cores};
use evidence::Evidence;
use outcome::Outcome;
use program::{CargoProgram, Lints, Program, Selection};
use schedule::Weight;
use second_try::Flaky;
use suites::{DEADLINE_BUDGETS, SUITES, Suite};
use summary::Finished;

/// What to run.
#[derive(Args)]
pub struct Arguments {
    /// Only tests whose full name contains one of these, as in
    /// `e2e::subscribe::a_token_that_is_revoked`.
    names: Vec<String>,
    /// Only suites without real programs outside the tests' own processes.
    #[arg(long)]
    fast: bool,
    /// Run the named tests so many times, without a second try for those that fail.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "names",
        value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep cores busy meanwhile; one when no number is given.
    #[arg(long, value_name = "CORES", num_args = 0..=1, default_missing_value = "1")]
    load: Option<usize>,
}

/// Of the processor, for each fuzz target. `soak` searches for hours.
const FUZZ_TARGET_TIME: Duration = Duration::from_secs(10);
const FUZZ_BUDGET: Duration = Duration::from_secs(5 * 60);
/// The same search each time: a change is judged by what it does, not by luck. `soak` tries its luck.
const FUZZ_SEED: u32 = 1;
/// A fuzz target has one thread.
const FUZZ_WEIGHT: Weight = schedule::WHOLE / 2;

/// A suite, and what of it is run.
struct Planned {
    suite: &'static Suite,
    programs: Vec<(Weight, Chosen)>,
}

/// A program, and which of its tests are run.
struct Chosen {
    program: Program,
    selection: Selection,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    run_with(arguments, Lints::No)
}

/// Everything, and Clippy's lints while it is built.
pub fn run_linted() -> Result<()> {
    let all = Arguments { names: Vec::new(), fast: false, repeat: 1, load: None };
    run_with(&all, Lints::Clippy)
}

fn run_with(arguments: &Arguments, lints: Lints) -> Result<()> {
    let (start, cores) = (Instant::now(), Cores::now());
    let whole = !arguments.fast && arguments.names.is_empty();
    let planned = prepare(arguments.fast, lints)?;
    let fuzzer = whole.then(Fuzzer::build).transpose()?;
    let (took, busy) = (process::length(start.elapsed()), Cores::busy_since(cores));
    println!("built in {took}, cores {busy} % busy");

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
    let flaky = try_again(&planned, &mut finished, &evidence)?;
    flaky::record(&workspace::root(), flaky.iter().map(|one| one.first.name.as_str()))?;
    let left = finished.iter().flat_map(|suite| &suite.outcome.failures);
    let failed = left.chain(flaky.iter().map(|one| &one.first)).map(|one| one.name.as_str());
    evidence.forget_all_but(&failed.collect::<Vec<_>>())?;
    summary::report(finished, &flaky, &evidence, start.elapsed())
}

/// Brings and builds everything that the tests need.
fn prepare(fast: bool, lints: Lints) -> Result<Vec<Planned>> {
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
        real_parts.join().ok().context("the thread that brings the real parts broke")??;
        Ok(planned)
    })
}

/// Builds everything and shares it out among the suites.
fn plan(root: &Path, fast: bool, lints: Lints) -> Result<Vec<Planned>> {
    let skipped = |suite: &&Suite| fast && suite.real_parts;
    let excluded: Vec<&str> = SUITES.iter().filter(skipped).flat_map(Suite::packages).collect();
    let mut built: Vec<CargoProgram> = program::build(root, &excluded, lints)?;
    let planned = SUITES.iter().map(|suite| {
        let programs = suite
            .programs(&mut built)
            .into_iter()
            .map(|(weight, program)| (weight, Chosen { program, selection: Selection::All }));
        Planned { suite, programs: programs.collect() }
    });
    Ok(planned.filter(|planned| !skipped(&planned.suite)).collect())
}

/// Runs the programs of a suite, side by side as far as their weights allow.
fn run_suite(planned: &Planned, evidence: &Evidence) -> Result<Finished> {
    let suite = planned.suite;
    let deadline = Instant::now() + suite.budget * DEADLINE_BUDGETS;
    side_by_side(suite.name, suite.budget, &planned.programs, |Chosen { program, selection }| {
        let since = Instant::now();
        let mut outcome = program.run(selection, deadline, evidence)?;
        let name = program.name();
        println!(
            "  {name:<36} {:>5} passed {:>3} failed {:>9}, processor {:>9}",
            outcome.passed,
            outcome.failed(),
            process::length(since.elapsed()),
            process::length(outcome.processor)
        );
        let guarantee = suites::guarantee(&name);
        for failure in &mut outcome.failures {
            failure.guarantee = failure.guarantee.take().or(guarantee.map(str::to_owned));
            evidence.keep_output(failure)?;
            println!("  test {} ... FAILED\n{}", failure.name, failure.assertion());
        }
        if !outcome.broken.is_empty() {
            println!("  broken: {}\n{}", outcome.broken.join(", "), evidence.end_of_log(&name));
        }
        Ok(outcome)
    })
}

/// A sample of the search of every fuzz target.
fn fuzz(fuzzer: &Fuzzer) -> Result<Finished> {
    let targets: Vec<(Weight, String)> =
        fuzzer.targets()?.into_iter().map(|target| (FUZZ_WEIGHT, target)).collect();
    side_by_side("fuzz", FUZZ_BUDGET, &targets, |target| {
        let mut output = String::new();
        let mut keep = |line: &str| output.extend([line, "\n"]);
        let ended = fuzzer.run(target, FUZZ_TARGET_TIME, Some(FUZZ_SEED), &mut keep)?;
        let mut outcome = Outcome { processor: FUZZ_TARGET_TIME, ..Outcome::default() };
        match ended {
            Ended::Clean => {
                println!("  {}", output.lines().last().unwrap_or(target));
                outcome.passed += 1;
            }
            Ended::Broken => {
                print!("{output}");
                outcome.broken.push(format!("fuzz {target}"));
            }
        }
        Ok(outcome)
    })
}

/// Calls `run` with every item as [`schedule::run`] does, and adds up what comes out of a suite.
fn side_by_side<T: Sync>(
    name: &'static str,
    budget: Duration,
    items: &[(Weight, T)],
    run: impl Fn(&T) -> Result<Outcome> + Sync,
) -> Result<Finished> {
    println!("suite {name}");
    let (begun, cores) = (Instant::now(), Cores::now());
    let mut outcome = Outcome::default();
    schedule::run(items, run)?.into_iter().for_each(|one| outcome.add(one));
    Ok(Finished { name, budget, took: begun.elapsed(), busy: Cores::busy_since(cores), outcome })
}

/// Gives failed tests of suites with real parts their second try; what passes is no failure any more.
fn try_again(
    planned: &[Planned],
    finished: &mut [Finished],
    evidence: &Evidence,
) -> Result<Vec<Flaky>> {
    let mut flaky = Vec::new();
    for planned in planned.iter().filter(|planned| planned.suite.real_parts) {
        let programs: Vec<&Program> =
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
