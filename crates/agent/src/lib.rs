//! The agent: dials out, proves its key, carries streams to its own cluster.
//!
//! It decides nothing: the server opens byte streams to the cluster's API server through it and
//! speaks TLS over them itself, with the CA and token that the agent reports. It links nothing of
//! the server.
//!
//! Start at [`args`] (what a person or a manifest says), then [`mod@run`] (the loop that keeps a
//! session up). [`trust`] decides which server to believe, [`identity`] keeps the agent's key,
//! [`home`] is the agent's own cluster, [`standing`] what it tells the kubelet.

pub mod args;
mod backoff;
mod call;
mod error_chain;
mod home;
mod identity;
mod kubeconfig;
mod proxy;
mod run;
mod server_url;
mod settings;
mod standing;
mod trust;

#[cfg(test)]
mod tests;

pub use args::{AgentArgs, AgentCommand, ClusterArgs, NodeArgs};
pub use run::main;
