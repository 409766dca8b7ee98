//! `cargo xtask test`: every suite within its budget of minutes.
//!
//! Everything is built in one go, because cargo would build shared dependencies anew for another
//! selection of crates. The test programs are then run one by one, as cargo does it, with times
//! per test. The web interface's tests are run by Vitest. `outcome` reads what both say. The fuzz
//! targets run beside all of it, with what is left of the processor.

mod outcome;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::fuzz::{Ended, Fuzzer};
use crate::{deps, image, process, ui, workspace};
use outcome::Outcome;

/// What to run.
#[derive(Args, Default)]
pub struct Arguments {
    /// Only what touches nothing outside its process: every crate but the system tests and those
    /// that start real programs.
    #[arg(long)]
    fast: bool,
}

/// Tests that share a budget.
struct Suite {
    name: &'static str,
    tests: Tests,
    budget: Duration,
}

enum Tests {
    Crates(&'static [&'static str]),
    AllOtherCrates,
    /// Of the web interface, by their Vitest configuration in `ui`.
    Interface(&'static str),
}

const fn minutes(number: u64) -> Duration {
    Duration::from_secs(number * 60)
}

/// In the order in which they fail fastest. A suite beyond its budget fails.
const SUITES: [Suite; 5] = [
    Suite { name: "interface", tests: Tests::Interface("vite.config.ts"), budget: minutes(2) },
    Suite { name: "in process", tests: Tests::AllOtherCrates, budget: minutes(14) },
    Suite { name: "real parts", tests: Tests::Crates(&["testbed", "xtask"]), budget: minutes(8) },
    Suite { name: "system", tests: Tests::Crates(&["e2e"]), budget: minutes(28) },
    Suite { name: "browser", tests: Tests::Interface("e2e/vitest.config.ts"), budget: minutes(10) },
];
/// Package and target of a program that mostly waits, for so long that the others of its suite run
/// meanwhile.
const BESIDE: (&str, &str) = ("e2e", "test controller_manager");
/// What each fuzz target gets of the processor, beside all suites.
const FUZZ_TARGET_TIME: Duration = minutes(1);
const FUZZ_BUDGET: Duration = minutes(50);
/// The same search each time: a change is judged by what it does, not by luck. `soak` tries its luck.
const FUZZ_SEED: u32 = 1;
/// So many of the suites touch nothing outside their process.
const FAST_SUITES: usize = 2;
const SLOWEST_SHOWN: usize = 5;

