//! The agent: dials out, authenticates with its key, carries streams to its own cluster.
//!
//! It decides nothing: the server opens byte streams to the cluster's API server through it and
//! speaks TLS over them itself, with the CA and token that the agent reports. It links nothing of
//! the server.
//!
//! Start at [`args`] (the input of a user or a manifest), then [`mod@run`] (the loop that holds a
//! session open). [`trust`] decides which server to trust, [`identity`] stores the agent's key,
//! [`home`] is the agent's own cluster, [`status`] reports to the kubelet.

pub mod args;
mod call;
mod error_chain;
mod home;
mod identity;
mod kubeconfig;
mod proxy;
mod reconnect;
mod run;
mod server_url;
mod settings;
mod status;
mod trust;

#[cfg(test)]
mod tests;

pub use args::{AgentArgs, AgentCommand, ClusterArgs, NodeArgs};
pub use run::main;
