//! Which cluster an entry is of, whatever it is called: by the uid of its namespace `kube-system`,
//! which lives as long as the cluster. Two entries of one cluster would replace each other's agent,
//! so the second is refused, unless it was marked as a clone
//! ([`api_management::keys::IMPORT_AS_NEW`]).
//!
//! What an agent says of its cluster may refuse that agent. It never changes another entry.

use std::time::Duration;

use api_management::Cluster;
use controller::{Reflector, Whole};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

/// Reason of the conditions of an entry whose cluster another entry manages.
pub const ALREADY_MANAGED: &str = "AlreadyManaged";
/// What the entry says then. The other entry is not named: not everybody who sees this one may see
/// it.
pub const MESSAGE: &str = "another entry of this server already manages this cluster; remove this entry, or give \
                           the other one a new agent by \"drover cluster import NAME --kubeconfig FILE --adopt\"";
/// Wait for the namespace.
const READ_TIME_MAX: Duration = Duration::from_secs(5);

/// Reads the uid of the cluster that `client` reaches. None when it cannot be read now.
pub async fn read(client: &Client) -> Option<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = tokio::time::timeout(READ_TIME_MAX, namespaces.get_opt("kube-system")).await;
    read.ok()?.ok()??.metadata.uid
}

/// Ids of the entries of the cluster with this uid.
pub fn entries(clusters: &Reflector<Whole<Cluster>>, uid: &str) -> Vec<String> {
    let mut found = Vec::new();
    clusters.for_each(|key, cluster| {
        if !uid.is_empty() && cluster.status.kube_system_uid == uid {
            found.push(key.name.clone());
        }
    });
    found
}

/// Whether `cluster` may not be an entry of the cluster with this uid, since another entry is. One
/// that has been its entry stays so, and a clone may have the uid of another cluster.
pub fn is_managed_by_another(
    clusters: &Reflector<Whole<Cluster>>,
    cluster: &Cluster,
    uid: &str,
) -> bool {
    let is_own = cluster.status.kube_system_uid == uid || cluster.is_imported_as_new();
    !is_own && !entries(clusters, uid).is_empty()
}
