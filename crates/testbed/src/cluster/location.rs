//! The network location of a control plane: this machine's loopback address, or the network of a
//! node.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An address and the network namespace that has it.
#[derive(Clone, Debug)]
pub(crate) struct NetworkLocation {
    /// The address that every component listens on.
    pub(crate) address: Ipv4Addr,
    /// `None` for this process's own namespace.
    pub(crate) network: Option<PathBuf>,
}

impl NetworkLocation {
    pub(crate) fn loopback() -> Self {
        Self { address: Ipv4Addr::LOCALHOST, network: None }
    }

    /// A command that executes `program` in that network, with the same process id.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some(network) = &self.network else { return Command::new(program) };
        let mut argument = OsString::from("--net=");
        argument.push(network);
        let mut command = Command::new("nsenter");
        command.arg(argument).arg("--").arg(program);
        command
    }
}
