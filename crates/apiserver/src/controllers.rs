//! The controllers that make an API server whole: what every cluster starts with, the end of
//! namespaces, what each namespace holds, the collection of owned objects, storage that stays while
//! it is used, and what the status of admission policies says.
//!
//! They live inside the process and go through the [`Registry`], as system identities. Each follows
//! the watch caches; none polls.

pub mod advertise;
pub mod bootstrap;
pub mod garbage;
pub mod namespace_contents;
pub mod namespace_deletion;
pub mod storage_in_use;

use std::sync::Arc;

use tokio::task::JoinSet;

pub use advertise::advertise;
pub use bootstrap::bootstrap;

use crate::admission::policies::type_check;
use crate::aggregation::Aggregation;
use crate::registry::Registry;

/// Starts all of them on `tasks`; they end when it is dropped. `root_ca_pem` is what clients inside
/// the cluster verify the server with; without it namespaces get no `kube-root-ca.crt`.
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
