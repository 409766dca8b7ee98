//! A control plane with one node that runs pods for real: kubelet, containerd, runc, a bridge for
//! the pods, and kube-proxy. On request it enforces NetworkPolicies (`policies`) and measures what
//! pods use (`metrics`).
//!
//! Node and control plane share a network namespace (`network`); the node's mounts and processes
//! are in namespaces of their own (`machine`), all of it in control groups (`cgroups`). `registry`
//! lists the nodes of this machine. Nothing is installed on this machine, and none of its settings
//! change. `settings` has the configuration files.

mod cgroups;
mod images;
mod machine;
mod metrics;
mod network;
mod policies;
mod registry;
mod settings;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::Options;
use crate::command::run;
use crate::probe::Probe;
use crate::process::flag;
use crate::{Error, Process, Program, RealCluster, RecordedProcess, kubeconfig, poll_until};
use machine::{Machine, Parts};
use network::Network;
use registry::Registry;

/// The one node.
const NODE: &str = "node-1";
/// A node is ready in two seconds; a busy machine may need many times that.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
const READY_INTERVAL: Duration = Duration::from_millis(50);
/// The file with the records of a detached node's processes, as JSON.
const RECORDS_FILE: &str = "node-processes.json";
/// In the cluster's folder: the node's disk, settings and logs.
const NODE_FOLDER: &str = "node";
/// The programs on the node itself, in the order in which they start.
const PROGRAMS: [Program; 3] = [Program::Containerd, Program::Kubelet, Program::KubeProxy];

/// A running Kubernetes with one node.
///
/// Any number of them run side by side, each with addresses of its own. Dropping the value ends all
/// its processes and pods (also while a panic unwinds) and removes its network, mounts, control
/// groups and folder. When this process is killed, the kernel ends the processes, mounts and
/// network, and the next node that starts on this machine removes the rest.
///
/// Needs root. All calls block.
#[derive(Debug)]
pub struct RealNode {
    machine: Option<Machine>,
    parts: Parts,
    cluster: RealCluster,
    network: Network,
    folder: PathBuf,
    detached: bool,
    // Removed last.
    _temporary: Option<TempDir>,
}

