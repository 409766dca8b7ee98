//! A test program as a child process. Its output is logged and parsed, its processor time measured,
//! and it is killed at a deadline.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wait4::Wait4;

use crate::process;

/// How a child ended.
pub struct ChildExit {
    pub status: ExitStatus,
    /// Processor time of it and of the children that it waited for.
    pub processor: Duration,
    /// How long it ran, if it was killed at its deadline.
    pub killed_after: Option<Duration>,
}

/// Runs `command` with its output in the file `log`; `read` gets each line of standard output. It
/// is killed at `deadline`, and the processes that it started end with it (`testbed::Process`).
pub fn run(
    command: &mut Command,
    log: &Path,
    deadline: Instant,
    read: &mut dyn FnMut(&str),
) -> Result<ChildExit> {
    let failed = || format!("cannot create '{}'", log.display());
    let mut log = File::create(log).with_context(failed)?;
    let since = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot run `{}`", process::command_line(command)))?;
    let output = child.stdout.take().context("a test program has no standard output")?;
    let deadline = Deadline::of(child.id(), deadline.saturating_duration_since(since))?;
    for line in BufReader::new(output).split(b'\n') {
        let mut line = line.context("cannot read the output of a test program")?;
        read(&String::from_utf8_lossy(&line));
        line.push(b'\n');
        log.write_all(&line)?;
    }
    let ended = child.wait4().context("cannot wait for a test program")?;
    let killed = deadline.end();
    Ok(ChildExit {
        status: ended.status,
        processor: ended.rusage.utime + ended.rusage.stime,
        killed_after: killed.then(|| since.elapsed()),
    })
}

/// Kills a process at a deadline, unless it ends before.
struct Deadline {
    done: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Deadline {
    fn of(process: u32, limit: Duration) -> Result<Self> {
        let process = Pid::from_raw(i32::try_from(process).context("a process id is too large")?);
        let (done, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // It may have ended just now; then the error is ignored.
                let _ = kill(process, Signal::SIGKILL);
            }
            late
        });
        Ok(Self { done, thread })
    }

    /// Whether it was killed.
    fn end(self) -> bool {
        let _ = self.done.send(());
        self.thread.join().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(line: &str, limit: Duration) -> (ChildExit, Vec<String>) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut lines = Vec::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        let mut read = |line: &str| lines.push(line.to_owned());
        let ended = run(&mut shell, log.path(), Instant::now() + limit, &mut read).unwrap();
        let logged = std::fs::read_to_string(log.path()).unwrap();
        assert!(lines.iter().all(|line| logged.contains(line)), "{logged}");
        (ended, lines)
    }

    #[test]
    fn a_program_beyond_its_deadline_is_killed() {
        let (ended, _) = run_shell("exec tail -f /dev/null", Duration::from_millis(20));
        assert!(ended.killed_after.is_some());
        assert!(!ended.status.success());
    }

    #[test]
    fn output_and_processor_time_of_a_program_are_recorded() {
        let line = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; echo one; echo two";
        let (ended, lines) = run_shell(line, Duration::from_secs(60));
        assert!(ended.killed_after.is_none() && ended.status.success());
        assert_eq!(lines, ["one", "two"]);
        assert!(ended.processor > Duration::ZERO);
    }
}
