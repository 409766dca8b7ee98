//! The node as a machine: namespaces for its mounts and processes, and the programs in them.
//!
//! The first process holds the namespaces (`machine.sh`). When it ends, the kernel ends all others
//! and removes the mounts, like a power failure of a machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::network::{Start, enter};
use crate::{Error, Process, RecordedProcess, poll_until};

const MACHINE: &str = include_str!("machine.sh");
/// The file that the script writes when everything is mounted.
const UP_FILE: &str = "up";
const UP_TIMEOUT: Duration = Duration::from_secs(20);
const UP_INTERVAL: Duration = Duration::from_millis(5);

/// The configuration of a machine; the same at each start.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// For disk and logs.
    pub(super) folder: PathBuf,
    pub(super) network: PathBuf,
    /// The first program.
    pub(super) pause: PathBuf,
    /// The control group file that its processes join.
    pub(super) members: PathBuf,
    pub(super) start: Start,
}

/// A machine that is powered on.
#[derive(Debug)]
pub(super) struct Machine {
    parts: Parts,
    holder: Process,
    /// The first process, which is a child of the holder.
    first: Option<RecordedProcess>,
    programs: Vec<Process>,
}

impl Machine {
    pub(super) fn start(parts: &Parts) -> Result<Self, Error> {
        let up = parts.folder.join(UP_FILE);
        let _ = fs::remove_file(&up);
        let mut network = std::ffi::OsString::from("--net=");
        network.push(&parts.network);
        let mut command = Command::new("nsenter");
        command.arg(network).args(["--", "unshare", "--mount", "--pid", "--fork"]);
        command.args(["--kill-child=KILL", "--mount-proc", "--", "sh", "-c", MACHINE, "machine"]);
        command.arg(&parts.folder).arg(&parts.pause);
        let mut holder = (parts.start)("machine", &command, &parts.folder.join("machine.log"))?;
        poll_until(UP_TIMEOUT, UP_INTERVAL, || {
            if up.exists() { Ok(()) } else { Err(holder.log_tail()) }
        })
        .map_err(|said| Error::NodeNeeds {
            needed: format!(
                "root, and namespaces for mounts and processes; setting them up: {said}"
            ),
        })
        .inspect_err(|_| holder.end())?;
        let first = first_child(holder.id());
        Ok(Self { parts: parts.clone(), holder, first, programs: Vec::new() })
    }

    /// Starts a program of the node, which ends with it.
    pub(super) fn run(&mut self, name: &str, program: &Command) -> Result<(), Error> {
        let log = self.parts.folder.join(format!("{name}.log"));
        let command = self.command(program);
        self.programs.push((self.parts.start)(name, &command, &log)?);
        Ok(())
    }

    /// A command for `program` in all namespaces of the node, with its environment on this machine.
    pub(super) fn command(&self, program: &Command) -> Command {
        let holder = self.holder.id();
        let mut command = Command::new("nsenter");
        command
            .arg(enter("net", holder, "net"))
            .arg(enter("mount", holder, "mnt"))
            .arg(enter("pid", holder, "pid_for_children"))
            // The program is a child of nsenter, and must not outlive it.
            .args(["--", "setpriv", "--pdeathsig", "KILL", "--"])
            .args(["sh", "-c", "echo 0 > \"$0\" && exec \"$@\""])
            .arg(&self.parts.members)
            .arg(program.get_program())
            .args(program.get_args());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    /// Checks that the program `name` still runs; the error is how it ended.
    pub(super) fn check(&mut self, name: &str) -> Result<(), Error> {
        let Some(process) = self.programs.iter_mut().find(|one| one.name() == name) else {
            return Ok(());
        };
        match process.exit_status() {
            None => Ok(()),
            Some(status) => Err(Error::Exited {
                component: name.to_owned(),
                status: status.to_string(),
                log: process.log_tail(),
            }),
        }
    }

    /// The end of a program's log.
    pub(super) fn log_tail(&self, name: &str) -> String {
        let process = self.programs.iter().find(|one| one.name() == name);
        process.map(Process::log_tail).unwrap_or_default()
    }

    pub(super) fn records(&self) -> Vec<RecordedProcess> {
        let holder = self.holder.record();
        holder.into_iter().chain(self.first.clone()).collect()
    }

    /// Cuts the power: kills all processes.
    pub(super) fn end(&mut self) {
        self.holder.end();
        if let Some(first) = &self.first {
            // When it has ended, all others have too.
            let _ = first.end();
        }
        self.programs.iter_mut().for_each(Process::end);
    }
}

fn first_child(process: u32) -> Option<RecordedProcess> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(Path::new(&path)).ok()?;
    RecordedProcess::of(
        "first process of the node",
        children.split_whitespace().next()?.parse().ok()?,
    )
}
