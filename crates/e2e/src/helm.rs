//! Runs `helm` with one kubeconfig and captures its output.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{Binaries, Program};

use crate::Sim;
use crate::kubectl::ProgramOutput;

/// `helm` as the administrator of a simulated cluster, in one namespace.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    /// The folder of its settings and caches.
    home: TempDir,
}

impl Helm {
    /// # Errors
    /// `helm` has not been built.
    pub fn new(sim: &Sim, namespace: &str) -> Result<Self> {
        Ok(Self {
            program: Binaries::locate().path(Program::Helm)?,
            kubeconfig: sim.kubeconfig(),
            namespace: namespace.to_owned(),
            home: tempfile::tempdir()?,
        })
    }

    /// Runs it to completion.
    ///
    /// # Errors
    /// It cannot be started. A failure that it reports itself is an [`ProgramOutput`].
    pub fn run(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        let mut command = Command::new(&self.program);
        command
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .stdin(Stdio::null());
        let output = command.output().context("cannot start helm")?;
        Ok(ProgramOutput::of(format!("helm {}", arguments.join(" ")), output))
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
}
