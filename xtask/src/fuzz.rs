//! The fuzz targets under libFuzzer, one after the other.
//!
//! They are built in `target/debug` with everything else: a wrapper around the compiler has our own
//! crates count what an input reaches, so the stable toolchain will do and dependencies are not
//! built again. Programs run at a low priority, and their time is processor time: what runs
//! beside them is not held up, and does not take from what they do.

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

/// Names the target to the program.
const TARGET_ENV: &str = "DROVER_FUZZ_TARGET";
/// Bytes of an input; most of what there is to find needs few.
const INPUT_BYTES_MAX: usize = 4096;
/// Seconds that one input may take, by the clock: the processor may be busy elsewhere.
const INPUT_SECONDS_MAX: usize = 60;
/// Steps of priority that what runs beside is ahead.
const NICENESS: &str = "10";
/// Resident memory at which a run is a finding.
const MEMORY_MIB_MAX: usize = 2048;
/// Between two looks at the time that a program has used.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// By the clock, a program may take so many times what it shall have of the processor.
const STARVED_MAX: u32 = 20;
/// And so long for its end.
const ENDING_MAX: Duration = Duration::from_secs(120);
/// Lines of the program's that are told of a finding.
const FINDING_LINES: usize = 60;

/// Adds counters of edges and of comparisons to our crates, and keeps the checks of a debug build.
const WRAPPER: &str = "#!/bin/sh\nexec \"$@\" -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on\n";

/// The program with all targets.
pub struct Fuzzer {
    program: PathBuf,
    corpora: PathBuf,
    /// Below it: inputs that broke a target, and what its corpus has grown by.
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
        process::succeed(&mut cargo).context("libFuzzer needs a compiler for C++")?;
        // Other builds of the same name would replace it halfway.
        let program = folder.join("fuzz");
        fs::copy(root.join("target/debug/fuzz"), &program)?;
        Ok(Self { program, corpora: root.join("crates/fuzz/corpus"), folder })
    }

    /// The folders of corpora; a test of the crate holds them against its list.
    pub fn targets(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.corpora).context("cannot list the corpora")?;
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    /// Lets `target` run for `time` of the processor. With the `seed` that a run has told, it makes
    /// the same inputs again. The program's words are told; with a finding, its last lines and the
    /// input.
    pub fn run(
        &self,
        target: &str,
        time: Duration,
        seed: Option<u32>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Ended> {
        let since = Instant::now();
        let mut run = self.command(target, seed)?;
        tell(&format!("{TARGET_ENV}={target} {}", process::shown(&run)));
        let mut child = run.stderr(Stdio::piped()).spawn().context("cannot run the fuzz target")?;
        let mut said = child.stderr.take().context("the fuzz target has no standard error")?;
        let said = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            said.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
        });
        let used = end_after(&mut child, time)?;
        let status = child.wait()?;
        let said = said.join().ok().context("a reader of a fuzz target broke")??;
        if status.success() {
            let told = ["INFO: Seed", "stat::"];
            said.lines()
                .filter(|line| told.iter().any(|mark| line.contains(mark)))
                .for_each(&mut *tell);
        } else {
            let lines: Vec<&str> = said.lines().collect();
            let tail = &lines[lines.len().saturating_sub(FINDING_LINES)..];
            tail.iter().for_each(|line| tell(line));
        }
        tell(&format!(
            "fuzz {target} had {} of the processor in {}",
            process::length(used),
            process::length(since.elapsed())
        ));
        Ok(if status.success() { Ended::Clean } else { Ended::Broken })
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
        // What is new goes into the first folder.
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

/// How a run came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Clean,
    /// An input broke the target; it lies below `target/fuzz`.
    Broken,
}

/// Has the program end in good order once it has had `time`, and returns what it had.
///
/// # Errors
/// It does not come to have it, or does not end: it is killed.
fn end_after(child: &mut Child, time: Duration) -> Result<Duration> {
    let process = Pid::from_raw(i32::try_from(child.id()).context("a process id is too large")?);
    let mut used = Duration::ZERO;
    let mut asked = false;
    let ended = testbed::poll_until(time * STARVED_MAX + ENDING_MAX, LOOK_INTERVAL, || {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        used = processor_time(process).unwrap_or(used);
        if used >= time && !asked {
            // libFuzzer ends by it as if its own time were over.
            kill(process, Signal::SIGUSR1)?;
            asked = true;
        }
        bail!("it still runs, and has had {}", process::length(used))
    });
    if let Err(late) = ended {
        child.kill()?;
        return Err(late);
    }
    Ok(used)
}

/// Of the thread that does the work; none once the process has ended.
fn processor_time(process: Pid) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_ended_once_it_has_had_its_time_of_the_processor() {
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
