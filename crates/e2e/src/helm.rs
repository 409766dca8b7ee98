//! Runs `helm` with one kubeconfig and keeps what it said.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{Binaries, Program};

use crate::Sim;
use crate::kubectl::Outcome;

/// `helm` as the administrator of a simulated cluster, in one namespace.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    /// Its settings and caches.
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

    /// Runs it to its end.
    ///
    /// # Errors
    /// It cannot be started. A failure that it reports itself is an [`Outcome`].
    pub fn run(&self, arguments: &[&str]) -> Result<Outcome> {
        let mut command = Command::new(&self.program);
        command
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .stdin(Stdio::null());
        let output = command.output().context("cannot start helm")?;
        Ok(Outcome::of(format!("helm {}", arguments.join(" ")), output))
    }

    /// What it prints.
    ///
    /// # Errors
    /// It fails.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.succeeded()
    }

    /// What it complains about.
    ///
    /// # Errors
    /// It does not fail.
    pub fn refuse(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.refused()
    }

    /// What it prints, with `-o json` added.
    ///
    /// # Errors
    /// It fails, or prints no JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        self.run(&all)?.json()
    }
}
