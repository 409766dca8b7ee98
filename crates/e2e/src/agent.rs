//! The cluster agent as a process, started with exactly the settings of the import manifest, like a
//! kubelet would start it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;
use testbed::Process;

use crate::manifest::{AGENT_NAMESPACE, Container};
use crate::{Kubeconfig, Kubectl, programs};

/// Variable with the folder of the pod's ServiceAccount files, for an agent outside of a pod.
const SERVICE_ACCOUNT_ENV: &str = "DROVER_SERVICEACCOUNT_DIR";
/// Variable with the folder of the mounted credentials, for an agent outside of a pod.
const CREDENTIALS_ENV: &str = "DROVER_CREDENTIALS_DIR";
/// The path that kubelets set by default.
const TOKEN_DURATION: &str = "1h";

/// The API server of the agent's cluster.
#[derive(Clone, Debug)]
pub struct Downstream {
    pub host: String,
    pub port: String,
    pub ca_pem: String,
}

impl Downstream {
    /// The API server of a kubeconfig.
    ///
    /// # Errors
    /// Its URL has no port.
    pub fn of(kubeconfig: &Kubeconfig) -> Result<Self> {
        let authority = kubeconfig.server.trim_start_matches("https://");
        let (host, port) = authority.rsplit_once(':').context("the API server has no port")?;
        Ok(Self {
            host: host.to_owned(),
            port: port.trim_end_matches('/').to_owned(),
            ca_pem: kubeconfig.ca_pem.clone(),
        })
    }
}

/// A running agent. Dropping it kills the process.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    folder: TempDir,
}

impl Agent {
    /// Starts the container of a manifest, whose objects have been applied: the token of its
    /// ServiceAccount is requested through `kubectl`.
    ///
    /// # Errors
    /// The binary is missing, or the cluster issues no token.
    pub fn start(container: &Container, cluster: &Downstream, kubectl: &Kubectl) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let command = Self::command(container, cluster, kubectl, folder.path())?;
        let log = folder.path().join("agent.log");
        let process = Process::start("drover-agent", &command, &log)?;
        Ok(Self { process, folder })
    }

    fn command(
        container: &Container,
        cluster: &Downstream,
        kubectl: &Kubectl,
        folder: &Path,
    ) -> Result<Command> {
        let account = folder.join("serviceaccount");
        fs::create_dir(&account)?;
        let duration = format!("--duration={TOKEN_DURATION}");
        let name = container.service_account.as_str();
        let token =
            kubectl.succeed(&["create", "token", "-n", AGENT_NAMESPACE, name, &duration])?;
        fs::write(account.join("token"), token.trim())?;
        fs::write(account.join("ca.crt"), &cluster.ca_pem)?;
        fs::write(account.join("namespace"), AGENT_NAMESPACE)?;

        let mut command = Command::new(programs::agent()?);
        command
            .args(container.command.iter().skip(1))
            .args(&container.arguments)
            .env_clear()
            .envs(&container.environment)
            .env("HOME", folder)
            .env("KUBERNETES_SERVICE_HOST", &cluster.host)
            .env("KUBERNETES_SERVICE_PORT", &cluster.port)
            .env(SERVICE_ACCOUNT_ENV, account);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        for (index, files) in container.secrets.values().enumerate() {
            let mounted = folder.join(format!("secret-{index}"));
            fs::create_dir(&mounted)?;
            for (name, bytes) in files {
                fs::write(mounted.join(name), bytes)?;
            }
            command.env(CREDENTIALS_ENV, mounted);
        }
        Ok(command)
    }

    /// Kills it, like a crash.
    pub fn kill(&mut self) {
        self.process.end();
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.exit_status().is_none()
    }

    /// Process id of the agent.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The agent's output so far; empty if it cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The file with the agent's output.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("agent.log")
    }
}
