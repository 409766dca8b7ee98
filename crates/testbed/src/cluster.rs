//! One control plane: its folder, ports, certificates and processes.
//!
//! Start order: etcd, then kube-apiserver, then controller manager and scheduler. A cluster is
//! ready when all four report it and the ServiceAccount `default` exists, before which no pod is
//! admitted. The flags of each component are in `components`, its files in `files`.

mod components;
mod files;
mod location;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::certificates::Issued;
use crate::probe::Probe;
use crate::{Binaries, Error, Process, Program, RecordedProcess, kubeconfig, poll_until};
pub(crate) use components::SERVICE_RANGE;
use files::Files;
pub(crate) use location::NetworkLocation;

/// A control plane is ready in some seconds; a busy machine may need ten times that.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
const READY_INTERVAL: Duration = Duration::from_millis(50);
/// Attempts to start: another process may take a port between its choice and the listener.
const PORT_ATTEMPTS_MAX: u32 = 4;
/// The message of every component when its port is already in use.
const PORT_TAKEN: &str = "address already in use";

/// The processes of a detached cluster, as JSON.
const RECORDS_FILE: &str = "processes.json";

/// How to start a [`RealCluster`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The folders with the programs.
    pub binaries: Binaries,
    /// An empty or missing folder for data, logs and certificates, which the caller removes.
    /// Without one, a temporary folder is created and removed with the cluster.
    pub folder: Option<PathBuf>,
    /// Leave the processes running when the value is dropped and when this process ends. The caller
    /// reads [`RealCluster::records_path`] to end them, and names a `folder`.
    pub detached: bool,
    /// Let etcd sync to the disk, like in production. Tests that neither compare throughput nor
    /// survive a power cut are faster without it.
    pub durable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { binaries: Binaries::locate(), folder: None, detached: false, durable: false }
    }
}

/// A running Kubernetes control plane without nodes; with one it is a [`crate::RealNode`].
///
/// Any number of them run side by side. Dropping the value ends every process it started (also
/// while a panic unwinds) and removes the folder; when the process is killed, the kernel ends them.
/// All calls block: in an async test call [`RealCluster::start`] through `spawn_blocking`.
#[derive(Debug)]
pub struct RealCluster {
    // Dropped in this order: the processes end before their files are removed.
    components: Vec<Component>,
    files: Files,
    ports: Ports,
    location: NetworkLocation,
    server_url: String,
    kubeconfig: String,
    binaries: Binaries,
    detached: bool,
    minted: AtomicU32,
}

/// Ports of one cluster.
#[derive(Clone, Copy, Debug)]
struct Ports {
    etcd_client: u16,
    etcd_peer: u16,
    api_server: u16,
    controller_manager: u16,
    scheduler: u16,
}

#[derive(Debug)]
struct Component {
    program: Program,
    command: Command,
    process: Process,
}

