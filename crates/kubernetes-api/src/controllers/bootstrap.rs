//! The initial objects of every cluster: four namespaces, and in a full cluster the Service of the
//! API itself and the priority classes of the system.

use std::sync::Arc;

use api_meta::status::Status;
use api_meta::time;
use apiserver::registry::{Registry, WriteOptions, WriteTarget};
use apiserver::strategy::Operation;
use serde_json::{Value, json};

use crate::service_range::ServiceRange;

/// The initial namespaces. All but the last cannot be deleted.
pub const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// The priority classes of system pods.
const SYSTEM_PRIORITIES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another \
         node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Creates the missing initial objects. The addresses of Services are from `range`. Idempotent.
///
/// # Errors
/// The status of a failed write.
pub async fn bootstrap(registry: &Arc<Registry>, range: ServiceRange) -> Result<(), Status> {
    // Concurrently, so that the storage commits them in one batch.
    let namespaces = NAMESPACES.iter().map(|name| {
        let object = json!({"metadata": {"name": name}});
        create(registry, "", "namespaces", "", object)
    });
    futures::future::try_join_all(namespaces).await?;
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": range.api_address().to_string(),
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        },
    });
    create(registry, "", "services", "default", service).await?;
    publish_range(registry, range).await?;
    for (name, value, description) in SYSTEM_PRIORITIES {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        create(registry, "scheduling.k8s.io", "priorityclasses", "", class).await?;
    }
    Ok(())
}

/// Publishes the range of Service addresses as a ServiceCIDR.
async fn publish_range(registry: &Registry, range: ServiceRange) -> Result<(), Status> {
    const NAME: &str = "kubernetes";
    let Some(ranges) = registry.find("networking.k8s.io", "servicecidrs") else { return Ok(()) };
    let object = json!({"metadata": {"name": NAME}, "spec": {"cidrs": [range.to_string()]}});
    create(registry, "networking.k8s.io", "servicecidrs", "", object).await?;
    let ready = |old: &Value| {
        let mut new = old.clone();
        if new["status"]["conditions"].is_null() {
            let now = time::format_seconds(jiff::Timestamp::now().as_second());
            new["status"]["conditions"] = json!([{
                "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
                "message": "Kubernetes default Service CIDR is ready",
            }]);
        }
        Ok(new)
    };
    let target = WriteTarget { resource: &ranges, namespace: "", name: NAME };
    let options = WriteOptions::system();
    registry.modify(&target, Operation::UpdateStatus, &options, &ready).await.map(drop)
}

async fn create(
    registry: &Registry,
    group: &str,
    plural: &str,
    namespace: &str,
    object: Value,
) -> Result<(), Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(()) };
    match registry.create(&resource, namespace, object, &WriteOptions::system()).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}
