//! The fuzz targets under libFuzzer, one after the other.
//!
//! They are built in `target/debug` with everything else. A compiler wrapper instruments the
//! workspace's crates for coverage, so the stable toolchain suffices and dependencies are not built
//! again. Programs run at low priority and their time is processor time, so they neither delay
//! other programs nor lose time to them.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{process, workspace};

/// Passes the name of the target to the program.
const TARGET_ENV: &str = "DROVER_FUZZ_TARGET";
/// Maximum size of an input; most findings need few bytes.
const INPUT_BYTES_MAX: usize = 4096;
/// Seconds of wall-clock time that one input may take: the processor may be busy with other
/// programs.
const INPUT_SECONDS_MAX: usize = 60;
/// How many priority steps fuzz programs are below other programs.
const NICENESS: &str = "10";
/// Resident memory that counts as a finding.
const MEMORY_MIB_MAX: usize = 2048;
/// Poll interval of the processor time of a program.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum wall-clock time of a program, as a multiple of its processor time.
const STARVED_MAX: u32 = 20;
/// Additional wall-clock time for its end.
const ENDING_MAX: Duration = Duration::from_secs(120);
/// Lines of the program's output that are reported with a finding.
const FINDING_LINES: usize = 60;

/// Instruments the workspace's crates with counters of edges and comparisons. The checks of a debug
/// build stay.
const WRAPPER: &str = "#!/bin/sh\nexec \"$@\" -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on\n";

/// The program with all targets.
pub struct Fuzzer {
    program: PathBuf,
    corpora: PathBuf,
    /// Below it: inputs that broke a target, and new inputs of its corpus.
    folder: PathBuf,
}

impl Fuzzer {
    pub fn build() -> Result<Self> {
        let root = workspace::root();
        let folder = root.join("target/fuzz");
        fs::create_dir_all(&folder)?;
        let wrapper = folder.join("instrumented-rustc");
        fs::write(&wrapper, WRAPPER)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        let mut cargo = workspace::cargo();
        cargo
            .args(["build", "-q", "-p", "fuzz", "--features", "libfuzzer", "--bin", "fuzz"])
            .env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
        process::run(&mut cargo).context("libFuzzer needs a compiler for C++")?;
        // Another build of the same name could replace it during the run.
        let program = folder.join("fuzz");
        fs::copy(root.join("target/debug/fuzz"), &program)?;
        Ok(Self { program, corpora: root.join("crates/fuzz/corpus"), folder })
    }

    /// The targets: the folders of corpora, which a test of the crate compares with its list.
    pub fn targets(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.corpora).context("cannot list the corpora")?;
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    /// Runs `target` for `time` of processor time. The `seed` that a run reported produces the same
    /// inputs again. Reports seed and statistics; with a finding, the last lines of the output and
    /// the input.
    pub fn run(
        &self,
        target: &str,
        time: Duration,
        seed: Option<u32>,
        report: &mut dyn FnMut(&str),
    ) -> Result<FuzzResult> {
        let since = Instant::now();
        let mut run = self.command(target, seed)?;
        report(&format!("{TARGET_ENV}={target} {}", process::command_line(&run)));
        let mut child = run.stderr(Stdio::piped()).spawn().context("cannot run the fuzz target")?;
        let mut stderr = child.stderr.take().context("the fuzz target has no standard error")?;
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
        });
        let used = end_after(&mut child, time)?;
        let status = child.wait()?;
        let output = reader.join().ok().context("a reader of a fuzz target broke")??;
        if status.success() {
            let reported = ["INFO: Seed", "stat::"];
            output
                .lines()
                .filter(|line| reported.iter().any(|mark| line.contains(mark)))
                .for_each(&mut *report);
        } else {
            let lines: Vec<&str> = output.lines().collect();
            let tail = &lines[lines.len().saturating_sub(FINDING_LINES)..];
            tail.iter().for_each(|line| report(line));
        }
        report(&format!(
            "fuzz {target} had {} of the processor in {}",
            process::duration_text(used),
            process::duration_text(since.elapsed())
        ));
        Ok(if status.success() { FuzzResult::Clean } else { FuzzResult::Broken })
    }

    fn command(&self, target: &str, seed: Option<u32>) -> Result<Command> {
        let corpus = self.corpora.join(target);
        ensure!(
            corpus.is_dir(),
            "no fuzz target is called '{target}'; 'crates/fuzz/corpus' has a folder of each"
        );
        let folder = self.folder.join(target);
        let (found, grown) = (folder.join("found/"), folder.join("corpus"));
        fs::create_dir_all(&found)?;
        fs::create_dir_all(&grown)?;
        let mut run = Command::new("nice");
        run.args(["-n", NICENESS]).arg(&self.program).env(TARGET_ENV, target);
        // New inputs are written into the first folder.
        run.args([grown.as_path(), corpus.as_path()]).args([
            format!("-max_len={INPUT_BYTES_MAX}"),
            format!("-timeout={INPUT_SECONDS_MAX}"),
            format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
            format!("-artifact_prefix={}", found.display()),
            "-print_final_stats=1".to_owned(),
            "-verbosity=1".to_owned(),
        ]);
        if let Some(seed) = seed {
            run.arg(format!("-seed={seed}"));
        }
        Ok(run)
    }
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FuzzResult {
    Clean,
    /// An input broke the target; it is below `target/fuzz`.
    Broken,
}

/// Ends the program regularly once it has used `time` of processor time. Returns the time that it
/// used.
///
/// # Errors
/// It did not get that time or did not end before the deadline, and was killed.
fn end_after(child: &mut Child, time: Duration) -> Result<Duration> {
    let process = Pid::from_raw(i32::try_from(child.id()).context("a process id is too large")?);
    let mut used = Duration::ZERO;
    let mut is_signalled = false;
    let ended = testbed::poll_until(time * STARVED_MAX + ENDING_MAX, POLL_INTERVAL, || {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        used = processor_time(process).unwrap_or(used);
        if used >= time && !is_signalled {
            // On this signal, libFuzzer ends as after its own time limit.
            kill(process, Signal::SIGUSR1)?;
            is_signalled = true;
        }
        bail!("it still runs, and has had {}", process::duration_text(used))
    });
    if let Err(late) = ended {
        child.kill()?;
        return Err(late);
    }
    Ok(used)
}

/// Processor time of the main thread; none once the process has ended.
fn processor_time(process: Pid) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_ended_after_its_processor_time() {
        let time = Duration::from_millis(200);
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let used = end_after(&mut child, time).unwrap();
        assert!(used >= time, "{used:?}");
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_program_that_ends_by_itself_is_not_waited_for() {
        let mut child = Command::new("true").spawn().unwrap();
        end_after(&mut child, Duration::from_secs(60)).unwrap();
        assert!(child.wait().unwrap().success());
    }
}
