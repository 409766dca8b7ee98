//! The network of one node: a namespace with the node and its control plane in it, joined to this
//! machine by a pair of virtual interfaces.
//!
//! Nothing is routed beyond this machine. The kernel removes everything when the process that holds
//! the namespace ends.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::registry::{self, NodeEntry, Registry};
use crate::cluster::{NetworkLocation, SERVICE_RANGE};
use crate::command::run;
use crate::{Binaries, Error, Process, Program, RecordedProcess, poll_until};

const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(10);
const NAMESPACE_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Network {
    number: u8,
    holder: Process,
}

impl Network {
    /// Takes a number and creates its network. Before that, leftovers of killed nodes are removed.
    /// The caller must call [`Network::end`].
    pub(super) fn create(
        binaries: &Binaries,
        folder: &Path,
        is_temporary: bool,
        start: Start,
    ) -> Result<Self, Error> {
        let registry = Registry::open()?;
        let number = registry.free_number()?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--"]).arg(binaries.path(Program::Pause)?);
        let mut holder = start("network", &command, &folder.join("network.log"))?;
        let Some(record) = holder.record() else {
            return Err(Error::NodeNeeds {
                needed: format!("a network namespace; `unshare` reported: {}", holder.log_tail()),
            });
        };
        let entry = NodeEntry { holder: record, folder: folder.to_owned(), is_temporary };
        registry.enter(number, &entry).inspect_err(|_| holder.end())?;
        let mut network = Self { number, holder };
        // A detached process outlives a failed start too, unless it is ended here.
        network.connect().inspect_err(|_| network.end())?;
        Ok(network)
    }

    fn connect(&mut self) -> Result<(), Error> {
        self.await_namespace()?;
        let (name, node, here) = (self.name(), self.address(), self.host_address());
        let (node_wide, here_wide) = (format!("{node}/30"), format!("{here}/30"));
        let (here, node) = (here.to_string(), node.to_string());
        let holder = self.holder.id().to_string();
        for arguments in [
            &["link", "add", &name, "type", "veth", "peer", "name", "eth0", "netns", &holder][..],
            &["address", "add", &here_wide, "dev", &name],
            &["link", "set", &name, "up"],
            &["route", "add", &self.pod_range(), "via", &node],
        ] {
            run(Command::new("ip").args(arguments))?;
        }
        let ip = Path::new("ip");
        for arguments in [
            &["link", "set", "lo", "up"][..],
            &["address", "add", &node_wide, "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            // Without a route the kernel refuses before kube-proxy's rules see the packet.
            &["route", "add", SERVICE_RANGE, "via", &here],
        ] {
            run(self.location().command(ip).args(arguments))?;
        }
        Ok(())
    }

    fn await_namespace(&mut self) -> Result<(), Error> {
        let ours = fs::read_link("/proc/self/ns/net").ok();
        let theirs = self.namespace();
        let holder = &mut self.holder;
        poll_until(NAMESPACE_TIMEOUT, NAMESPACE_INTERVAL, || {
            if holder.exit_status().is_none() && fs::read_link(&theirs).ok() != ours {
                return Ok(());
            }
            Err(holder.log_tail())
        })
        .map_err(|said| Error::NodeNeeds {
            needed: format!("a network namespace; `unshare --net` reported: {said}"),
        })
    }

    /// Ends the namespace and releases the number. All other processes must have ended before.
    pub(super) fn end(&mut self) {
        self.holder.end();
        // The next node removes what remains; a drop cannot return an error.
        let _ = registry::leave(self.number);
    }

    pub(super) fn record(&self) -> Option<RecordedProcess> {
        self.holder.record()
    }

    pub(super) fn namespace(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holder.id()))
    }

    pub(super) fn location(&self) -> NetworkLocation {
        NetworkLocation { address: self.address(), network: Some(self.namespace()) }
    }

    /// Name of the interface on this machine and of the control group.
    pub(super) fn name(&self) -> String {
        registry::name(self.number)
    }

    /// Address of this machine for the node and its pods.
    pub(super) fn host_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.number, 1)
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.number, 2)
    }

    pub(super) fn pod_range(&self) -> String {
        format!("10.213.{}.128/25", self.number)
    }
}

/// [`Process::start`] or [`Process::start_detached`].
pub(super) type Start = fn(&str, &Command, &Path) -> Result<Process, Error>;

/// `--flag=/proc/PID/ns/NAME` for `nsenter`.
pub(super) fn enter(flag: &str, process: u32, name: &str) -> OsString {
    format!("--{flag}=/proc/{process}/ns/{name}").into()
}
