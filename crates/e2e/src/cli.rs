//! The commands of `drover` of one user: with a home folder of their own.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{Binaries, Process};

use crate::server::ADMIN_PASSWORD;
use crate::{Kubectl, ProgramOutput, Server, programs};

/// One user's command line.
#[derive(Debug)]
pub struct Cli {
    home: TempDir,
}

impl Cli {
    /// A user without any login.
    ///
    /// # Errors
    /// No folder can be created.
    pub fn new() -> Result<Self> {
        Ok(Self { home: tempfile::tempdir()? })
    }

    /// The user `admin` of `server`, logged in.
    ///
    /// # Errors
    /// The login fails.
    pub fn admin(server: &Server) -> Result<Self> {
        Self::of(server, "admin", ADMIN_PASSWORD)
    }

    /// A user of `server`, logged in.
    ///
    /// # Errors
    /// The login fails.
    pub fn of(server: &Server, user: &str, password: &str) -> Result<Self> {
        let cli = Self::new()?;
        let ca = server.ca_file();
        let mut login = cli.command(&["login", server.url(), "--username", user, "--ca-file"])?;
        login.arg(ca).env("DROVER_PASSWORD", password);
        let output = login.output().context("cannot start drover")?;
        ProgramOutput::of("drover login".to_owned(), output).succeeded()?;
        Ok(cli)
    }

    /// The command, not yet run. It inherits only the variables that it needs.
    ///
    /// # Errors
    /// The binary is missing.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.program(programs::drover()?, None)?;
        command.args(arguments);
        Ok(command)
    }

    /// Another program with the same home, which finds `drover` in its path.
    ///
    /// # Errors
    /// The binary is missing.
    pub fn beside(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        self.program(program, programs::drover()?.parent())
    }

    /// A command with the real programs, and `folder`, in its path.
    fn program(&self, program: impl AsRef<OsStr>, folder: Option<&Path>) -> Result<Command> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let real = Binaries::locate().folder().to_owned();
        let first = folder.map(Path::to_owned).into_iter().chain([real]);
        let path = std::env::join_paths(first.chain(std::env::split_paths(&others)))?;
        let mut command = Command::new(program);
        command.env("HOME", self.home()).env("PATH", path).stdin(Stdio::null());
        Ok(command)
    }

    /// # Errors
    /// It cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        let output = self.command(arguments)?.output().context("cannot start drover")?;
        Ok(ProgramOutput::of(format!("drover {}", arguments.join(" ")), output))
    }

    /// Runs a command that must succeed; returns its stdout.
    ///
    /// # Errors
    /// It fails.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.succeeded()
    }

    /// Runs a command that must fail; returns its stderr.
    ///
    /// # Errors
    /// It succeeds.
    pub fn refuse(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.expect_failure()
    }

    /// Runs a command with `-o json`; returns its output.
    ///
    /// # Errors
    /// It fails, or its output is not JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        self.run(&all)?.json()
    }

    /// Starts a command in the background; it is killed with the value.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, arguments: &[&str], log: &Path) -> Result<Process> {
        Ok(Process::start("drover", &self.command(arguments)?, log)?)
    }

    /// The home folder of the user, with `.drover`.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// `kubectl` in a cluster by the kubeconfig that `drover cluster kubeconfig` prints.
    ///
    /// # Errors
    /// The command prints no kubeconfig.
    pub fn kubectl(&self, cluster: &str) -> Result<Kubectl> {
        Kubectl::new(&self.kubeconfig_file(cluster)?, self.home())
    }

    /// A file with the kubeconfig that `drover cluster kubeconfig` prints.
    ///
    /// # Errors
    /// The command prints no kubeconfig.
    pub fn kubeconfig_file(&self, cluster: &str) -> Result<PathBuf> {
        let text = self.succeed(&["cluster", "kubeconfig", cluster])?;
        let path = self.home().join(format!("{cluster}.kubeconfig"));
        // Written atomically: a program that was started with it may read it at the same time.
        let mut file = tempfile::NamedTempFile::new_in(self.home())?;
        file.write_all(text.as_bytes())?;
        file.persist(&path)?;
        Ok(path)
    }
}