impl Suite {
    fn holds(&self, name: &str) -> bool {
        let named = |suite: &Self| match suite.tests {
            Tests::Crates(names) => names.contains(&name),
            Tests::AllOtherCrates | Tests::Interface(_) => false,
        };
        match self.tests {
            Tests::AllOtherCrates => !SUITES.iter().any(named),
            Tests::Crates(_) | Tests::Interface(_) => named(self),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let suites = if arguments.fast { &SUITES[..FAST_SUITES] } else { &SUITES[..] };
    ui::install()?;
    if !arguments.fast {
        deps::run()?;
        ui::build()?;
        image::run(&image::Arguments::default())?;
    }
    let programs = build(arguments.fast)?;
    println!("built in {}", process::length(start.elapsed()));

    let fuzzing = (!arguments.fast).then(|| std::thread::spawn(fuzz));
    let mut finished = Vec::new();
    for suite in suites {
        let begun = Instant::now();
        let mut outcome = Outcome::default();
        if let Tests::Interface(configuration) = suite.tests {
            outcome.add(&run_vitest(suite.name, configuration, suite.budget)?);
        }
        let own = programs.iter().filter(|program| suite.holds(&program.package));
        run_all(&own.collect::<Vec<_>>(), suite.budget, &mut outcome)?;
        let took = begun.elapsed();
        finished.push(Finished { name: suite.name, budget: suite.budget, took, outcome });
    }
    if let Some(fuzzing) = fuzzing {
        finished.push(fuzzing.join().ok().context("the thread of the fuzz targets broke")??);
    }
    report(&finished, start.elapsed())
}

/// Runs the programs of a suite one by one, those that wait beside the others.
fn run_all(programs: &[&Program], budget: Duration, outcome: &mut Outcome) -> Result<()> {
    let begun = Instant::now();
    let (waiting, others): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| program.is_beside());
    std::thread::scope(|scope| {
        let run_silently = move |program: &Program| {
            let mut said = String::new();
            let outcome = program.run(budget, &mut |line| {
                said.push_str(line);
                said.push('\n');
            });
            (said, outcome)
        };
        let waiting: Vec<_> =
            waiting.into_iter().map(|program| scope.spawn(move || run_silently(program))).collect();
        for program in others {
            let left = budget.saturating_sub(begun.elapsed());
            outcome.add(&program.run(left, &mut |line| println!("{line}"))?);
        }
        for program in waiting {
            let (said, ended) = program.join().ok().context("a thread of a test program broke")?;
            print!("{said}");
            outcome.add(&ended?);
        }
        Ok(())
    })
}

/// A suite that has run.
struct Finished {
    name: &'static str,
    budget: Duration,
    took: Duration,
    outcome: Outcome,
}

/// Every fuzz target for its time of the processor, told of when the last has ended.
fn fuzz() -> Result<Finished> {
    let begun = Instant::now();
    let mut outcome = Outcome::default();
    let mut said = String::new();
    let fuzzer = Fuzzer::build()?;
    for target in fuzzer.targets()? {
        if begun.elapsed() > FUZZ_BUDGET {
            outcome.broken.push(format!("fuzz {target} was not run: over budget"));
            continue;
        }
        let tell = &mut |line: &str| {
            said.push_str(line);
            said.push('\n');
        };
        match fuzzer.run(&target, FUZZ_TARGET_TIME, Some(FUZZ_SEED), tell)? {
            Ended::Clean => outcome.passed += 1,
            Ended::Broken => outcome.broken.push(format!("fuzz {target}")),
        }
    }
    print!("{said}");
    Ok(Finished { name: "fuzz", budget: FUZZ_BUDGET, took: begun.elapsed(), outcome })
}

/// Prints minutes, slowest tests and, last, the sum in the form that cargo's own tests end with.
fn report(finished: &[Finished], total: Duration) -> Result<()> {
    println!();
    let mut sum = Outcome::default();
    for suite in finished {
        println!(
            "suite {:<12} {:>8} of {:>8}  {} passed, {} failed",
            suite.name,
            process::length(suite.took),
            process::length(suite.budget),
            suite.outcome.passed,
            suite.outcome.failed()
        );
        sum.add(&suite.outcome);
    }
    println!("slowest tests:");
    for (name, seconds) in sum.slowest(SLOWEST_SHOWN) {
        println!("  {seconds:>7.2} s  {name}");
    }
    for failed in &sum.failures {
        println!("test {failed} ... FAILED");
    }
    for broken in &sum.broken {
        println!("broken: {broken}");
    }
    let verdict = if sum.failed() == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {} failed; {} ignored; finished in {:.2}s",
        sum.passed,
        sum.failed(),
        sum.ignored,
        total.as_secs_f64()
    );
    if sum.failed() > 0 {
        bail!("{} tests failed", sum.failed());
    }
    Ok(())
}

