//! TaintNodesByCondition: a new node is tainted until a controller has seen that it is ready. And
//! PodTopologyLabels: pods carry the zone and region labels of their node.

use api_meta::status::Status;
use serde_json::{Map, Value, json};

use super::find;
use crate::fields::{items, str_of};
use crate::registry::Registry;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Adds the not-ready taint to a new node.
pub(super) fn taint(node: &mut Value) {
    let mut taints = items(&node["spec"]["taints"]).to_vec();
    let same = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    if !taints.iter().any(same) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        node["spec"]["taints"] = taints.into();
    }
}

/// Copies the topology labels of its node to a pod that is created with a node name.
///
/// # Errors
/// The node cannot be read.
pub(super) async fn label_pod(registry: &Registry, pod: &mut Value) -> Result<(), Status> {
    let node = str_of(&pod["spec"]["nodeName"]).to_owned();
    for (key, value) in topology_labels(registry, &node).await? {
        pod["metadata"]["labels"][key] = value;
    }
    Ok(())
}

/// The labels of a node that its pods get too: region and zone. Empty when the node does not exist
/// or `node` is empty.
///
/// # Errors
/// The node cannot be read.
pub async fn topology_labels(
    registry: &Registry,
    node: &str,
) -> Result<Map<String, Value>, Status> {
    if node.is_empty() {
        return Ok(Map::new());
    }
    let found = find(registry, ("", "nodes"), "", node).await?.unwrap_or_default();
    let labels = found["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    Ok(labels.into_iter().filter(|(key, _)| TOPOLOGY.contains(&key.as_str())).collect())
}
