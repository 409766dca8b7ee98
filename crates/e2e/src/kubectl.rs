//! Runs `kubectl` with one kubeconfig and captures its output.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use testbed::{Binaries, Process, Program, evidence};

/// `kubectl` as one user of one cluster.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// Folder for caches, and for temporary files of the test.
    home: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Exit code and output of a program.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// The command, for messages.
    pub command: String,
    pub success: bool,
    /// The exit code; -1 when a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl ProgramOutput {
    pub(crate) fn of(command: String, output: Output) -> Self {
        let outcome = Self {
            command,
            success: output.status.success(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let result = format!("{}: {}{}", outcome.code, outcome.stderr, outcome.stdout);
        evidence::record_call(&outcome.command, &result);
        outcome
    }

    /// The output of a successful program.
    ///
    /// # Errors
    /// It failed; the message has its whole output.
    pub fn succeeded(self) -> Result<String> {
        if self.success {
            return Ok(self.stdout);
        }
        bail!("`{}` ended with {}: {}{}", self.command, self.code, self.stderr, self.stdout)
    }

    /// The output of a successful program, as JSON.
    ///
    /// # Errors
    /// It failed, or its output is not JSON.
    pub fn json(self) -> Result<Value> {
        let command = self.command.clone();
        let text = self.succeeded()?;
        serde_json::from_str(&text).with_context(|| format!("`{command}` printed no JSON: {text}"))
    }

    /// The errors of a failed program.
    ///
    /// # Errors
    /// It succeeded.
    pub fn expect_failure(self) -> Result<String> {
        if self.success {
            bail!("`{}` should have failed and printed: {}", self.command, self.stdout);
        }
        Ok(self.stderr)
    }
}

impl Kubectl {
    /// `home` is a folder for its caches.
    ///
    /// # Errors
    /// `kubectl` has not been built.
    pub fn new(kubeconfig: &Path, home: &Path) -> Result<Self> {
        Ok(Self {
            program: Binaries::locate().path(Program::Kubectl)?,
            kubeconfig: kubeconfig.to_owned(),
            home: home.to_owned(),
            environment: Vec::new(),
        })
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The command, not yet run.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs it to completion.
    ///
    /// # Errors
    /// It cannot be started. A failure that it reports itself is an [`ProgramOutput`].
    pub fn run(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        let output = self.command(arguments).output().context("cannot start kubectl")?;
        Ok(ProgramOutput::of(format!("kubectl {}", arguments.join(" ")), output))
    }

    /// Runs a command that must succeed; returns its output.
    ///
    /// # Errors
    /// It fails.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.succeeded()
    }

    /// Runs a command that must fail; returns its errors.
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

    /// Applies objects.
    ///
    /// # Errors
    /// It fails.
    pub fn apply(&self, objects: &[Value]) -> Result<String> {
        self.with_file(objects, &["apply", "-f"])
    }

    /// Runs `arguments` with the name of a file with `objects` at the end.
    ///
    /// # Errors
    /// It fails.
    pub fn with_file(&self, objects: &[Value], arguments: &[&str]) -> Result<String> {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        let file = tempfile::Builder::new().suffix(".yaml").tempfile_in(&self.home)?;
        std::fs::write(file.path(), documents.join("\n---\n"))?;
        let name = file.path().to_str().context("the temporary folder's name is no text")?;
        let mut all = arguments.to_vec();
        all.push(name);
        self.succeed(&all)
    }

    /// Starts it in the background, with its output in a file; it is killed with the value.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, arguments: &[&str], log: &Path) -> Result<Process> {
        Ok(Process::start("kubectl", &self.command(arguments), log)?)
    }
}