/// One compiled test program.
struct Program {
    package: String,
    version: String,
    folder: PathBuf,
    /// What cargo calls it: the library, or the file under `tests`.
    target: String,
    executable: PathBuf,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds all tests, and the binaries that system tests start, and lists the test programs.
fn build(fast: bool) -> Result<Vec<Program>> {
    let metadata = workspace::metadata(&workspace::root(), &["--no-deps"])?;
    let packages: BTreeMap<&str, _> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--workspace", "--lib", "--bins", "--tests"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    if fast {
        for suite in &SUITES[FAST_SUITES..] {
            if let Tests::Crates(names) = suite.tests {
                cargo.args(names.iter().flat_map(|name| ["--exclude", name]));
            }
        }
    }
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        let message: Message = serde_json::from_str(&line?).context("cannot read cargo's words")?;
        if message.reason != "compiler-artifact" || !message.profile.is_some_and(|one| one.test) {
            continue;
        }
        let (Some(executable), Some(target)) = (message.executable, message.target) else {
            continue;
        };
        let id = message.package_id.unwrap_or_default();
        let Some(package) = packages.get(id.as_str()) else { continue };
        programs.push(Program {
            package: package.name.clone(),
            version: package.version.clone(),
            folder: package.manifest_path.parent().unwrap_or(&package.manifest_path).to_owned(),
            target: format!("{} {}", target.kind.join(" "), target.name),
            executable,
        });
    }
    if !child.wait()?.success() {
        bail!("the tests do not build");
    }
    programs
        .sort_by(|one, other| (&one.package, &one.target).cmp(&(&other.package, &other.target)));
    Ok(programs)
}

impl Program {
    fn is_beside(&self) -> bool {
        (self.package.as_str(), self.target.as_str()) == BESIDE
    }

    /// Runs all tests of the program and returns what came out; each line it prints is told. At the
    /// end of `budget` it is killed.
    fn run(&self, budget: Duration, tell: &mut dyn FnMut(&str)) -> Result<Outcome> {
        tell(&format!("     Running {} ({})", self.package, self.target));
        let mut child = Command::new(&self.executable)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env("CARGO_PKG_VERSION", &self.version)
            // A snapshot that differs is a failure, not a new file.
            .env("INSTA_UPDATE", "no")
            // Only with this variable does a stable test program tell its times.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["-Z", "unstable-options", "--report-time"])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run '{}'", self.executable.display()))?;
        let output = child.stdout.take().context("a test program has no standard output")?;
        let watch = Watch::over(child.id(), budget)?;
        let mut seen = outcome::Reader::new(&self.package);
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("cannot read what a test program prints")?;
            let line = String::from_utf8_lossy(&line);
            tell(&line);
            seen.line(&line);
        }
        std::io::stdout().flush()?;
        let status = child.wait()?;
        let killed = watch.end();
        Ok(seen.finish(&self.target, status, killed.then_some(budget)))
    }
}

/// Runs the interface's tests of one configuration; at the end of `budget` they are killed.
fn run_vitest(suite: &str, configuration: &str, budget: Duration) -> Result<Outcome> {
    println!("     Running ui ({configuration})");
    let said = workspace::root().join("target/ui").join(format!("{suite}.json"));
    // What an earlier run said must not count for this one.
    let _ = std::fs::remove_file(&said);
    let mut vitest = ui::node("vitest/vitest.mjs");
    vitest.args(["run", "--config", configuration, "--reporter", "default", "--reporter", "json"]);
    vitest.arg("--outputFile.json").arg(&said);
    let mut child = vitest.spawn().context("cannot run Vitest")?;
    let watch = Watch::over(child.id(), budget)?;
    let status = child.wait()?;
    let killed = watch.end();
    let said = std::fs::read_to_string(said).unwrap_or_default();
    Ok(outcome::of_vitest(suite, &said, status, killed.then_some(budget)))
}

/// Kills a process at a deadline, unless it ends before.
struct Watch {
    done: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Watch {
    fn over(process: u32, limit: Duration) -> Result<Self> {
        let process = Pid::from_raw(i32::try_from(process).context("a process id is too large")?);
        let (done, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // It is not reaped before this thread is told, so the id is still its own.
                let _ = kill(process, Signal::SIGKILL);
            }
            late
        });
        Ok(Self { done, thread })
    }

    /// Whether the process was killed.
    fn end(self) -> bool {
        let _ = self.done.send(());
        self.thread.join().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