impl RealCluster {
    /// Starts a control plane in a temporary folder and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] names the command that builds the programs. [`Error::Exited`] and
    /// [`Error::NotReady`] carry the last lines of the component's log.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&Options::default())
    }

    /// Starts a control plane as `options` say and waits until it is ready.
    ///
    /// # Errors
    /// Like [`RealCluster::start`].
    pub fn start_with(options: &Options) -> Result<Self, Error> {
        Self::start_at(&NetworkLocation::loopback(), options)
    }

    /// Starts a control plane at `location`.
    pub(crate) fn start_at(location: &NetworkLocation, options: &Options) -> Result<Self, Error> {
        let mut attempt = 1;
        loop {
            match Self::attempt(location, options) {
                Err(Error::Exited { log, .. })
                    if log.contains(PORT_TAKEN) && attempt < PORT_ATTEMPTS_MAX =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn attempt(location: &NetworkLocation, options: &Options) -> Result<Self, Error> {
        let ports = Ports::free()?;
        let server_url = format!("https://{}:{}", location.address, ports.api_server);
        let files = Files::create(options.folder.as_deref(), location.address, &server_url)?;
        let probe = Probe::new(location.address, files.ca_pem(), files.admin())?;
        let kubeconfig = kubeconfig::render(&server_url, files.ca_pem(), "admin", files.admin());
        let mut cluster = Self {
            components: Vec::new(),
            files,
            ports,
            location: location.clone(),
            server_url,
            kubeconfig,
            binaries: options.binaries.clone(),
            detached: options.detached,
            minted: AtomicU32::new(0),
        };
        // A detached component outlives a failed start too, unless it is ended here.
        cluster.bring_up(options, &probe).inspect_err(|_| cluster.kill())?;
        Ok(cluster)
    }

    fn bring_up(&mut self, options: &Options, probe: &Probe) -> Result<(), Error> {
        let (ports, location) = (self.ports, self.location.clone());
        let etcd = components::etcd(&self.files, ports, &location, options.durable);
        self.launch(Program::Etcd, etcd)?;
        self.await_ready(Program::Etcd, probe)?;
        let api_server = components::api_server(&self.files, ports, &location);
        self.launch(Program::KubeApiserver, api_server)?;
        self.await_ready(Program::KubeApiserver, probe)?;
        let manager = components::controller_manager(&self.files, ports, &location);
        self.launch(Program::KubeControllerManager, manager)?;
        let scheduler = components::scheduler(&self.files, ports, &location);
        self.launch(Program::KubeScheduler, scheduler)?;
        self.await_ready(Program::KubeControllerManager, probe)?;
        self.await_ready(Program::KubeScheduler, probe)
    }

    fn launch(&mut self, program: Program, flags: Vec<std::ffi::OsString>) -> Result<(), Error> {
        let mut command = self.location.command(&self.binaries.path(program)?);
        command.args(flags).current_dir(self.files.folder());
        let process = self.spawn(program, &command)?;
        self.components.push(Component { program, command, process });
        self.write_records()
    }

    /// Writes the records at once after each start, so that the processes can be found when this
    /// one is killed before the end.
    fn write_records(&self) -> Result<(), Error> {
        if self.detached {
            let records = serde_json::json!(self.records()).to_string();
            self.files.write_secret(RECORDS_FILE, &records)?;
        }
        Ok(())
    }

    fn spawn(&self, program: Program, command: &Command) -> Result<Process, Error> {
        let start = if self.detached { Process::start_detached } else { Process::start };
        start(program.name(), command, &self.files.log(program))
    }

    fn await_ready(&mut self, program: Program, probe: &Probe) -> Result<(), Error> {
        let ports = self.ports;
        let Some(component) = self.components.iter_mut().find(|one| one.program == program) else {
            return Ok(());
        };
        let process = &mut component.process;
        let outcome = poll_until(READY_TIMEOUT, READY_INTERVAL, || {
            // The start has failed as soon as the component has ended.
            if let Some(status) = process.exit_status() {
                return Ok(Some(status));
            }
            ready(program, ports, probe).map(|()| None)
        });
        match outcome {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Error::Exited {
                component: program.name().to_owned(),
                status: status.to_string(),
                log: process.log_tail(),
            }),
            Err(last) => Err(Error::NotReady {
                component: program.name().to_owned(),
                waited: READY_TIMEOUT,
                last,
                log: process.log_tail(),
            }),
        }
    }

    /// `https://ADDRESS:PORT` of the API server.
    #[must_use]
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// A self-contained kubeconfig of a member of `system:masters`.
    #[must_use]
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The file with [`RealCluster::kubeconfig`]; it is removed with the cluster.
    #[must_use]
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.files.admin_kubeconfig()
    }

    /// The certificate authority of the API server.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.files.ca_pem()
    }

    /// A self-contained kubeconfig for `user` in `groups`, by a client certificate. The user has
    /// the rights that RBAC grants, initially none.
    ///
    /// # Errors
    /// [`Error::Certificate`].
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<String, Error> {
        let client: Issued = self.files.authority().client(user, groups)?;
        Ok(kubeconfig::render(&self.server_url, self.files.ca_pem(), user, &client))
    }

    /// Like [`RealCluster::kubeconfig_for`], in a file that is removed with the cluster.
    ///
    /// # Errors
    /// [`Error::Certificate`], [`Error::File`].
    pub fn kubeconfig_file_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        let text = self.kubeconfig_for(user, groups)?;
        let number = self.minted.fetch_add(1, Ordering::Relaxed);
        self.files.write_secret(&format!("minted-{number}.kubeconfig"), &text)
    }

    /// `kubectl` as the administrator, with caches and settings of this cluster only.
    ///
    /// # Errors
    /// [`Error::MissingProgram`].
    pub fn kubectl(&self) -> Result<Command, Error> {
        self.kubectl_with(&self.kubeconfig_path())
    }

    /// `kubectl` with another kubeconfig, such as one of [`RealCluster::kubeconfig_file_for`].
    ///
    /// # Errors
    /// [`Error::MissingProgram`].
    pub fn kubectl_with(&self, kubeconfig: &Path) -> Result<Command, Error> {
        let mut command = Command::new(self.binaries.path(Program::Kubectl)?);
        command.env("KUBECONFIG", kubeconfig).env("HOME", self.files.folder());
        Ok(command)
    }

    /// The folders with the programs.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The folder with data, certificates and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// `http://ADDRESS:PORT` of etcd, for reading behind the API server's back.
    #[must_use]
    pub fn etcd_url(&self) -> String {
        format!("http://{}:{}", self.location.address, self.ports.etcd_client)
    }

    /// The log file of `program`.
    #[must_use]
    pub fn log(&self, program: Program) -> PathBuf {
        self.files.log(program)
    }

    /// Process id of `program` while it runs, for measuring it.
    #[must_use]
    pub fn process_id(&self, program: Program) -> Option<u32> {
        self.components.iter().find(|one| one.program == program).map(|one| one.process.id())
    }

    /// The records to end this cluster's processes later, from another process.
    #[must_use]
    pub fn records(&self) -> Vec<RecordedProcess> {
        self.components.iter().filter_map(|one| one.process.record()).collect()
    }

    /// The file with the records of a detached cluster in `folder`, written from its first process
    /// on.
    #[must_use]
    pub fn records_path(folder: &Path) -> PathBuf {
        folder.join(RECORDS_FILE)
    }

    /// Kills one component, like a crash.
    pub fn crash(&mut self, program: Program) {
        if let Some(one) = self.components.iter_mut().find(|one| one.program == program) {
            one.process.end();
        }
    }

    /// Starts a crashed component again, with the same ports and data, and waits until it is ready.
    ///
    /// # Errors
    /// Like [`RealCluster::start`]. Its earlier log is replaced.
    pub fn revive(&mut self, program: Program) -> Result<(), Error> {
        let Some(at) = self.components.iter().position(|one| one.program == program) else {
            return Ok(());
        };
        self.components[at].process.end();
        self.components[at].process = self.spawn(program, &self.components[at].command)?;
        self.write_records()?;
        self.await_ready(program, &self.probe()?)
    }

    pub(crate) fn probe(&self) -> Result<Probe, Error> {
        Probe::new(self.location.address, self.files.ca_pem(), self.files.admin())
    }

    pub(crate) fn api_server_port(&self) -> u16 {
        self.ports.api_server
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    pub(crate) fn kill(&mut self) {
        // All are killed first, so that reaping them one by one takes no time.
        self.components.iter_mut().for_each(|one| one.process.kill());
        self.components.iter_mut().for_each(|one| one.process.end());
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        if !self.detached {
            self.kill();
        }
    }
}

fn ready(program: Program, ports: Ports, probe: &Probe) -> Result<(), String> {
    match program {
        Program::Etcd => probe.http(ports.etcd_client, "/readyz"),
        Program::KubeApiserver => {
            probe.https(ports.api_server, "/readyz")?;
            // It creates the namespaces independently of its readiness, this one last.
            probe.https(ports.api_server, "/api/v1/namespaces/default")
        }
        Program::KubeControllerManager => {
            probe.https(ports.controller_manager, "/healthz")?;
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            probe.https(ports.api_server, account)
        }
        Program::KubeScheduler => probe.https(ports.scheduler, "/healthz"),
        _ => Ok(()),
    }
}

impl Ports {
    /// Five ports that are free now. All are bound until the last is found, so they differ.
    fn free() -> Result<Self, Error> {
        let hold = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port);
        let held = [hold()?, hold()?, hold()?, hold()?, hold()?];
        let mut ports = [0; 5];
        for (port, listener) in ports.iter_mut().zip(&held) {
            *port = listener.local_addr().map_err(Error::Port)?.port();
        }
        let [etcd_client, etcd_peer, api_server, controller_manager, scheduler] = ports;
        Ok(Self { etcd_client, etcd_peer, api_server, controller_manager, scheduler })
    }
}
