//! The etcd storage against real etcd members: conformance, limits, sharing, and loss of members.

use std::sync::Arc;

use storage::Storage;

#[path = "etcd/cluster.rs"]
mod cluster;
#[path = "etcd/copies.rs"]
mod copies;
#[path = "etcd/edges.rs"]
mod edges;
#[path = "etcd/encrypted.rs"]
mod encrypted;
#[path = "etcd/faults.rs"]
mod faults;
#[path = "etcd/history.rs"]
mod history;
#[path = "etcd/recorded.rs"]
mod recorded;
#[path = "etcd/relay.rs"]
mod relay;
#[path = "etcd/wait.rs"]
mod wait;

use cluster::Cluster;

async fn empty(cluster: Cluster) -> (Arc<dyn Storage>, Cluster) {
    let storage = cluster.connect(cluster.config(0)).await;
    (storage, cluster)
}

mod conformance {
    storage::conformance_tests!(super::empty(super::Cluster::single()).await);
}

mod conformance_over_tls {
    storage::conformance_tests!(super::empty(super::Cluster::single_with_tls()).await);
}
