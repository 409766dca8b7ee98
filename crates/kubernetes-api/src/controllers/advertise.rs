//! The endpoints of the Service `kubernetes`: the server itself.

use std::net::SocketAddr;
use std::sync::Arc;

use api_meta::status::Status;
use apiserver::registry::{Registry, WriteOptions, WriteTarget};
use apiserver::strategy::Operation;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Creates or updates the Endpoints and the EndpointSlice of the Service. Nothing is written for an
/// unspecified `address`, which is no destination.
///
/// # Errors
/// The status of a failed write.
pub async fn advertise(registry: &Arc<Registry>, address: SocketAddr) -> Result<(), Status> {
    let ip = address.ip();
    if ip.is_unspecified() {
        return Ok(());
    }
    let ports = json!([{"name": "https", "port": address.port(), "protocol": "TCP"}]);
    let endpoints = json!({
        "metadata": {
            "name": NAME,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let slice = json!({
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    write(registry, "", "endpoints", &endpoints, "subsets").await?;
    write(registry, "discovery.k8s.io", "endpointslices", &slice, "endpoints").await
}

/// Creates the object, or replaces `list` and the ports of the stored one.
async fn write(
    registry: &Registry,
    group: &str,
    plural: &str,
    desired: &Value,
    list: &str,
) -> Result<(), Status> {
    let Some(resource) = registry.find(group, plural) else { return Ok(()) };
    let options = WriteOptions::system();
    match registry.create(&resource, NAMESPACE, desired.clone(), &options).await {
        Err(status) if status.reason == "AlreadyExists" => {}
        other => return other.map(drop),
    }
    let target = WriteTarget { resource: &resource, namespace: NAMESPACE, name: NAME };
    let update = |old: &Value| {
        let mut new = old.clone();
        for field in [list, "ports"] {
            if let Some(value) = desired.get(field) {
                new[field] = value.clone();
            }
        }
        Ok(new)
    };
    registry.modify(&target, Operation::Update, &options, &update).await.map(drop)
}