impl RealNode {
    /// Starts a control plane and a node in a temporary folder and waits until the node is ready
    /// and has the images [`crate::TOOLBOX_IMAGE`] and the one that every pod needs.
    ///
    /// # Errors
    /// [`Error::NodeNeeds`] says what this machine or user lacks, [`Error::MissingProgram`] names
    /// the command that installs the programs. Other errors are those of [`RealCluster::start`].
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&Options::default())
    }

    /// Like [`RealNode::start`], with `options`. When detached, [`RealNode::end_recorded`] ends it.
    ///
    /// # Errors
    /// Like [`RealNode::start`].
    pub fn start_with(options: &Options) -> Result<Self, Error> {
        if !geteuid().is_root() {
            return Err(Error::NodeNeeds { needed: "root, for namespaces and mounts".to_owned() });
        }
        let (folder, temporary) = match &options.folder {
            Some(folder) => (folder.clone(), None),
            None => {
                let made = tempfile::Builder::new()
                    .prefix("drover-node-")
                    .tempdir()
                    .map_err(Error::file("create a folder in", std::env::temp_dir()))?;
                (made.path().to_owned(), Some(made))
            }
        };
        let disk = folder.join(NODE_FOLDER);
        fs::create_dir_all(&disk).map_err(Error::file("create", &disk))?;
        let start = if options.detached { Process::start_detached } else { Process::start };
        let mut network = Network::create(&options.binaries, &folder, temporary.is_some(), start)?;
        write_records(&folder, options.detached, network.record().as_slice())?;
        let made = Self::start_in(&network, &folder, start, options);
        let (cluster, parts) = made.inspect_err(|_| network.end())?;
        let detached = options.detached;
        let mut node = Self {
            machine: None,
            parts,
            cluster,
            network,
            folder,
            detached,
            _temporary: temporary,
        };
        node.write_settings()
            .and_then(|()| node.power_on())
            .and_then(|()| node.import_own())
            .inspect_err(|_| node.end())?;
        Ok(node)
    }

    fn start_in(
        network: &Network,
        folder: &Path,
        start: network::Start,
        options: &Options,
    ) -> Result<(RealCluster, Parts), Error> {
        let parts = Parts {
            folder: folder.join(NODE_FOLDER),
            network: network.namespace(),
            pause: options.binaries.path(Program::Pause)?,
            members: cgroups::create(&network.name())?,
            start,
        };
        let options = Options { folder: Some(folder.to_owned()), ..options.clone() };
        Ok((RealCluster::start_at(&network.location(), &options)?, parts))
    }

    fn write_settings(&self) -> Result<(), Error> {
        let (files, binaries) = (self.cluster.files(), self.cluster.binaries());
        let (authority, address) = (files.authority(), self.address().to_string());
        files.write_pair("kubelet", &authority.server(NODE, &[NODE, &address])?)?;
        let url = self.cluster.server_url();
        for (name, user, groups) in [
            ("kubelet", format!("system:node:{NODE}"), &["system:nodes"][..]),
            // The rights of kube-proxy are bound to this name from the start.
            ("kube-proxy", "system:kube-proxy".to_owned(), &[]),
        ] {
            let client = authority.client(&user, groups)?;
            let text = kubeconfig::render(url, files.ca_pem(), &user, &client);
            files.write_secret(&format!("{name}.kubeconfig"), &text)?;
        }
        let plugins = self.parts.folder.join("plugins");
        fs::create_dir_all(&plugins).map_err(Error::file("create", &plugins))?;
        let nothing = self.parts.folder.join("resolv.conf");
        let pki = files.path("pki");
        let proxy = settings::proxy(&self.network, NODE, &files.path("kube-proxy.kubeconfig"));
        for (path, text) in [
            (plugins.join("pods.conflist"), settings::pod_network(&self.network)),
            (self.settings("containerd.toml"), settings::containerd(binaries, &plugins)?),
            (
                self.settings("kubelet.json"),
                settings::kubelet(&self.network.name(), &pki, &nothing),
            ),
            (self.settings("kube-proxy.json"), proxy),
            (nothing, String::new()),
        ] {
            fs::write(&path, text).map_err(Error::file("write", path))?;
        }
        Ok(())
    }

    fn settings(&self, file: &str) -> PathBuf {
        self.parts.folder.join(file)
    }

    /// Cuts the power of the node: all its pods and programs end at once. The control plane
    /// continues. Does nothing when the node is off.
    pub fn power_off(&mut self) {
        if let Some(mut machine) = self.machine.take() {
            machine.end();
        }
    }

    /// Switches the node on again and waits until it is ready; pods then start again, with the
    /// images that it had. Does nothing when the node is on.
    ///
    /// # Errors
    /// Like [`RealNode::start`].
    pub fn power_on(&mut self) -> Result<(), Error> {
        if self.machine.is_some() {
            return Ok(());
        }
        let probe = self.cluster.probe()?;
        let seen = self.last_seen(&probe).unwrap_or_default();
        let mut machine = Machine::start(&self.parts)?;
        self.boot(&mut machine, &probe, &seen).inspect_err(|_| machine.end())?;
        self.machine = Some(machine);
        Ok(())
    }

    fn boot(&self, machine: &mut Machine, probe: &Probe, seen: &str) -> Result<(), Error> {
        let mut records = machine.records();
        records.extend(self.network.record());
        write_records(&self.folder, self.detached, &records)?;
        let config = |file: &str| flag("config", self.settings(file));
        let kubeconfig = self.cluster.files().path("kubelet.kubeconfig");
        let kubelet = vec![
            config("kubelet.json"),
            flag("kubeconfig", kubeconfig),
            flag("hostname-override", NODE),
            flag("node-ip", self.address().to_string()),
        ];
        for (program, flags) in [
            (Program::Containerd, vec![config("containerd.toml")]),
            (Program::Kubelet, kubelet),
            (Program::KubeProxy, vec![config("kube-proxy.json")]),
        ] {
            let mut command = self.program(program)?;
            machine.run(program.name(), command.args(flags))?;
            if program == Program::Containerd {
                // The kubelet does not wait for it.
                let asking = self.ctr(&["version"])?;
                Self::await_working(machine, program, |machine| {
                    run(&mut machine.command(&asking)).map(drop).map_err(|error| error.to_string())
                })?;
            }
        }
        Self::await_working(machine, Program::Kubelet, |_| self.probe(probe, seen))
    }

    /// A command for `program`, with an environment that finds its packages.
    fn program(&self, program: Program) -> Result<Command, Error> {
        self.with_packages(Command::new(self.cluster.binaries().path(program)?))
    }

    /// A command with an environment that finds the packages.
    fn with_packages(&self, mut command: Command) -> Result<Command, Error> {
        let packages = self.cluster.binaries().packages();
        let mut folders = vec![packages.join("usr/bin"), packages.join("usr/sbin")];
        folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
        // Libraries are in the only folder there, which is named after the architecture.
        let libraries = [packages.join("usr/lib"), packages.join("lib")];
        let libraries = libraries.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let libraries = libraries.flatten().flatten().map(|entry| entry.path());
        let libraries = libraries.filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
        let libraries: Vec<_> = libraries.collect();
        let tables = libraries.iter().map(|folder| folder.join("xtables")).collect();
        for (name, folders) in
            [("PATH", folders), ("LD_LIBRARY_PATH", libraries), ("XTABLES_LIBDIR", tables)]
        {
            let joined = std::env::join_paths(folders).map_err(|cause| Error::NodeNeeds {
                needed: format!("a PATH and a target folder without colons: {cause}"),
            })?;
            command.env(name, joined);
        }
        Ok(command)
    }

    /// Waits until `probe` finds that `program` works.
    fn await_working(
        machine: &mut Machine,
        program: Program,
        mut probe: impl FnMut(&Machine) -> Result<(), String>,
    ) -> Result<(), Error> {
        let outcome = poll_until(READY_TIMEOUT, READY_INTERVAL, || {
            // The start has failed as soon as one of the programs has ended.
            for part in PROGRAMS.into_iter().chain([program]) {
                if let Err(ended) = machine.check(part.name()) {
                    return Ok(Err(ended));
                }
            }
            probe(machine).map(Ok)
        });
        match outcome {
            Ok(outcome) => outcome,
            Err(last) => Err(Error::NotReady {
                component: program.name().to_owned(),
                waited: READY_TIMEOUT,
                last,
                log: machine.log_tail(program.name()),
            }),
        }
    }

    fn probe(&self, probe: &Probe, seen: &str) -> Result<(), String> {
        // The status of a node in the API may be from before the power was cut.
        if self.last_seen(probe)? == seen {
            return Err("no sign of life".to_owned());
        }
        let node = probe.json(self.cluster.api_server_port(), &format!("/api/v1/nodes/{NODE}"))?;
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|one| one["type"] == "Ready").cloned();
        if ready.as_ref().is_none_or(|ready| ready["status"] != "True") {
            return Err(format!("{}", ready.unwrap_or(Value::Null)));
        }
        probe.http(settings::PROXY_HEALTH_PORT, "/healthz")
    }

    /// When the kubelet last renewed its lease.
    fn last_seen(&self, probe: &Probe) -> Result<String, String> {
        let lease =
            format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}");
        let lease = probe.json(self.cluster.api_server_port(), &lease)?;
        Ok(lease["spec"]["renewTime"].as_str().unwrap_or_default().to_owned())
    }

    /// The control plane: its kubeconfig, `kubectl`, logs and processes. Everything in it listens
    /// on [`RealNode::address`].
    #[must_use]
    pub fn cluster(&self) -> &RealCluster {
        &self.cluster
    }

    /// Like [`RealNode::cluster`], to crash and restart components.
    pub fn cluster_mut(&mut self) -> &mut RealCluster {
        &mut self.cluster
    }

    /// The name of the node.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        NODE
    }

    /// The address of the node and its control plane. This machine can reach it, and the addresses
    /// of the pods.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.network.address()
    }

    /// This machine's address, as the node and its pods reach it. It exists as long as the node
    /// does: servers for the node must listen on it, or on all addresses.
    #[must_use]
    pub fn host_address(&self) -> Ipv4Addr {
        self.network.host_address()
    }

    /// The log file of a program of the node: [`Program::Containerd`], [`Program::Kubelet`],
    /// [`Program::KubeProxy`] or [`Program::KubeRouter`].
    #[must_use]
    pub fn log(&self, program: Program) -> PathBuf {
        self.parts.folder.join(format!("{}.log", program.name()))
    }

    /// Processes besides the control plane: the one that holds the network, and while the node is
    /// on, those that hold all others.
    #[must_use]
    pub fn records(&self) -> Vec<RecordedProcess> {
        let machine = self.machine.iter().flat_map(Machine::records);
        self.network.record().into_iter().chain(machine).collect()
    }

    /// [`RealNode::records`] of the node that was started detached in `folder`; empty when there is
    /// no such node.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn recorded_processes(folder: &Path) -> Result<Vec<RecordedProcess>, Error> {
        let path = folder.join(RECORDS_FILE);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read(&path).map_err(Error::file("read", &path))?;
        serde_json::from_slice(&text)
            .map_err(|cause| Error::file("read", path)(std::io::Error::other(cause)))
    }

    /// Ends the node that was started detached in `folder`, if there is one; its control plane has
    /// records of its own.
    ///
    /// # Errors
    /// A process did not end, or a leftover could not be removed; the rest was attempted before.
    pub fn end_recorded(folder: &Path) -> Result<(), Error> {
        let records = Self::recorded_processes(folder)?;
        let ended: Vec<_> = records.iter().map(RecordedProcess::end).collect();
        // Removes leftovers of ended processes.
        Registry::open()?;
        ended.into_iter().collect()
    }

    fn end(&mut self) {
        self.power_off();
        self.cluster.kill();
        self.network.end();
    }
}

impl Drop for RealNode {
    fn drop(&mut self) {
        if !self.detached {
            self.end();
        }
    }
}

fn write_records(folder: &Path, detached: bool, records: &[RecordedProcess]) -> Result<(), Error> {
    if !detached {
        return Ok(());
    }
    let path = folder.join(RECORDS_FILE);
    let text = serde_json::json!(records).to_string();
    fs::write(&path, text).map_err(Error::file("write", path))
}
