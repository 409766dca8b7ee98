//! The gRPC contract of cluster drivers, in both directions: [`types`] has the messages, the client
//! and the server, made from `proto/driver.proto`. The rest gives names and values their meaning:
//! [`FlagType`] for the text in a flag, [`field_name`] for the field that a flag becomes in the
//! API, [`Capability`] for the numbers of capabilities, [`parse_options`] for what users type.
//!
//! Not here: how a driver is started (`driver-host`) and how one is written (`driver-sdk`).

mod flag;
mod options;

pub use flag::{FlagType, InvalidFlag, field_name};
pub use options::{InvalidOptionText, parse_options};

/// The messages, the client and the server. Regenerate with `cargo xtask contract`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod types {
    include!("generated/types.rs");
}

/// Calls a driver. Clones share its connection.
pub type DriverClient = types::driver_client::DriverClient<tonic::transport::Channel>;

/// What a driver can do beside making and removing clusters: keys of `Capabilities`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Capability {
    /// It returns the version of a cluster.
    GetVersion = 0,
    /// It changes the version of a cluster.
    SetVersion = 1,
    /// It returns the number of nodes of a cluster.
    GetNodeCount = 2,
    /// It changes the number of nodes of a cluster.
    SetNodeCount = 3,
    /// It saves and restores etcd.
    EtcdBackup = 4,
}

impl types::Capabilities {
    /// Whether the driver says that it can.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.get(&(capability as i64)).copied().unwrap_or_default()
    }

    /// Those that a driver has.
    pub fn of(capabilities: &[Capability]) -> Self {
        let pairs = capabilities.iter().map(|&capability| (capability as i64, true));
        Self { capabilities: pairs.collect() }
    }
}

#[cfg(test)]
mod tests;
