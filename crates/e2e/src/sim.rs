//! `drover sim` as a process.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use testbed::Process;

use crate::link::Network;
use crate::{Client, Kubeconfig, Kubectl, poll_until, programs};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// A running simulator. Dropping the value kills it, and the kernel kills its children.
#[derive(Debug)]
pub struct Sim {
    process: Process,
    command: Command,
    folder: TempDir,
}

impl Sim {
    /// Starts a simulator and waits until all its clusters are ready. `flags`: such as `--nodes 3`.
    ///
    /// # Errors
    /// It ends or is not ready in time.
    pub fn start(flags: &[&str]) -> Result<Self> {
        Self::start_at(Command::new(programs::drover()?), Ipv4Addr::LOCALHOST, 0, flags)
    }

    /// Like [`Sim::start`], with the first cluster at this port, and the others at the next ones.
    ///
    /// # Errors
    /// Like [`Sim::start`].
    pub fn start_on(port: u16, flags: &[&str]) -> Result<Self> {
        Self::start_at(Command::new(programs::drover()?), Ipv4Addr::LOCALHOST, port, flags)
    }

    /// Like [`Sim::start`], in `network`: its agents run there too.
    ///
    /// # Errors
    /// Like [`Sim::start`].
    pub fn start_in(network: &Network, flags: &[&str]) -> Result<Self> {
        Self::start_at(network.command(&programs::drover()?), network.address(), 0, flags)
    }

    fn start_at(drover: Command, address: Ipv4Addr, port: u16, flags: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let listen = format!("{address}:{port}");
        let command = Self::command(drover, &listen, folder.path(), flags);
        let process = Self::run(&command, folder.path())?;
        let mut sim = Self { process, command, folder };
        sim.wait()?;
        Ok(sim)
    }

    /// Restarts a killed simulator with its data, on other ports.
    ///
    /// # Errors
    /// Like [`Sim::start`].
    pub fn restart(&mut self) -> Result<()> {
        // Written last: it marks that the kubeconfigs are current.
        std::fs::remove_file(self.data_dir().join("server.json")).context("no server.json")?;
        self.process = Self::run(&self.command, self.folder.path())?;
        self.wait()
    }

    fn run(command: &Command, folder: &Path) -> Result<Process> {
        Ok(Process::start("drover sim", command, &folder.join("sim.log"))?)
    }

    fn wait(&mut self) -> Result<()> {
        let ready = poll_until(READY_TIMEOUT, READY_INTERVAL, || {
            if let Some(status) = self.process.exit_status() {
                return Ok(Some(status));
            }
            self.look().map(|()| None)
        });
        let log = self.process.log_tail();
        match ready {
            Ok(None) => Ok(()),
            Ok(Some(status)) => bail!("the simulator ended ({status}):\n{log}"),
            Err(last) => bail!("the simulator is not ready: {last:#}\n{log}"),
        }
    }

    fn command(mut drover: Command, listen: &str, folder: &Path, flags: &[&str]) -> Command {
        drover
            .args(["sim", "--listen", listen, "--data-dir"])
            .arg(folder.join("data"))
            .args(flags)
            .env("HOME", folder);
        drover
    }

    fn look(&self) -> Result<()> {
        // Written once the last cluster has its kubeconfig.
        std::fs::metadata(self.data_dir().join("server.json")).context("no server.json")?;
        let kubeconfig = Kubeconfig::read(&self.kubeconfig())?;
        let response = Client::of(&kubeconfig)?.get("/readyz")?;
        if response.status != 200 {
            bail!("/readyz says {}: {}", response.status, response.text());
        }
        Ok(())
    }

    /// The kubeconfig of the administrator of the first cluster.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.data_dir().join("admin.kubeconfig")
    }

    /// Every kubeconfig in the data folder, in the order of their names.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn kubeconfigs(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let entries = std::fs::read_dir(self.data_dir()).context("data of the simulator")?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "kubeconfig") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// The data folder, which exists until the value is dropped.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// # Errors
    /// `kubectl` has not been built.
    pub fn kubectl(&self) -> Result<Kubectl> {
        Kubectl::new(&self.kubeconfig(), self.folder.path())
    }

    /// Process id of the simulator.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it, like a crash.
    pub fn kill(&mut self) {
        self.process.end();
    }

    /// The last lines of the simulator's output.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}
