//! The controllers of an API server: the initial objects of a cluster, the deletion of namespaces,
//! the contents of each namespace, the garbage collection of owned objects, the protection of
//! storage in use, and the status of admission policies.
//!
//! They run inside the process and use the [`Registry`] with system identities. Each follows the
//! watch caches; none polls.

mod advertise;
mod bootstrap;
mod garbage;
mod namespace_contents;
mod namespace_deletion;
mod storage_in_use;

use std::sync::Arc;

use apiserver::admission::policies::type_check;
use apiserver::aggregation::Aggregation;
use apiserver::registry::Registry;
use tokio::task::JoinSet;

pub use advertise::advertise;
pub use bootstrap::bootstrap;

/// Starts all controllers as `tasks`, which end when the set is dropped. `root_ca_pem` is the CA
/// certificate with which clients inside the cluster verify the server; if it is empty, namespaces
/// get no `kube-root-ca.crt`.
pub fn start(
    registry: &Arc<Registry>,
    aggregation: &Arc<Aggregation>,
    root_ca_pem: &str,
    tasks: &mut JoinSet<()>,
) {
    tasks.spawn(namespace_contents::run(registry.clone(), root_ca_pem.to_owned()));
    tasks.spawn(namespace_deletion::run(registry.clone(), aggregation.clone()));
    tasks.spawn(garbage::run(registry.clone()));
    tasks.spawn(storage_in_use::run(registry.clone()));
    tasks.spawn(type_check::run(registry.clone()));
}
