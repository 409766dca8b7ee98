//! A real Kubernetes for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler of
//! the published modules, as processes on free loopback ports; and with a node beside them, on
//! which pods run.
//!
//! It is not a simulator (that is the `sim` crate) and nothing of it ships. The programs are built
//! by `cargo xtask deps`. Start reading at [`RealCluster`], then [`RealNode`].

mod binaries;
mod certificates;
mod cluster;
mod command;
mod error;
pub mod evidence;
mod guarantee;
pub mod identity_provider;
mod image;
mod keycloak;
mod kubeconfig;
mod node;
mod probe;
mod process;
mod recorded;
mod wait;

pub use binaries::{Binaries, DEPS_ENV, Program};
pub use cluster::{Options, RealCluster};
pub use error::Error;
pub use guarantee::{Guarantee, NO_SECOND_TRY, no_second_try};
pub use identity_provider::IdentityProvider;
pub use image::{Image, TOOLBOX_IMAGE};
pub use keycloak::Keycloak;
pub use node::RealNode;
pub use process::Process;
pub use recorded::RecordedProcess;
pub use wait::poll_until;

#[cfg(test)]
mod tests;
