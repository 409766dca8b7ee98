//! Child processes that never outlive the test: ended on drop, and by the kernel when the test
//! process is killed.
//!
//! The kernel sends the parent-death signal when the *thread* that started the child ends, so all
//! children are started from one thread that lives as long as the process. The signal itself is
//! set by `setpriv`, because setting it between fork and exec needs unsafe code.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};

use crate::{Error, RecordedProcess, evidence};

/// The size of the end of a log that an error shows.
const LOG_TAIL_BYTES: u64 = 16 * 1024;
const LOG_TAIL_LINES: usize = 20;

/// A running child whose output goes to a log file.
///
/// Dropping it ends the child with SIGKILL and reaps it, unless it was started detached.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    detached: bool,
}

impl Process {
    /// Starts `command` so that it ends with this value and with this process, also when this
    /// process is killed. Standard output and error go to the file `log`.
    ///
    /// Arguments, environment and working folder are taken from `command`; its standard streams
    /// are replaced. The child starts without standard input.
    ///
    /// # Errors
    /// [`Error::File`] for the log, [`Error::Spawn`] when the kernel refuses.
    pub fn start(name: &str, command: &Command, log: &Path) -> Result<Self, Error> {
        let mut leashed = Command::new("setpriv");
        leashed.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
        copy(command, &mut leashed);
        Self::launch(name, leashed, log, false)
    }

    /// Starts `command` in a process group of its own, so that it continues after this process
    /// ends.
    ///
    /// # Errors
    /// Like [`Process::start`].
    pub fn start_detached(name: &str, command: &Command, log: &Path) -> Result<Self, Error> {
        let mut own = Command::new(command.get_program());
        copy(command, &mut own);
        own.process_group(0);
        Self::launch(name, own, log, true)
    }

    fn launch(name: &str, mut command: Command, log: &Path, detached: bool) -> Result<Self, Error> {
        let output = File::create(log).map_err(Error::file("create", log))?;
        let errors = output.try_clone().map_err(Error::file("share", log))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = on_lasting_thread(move || command.spawn())
            .map_err(|source| Error::Spawn { program: name.to_owned(), source })?;
        evidence::collect_log(name, log);
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), detached })
    }

    /// The name given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with the child's output.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of the child's output, for error messages.
    #[must_use]
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|cause| format!("(unreadable log: {cause})"))
    }

    /// How the child ended, if it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGKILL without waiting.
    pub fn kill(&mut self) {
        // A child that has already ended is fine.
        let _ = self.child.kill();
    }

    /// Sends SIGKILL and reaps the child.
    pub fn end(&mut self) {
        self.kill();
        // Fails only when the child was reaped before.
        let _ = self.child.wait();
    }

    /// The record by which another process can end this one later, and no process that reuses its
    /// id.
    #[must_use]
    pub fn record(&self) -> Option<RecordedProcess> {
        RecordedProcess::of(&self.name, i32::try_from(self.child.id()).ok()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.detached {
            self.end();
        }
    }
}

fn copy(from: &Command, to: &mut Command) {
    to.args(from.get_args());
    for (key, value) in from.get_envs() {
        match value {
            Some(value) => to.env(key, value),
            None => to.env_remove(key),
        };
    }
    if let Some(folder) = from.get_current_dir() {
        to.current_dir(folder);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Runs `work` on the one thread that ends only with the process, and waits for the result.
fn on_lasting_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    static THREAD: OnceLock<Sender<Job>> = OnceLock::new();
    let jobs = THREAD.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("testbed-spawn".to_owned())
            .spawn(move || receiver.into_iter().for_each(|job| job()))
            .expect("a process that cannot start a thread cannot run tests");
        sender
    });
    let (answer, outcome) = mpsc::sync_channel(1);
    let job: Job = Box::new(move || {
        let _ = answer.send(work());
    });
    jobs.send(job).expect("the thread receives as long as its sender, a static, exists");
    outcome
        .recv()
        .expect("the job sends its result before it ends; starting a process does not panic")
}

fn tail(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n"))
}

/// `--flag=value`, also for values that are not UTF-8.
pub(crate) fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(value);
    argument
}
