//! `drover server` as a process with its own data folder, on a free port that does not change over
//! restarts.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::Process;
use testbed::evidence::{self, Witness};

use crate::{Client, Kubeconfig, Kubectl, objects, poll_until, programs};

/// Password of the user `admin` of every server here.
pub const ADMIN_PASSWORD: &str = "only-for-system-tests";
/// Longest wait for a start: a debug build on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Poll interval; short, because starts are measured with it.
const READY_INTERVAL: Duration = Duration::from_millis(2);
const SERVER_FILE: &str = "server.json";
const DATA_FOLDER: &str = "data";
const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

/// How to start a [`Server`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address to listen on; loopback by default.
    pub address: Option<IpAddr>,
    /// Additional flags.
    pub flags: Vec<String>,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
    /// The authority that verifies the server, PEM, when the server does not write it itself.
    pub authority: Option<String>,
}

/// A running server. Dropping it kills the process and removes the data.
#[derive(Debug)]
pub struct Server {
    process: Option<Process>,
    folder: TempDir,
    options: Options,
    url: String,
    ca_pem: String,
    ready_after: Duration,
    starts: u32,
    /// Writes its objects when a test fails.
    _witness: Witness,
}

impl Server {
    /// Starts a server with new data and waits until it is ready.
    ///
    /// # Errors
    /// It ends or is not ready in time; the message has the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with(Options::default())
    }

    /// Like [`Server::start`].
    ///
    /// # Errors
    /// Like [`Server::start`].
    pub fn start_with(options: Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join(DATA_FOLDER).join(ADMIN_KUBECONFIG);
        let mut server = Self {
            process: None,
            folder,
            options,
            url: String::new(),
            ca_pem: String::new(),
            ready_after: Duration::ZERO,
            starts: 0,
            _witness: evidence::witness(move |folder| objects::write(&kubeconfig, folder)),
        };
        server.launch()?;
        Ok(server)
    }

    /// The command of a server with its data in `data`.
    ///
    /// # Errors
    /// The binary is missing.
    pub fn command(data: &Path, listen: &str) -> Result<Command> {
        let mut command = Command::new(programs::drover()?);
        command
            .args(["server", "--listen", listen, "--data-dir"])
            .arg(data)
            .env("DROVER_BOOTSTRAP_PASSWORD", ADMIN_PASSWORD)
            .env("HOME", data.parent().unwrap_or(data));
        Ok(command)
    }

    fn launch(&mut self) -> Result<()> {
        let address = self.options.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let port = self.url.rsplit_once(':').map_or("0", |(_, port)| port);
        let listen = format!("{address}:{port}");
        let mut command = Self::command(&self.data_dir(), &listen)?;
        command.args(&self.options.flags);
        command.envs(self.options.environment.iter().map(|(name, value)| (name, value)));
        self.starts += 1;
        let log = self.folder.path().join(format!("server-{}.log", self.starts));
        let since = Instant::now();
        let mut process = Process::start("drover server", &command, &log)?;
        let ready = poll_until(READY_TIMEOUT, READY_INTERVAL, || {
            if let Some(status) = process.exit_status() {
                return Ok(Err(status));
            }
            self.look().map(Ok)
        });
        match ready {
            Ok(Ok(())) => self.ready_after = since.elapsed(),
            Ok(Err(status)) => bail!("the server ended ({status}):\n{}", process.log_tail()),
            Err(last) => bail!("the server is not ready: {last:#}\n{}", process.log_tail()),
        }
        self.process = Some(process);
        Ok(())
    }

    /// Waits until it reports that it is ready, at the URL that it wrote.
    fn look(&mut self) -> Result<()> {
        if self.url.is_empty() || self.ca_pem.is_empty() {
            let text =
                std::fs::read(self.data_dir().join(SERVER_FILE)).context("no server.json")?;
            let file: Value = serde_json::from_slice(&text).context("server.json")?;
            let ca_pem = match &self.options.authority {
                Some(pem) => pem.clone(),
                None => std::fs::read_to_string(self.ca_file())?,
            };
            let url = file["url"].as_str().context("server.json names no URL")?;
            self.ca_pem = ca_pem;
            url.clone_into(&mut self.url);
        }
        let response = self.anyone()?.get("/readyz")?;
        if response.status != 200 {
            bail!("/readyz says {}: {}", response.status, response.text());
        }
        Ok(())
    }

    /// Kills it, like a crash or power cut.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.end();
        }
    }

    /// Restarts it with the same data, flags and port; returns the time until it is ready.
    ///
    /// # Errors
    /// Like [`Server::start`].
    pub fn restart(&mut self) -> Result<Duration> {
        self.kill();
        self.launch()?;
        Ok(self.ready_after)
    }

    /// Like [`Server::restart`], with other flags and environment.
    ///
    /// # Errors
    /// Like [`Server::start`].
    pub fn restart_with(&mut self, options: Options) -> Result<Duration> {
        self.kill();
        self.options = options;
        // Its authority may have changed: the file is written again.
        self.ca_pem.clear();
        std::fs::remove_file(self.ca_file()).context("no ca.pem")?;
        self.launch()?;
        Ok(self.ready_after)
    }

    /// Duration of the last start, from the process to the first 200 of `/readyz`.
    #[must_use]
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// `https://HOST:PORT`, as `server.json` says.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The authority that clients of the server trust, as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The file that the server writes its authority to.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.data_dir().join("ca.pem")
    }

    /// The data folder, which exists until the value is dropped.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join(DATA_FOLDER)
    }

    /// A folder for files of the test, which is removed with the server.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Id of the process.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.exit_status().is_none())
    }

    /// The end of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.process.as_ref().map(Process::log_tail).unwrap_or_default()
    }

    /// Its whole log since the last start.
    #[must_use]
    pub fn log(&self) -> String {
        let process = self.process.as_ref();
        let text = process.and_then(|process| std::fs::read(process.log()).ok());
        String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
    }

    /// A client without credentials.
    ///
    /// # Errors
    /// The server's URL or authority cannot be read.
    pub fn anyone(&self) -> Result<Client> {
        Client::new(&self.url, &self.ca_pem)
    }

    /// A client with the token of `admin.kubeconfig`.
    ///
    /// # Errors
    /// That file cannot be read.
    pub fn admin(&self) -> Result<Client> {
        Client::of(&Kubeconfig::read(&self.admin_kubeconfig())?)
    }

    /// The file the server writes for its administrator.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data_dir().join(ADMIN_KUBECONFIG)
    }

    /// `kubectl` on the management API, as administrator.
    ///
    /// # Errors
    /// `kubectl` has not been built.
    pub fn kubectl(&self) -> Result<Kubectl> {
        Kubectl::new(&self.admin_kubeconfig(), self.folder.path())
    }

    /// Logs in with a password; returns the token.
    ///
    /// # Errors
    /// The server refuses.
    pub fn login(&self, user: &str, password: &str) -> Result<String> {
        let path = "/v3-public/localProviders/local?action=login";
        let body = json!({"username": user, "password": password});
        let response = self.anyone()?.post(path, &body)?.success()?;
        let token = response["token"].as_str();
        token.map(str::to_owned).with_context(|| format!("no token in the response: {response}"))
    }
}
