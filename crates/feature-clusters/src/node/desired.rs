//! How a downstream node looks in the management cluster. Pure.

use std::collections::BTreeMap;

use api_management::{Cluster, Node, keys};
use controller::{ConditionState, OwnedCondition, Projection, StatusPatch};
use k8s_openapi::api::core::v1::{Node as KubeNode, NodeStatus as KubeNodeStatus};
use kube::ResourceExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::drain;
use super::usage::{Taken, texts};
use feature_kit::ownership::owner_reference;

const REGISTERED: OwnedCondition = OwnedCondition::of("Node", "Registered");
const PROVISIONED: OwnedCondition = OwnedCondition::of("Node", "Provisioned");
const READY: OwnedCondition = OwnedCondition::of("Node", "Ready");

/// Annotations above this size stay downstream; some tools keep whole documents there.
pub const ANNOTATION_MAX_BYTES: usize = 4096;
/// Hex digits of the hash in a name.
const NAME_DIGITS: usize = 10;

/// Keeps of a downstream node what is shown here: no images, no heartbeat times.
pub struct ObservedNode;

impl Projection for ObservedNode {
    type Object = KubeNode;
    type Projected = KubeNode;

    fn project(mut node: KubeNode) -> KubeNode {
        node.metadata.managed_fields = None;
        if let Some(status) = &mut node.status {
            status.images = None;
            for condition in status.conditions.iter_mut().flatten() {
                condition.last_heartbeat_time = None;
            }
        }
        if let Some(annotations) = &mut node.metadata.annotations {
            annotations.retain(|_, value| value.len() <= ANNOTATION_MAX_BYTES);
        }
        node
    }
}

/// The name of the object for a downstream node: the same for the same node, always.
pub fn name(cluster: &str, node: &str) -> String {
    let hash = Sha256::digest(format!("{cluster}/{node}"));
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{}", api_management::ids::NODE_PREFIX, &digits[..NAME_DIGITS])
}

/// The object as it is created; what is observed goes into its status.
pub fn object(cluster: &Cluster, node: &KubeNode) -> Node {
    let cluster_id = cluster.name_any();
    let node_name = node.name_any();
    let mut object = Node::default();
    object.metadata.name = Some(name(&cluster_id, &node_name));
    object.metadata.namespace = Some(cluster_id);
    object.metadata.owner_references = Some(vec![owner_reference(cluster)]);
    let labels = [(keys::NODE_NAME.to_owned(), label_value(&node_name))];
    object.metadata.labels = Some(labels.into());
    object.spec.imported = true;
    object.spec.requested_hostname = node_name;
    object
}

/// Node names may be longer than label values.
fn label_value(name: &str) -> String {
    let mut end = name.len().min(63);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].trim_end_matches(['-', '.', '_']).to_owned()
}

/// The status of the object.
pub fn status(node: &KubeNode, taken: &Taken) -> StatusPatch {
    let observed = node.status.clone().unwrap_or_default();
    let address = |kind: &str| {
        let addresses = observed.addresses.iter().flatten();
        addresses.into_iter().find(|a| a.type_ == kind).map(|a| a.address.clone())
    };
    let labels = node.labels();
    let roles = Roles::of(labels);
    let optional = |text: Option<String>| text.map_or(Value::Null, Value::from);
    let empty_as_null = |value: Value| match &value {
        Value::Object(map) if map.is_empty() => Value::Null,
        Value::Array(list) if list.is_empty() => Value::Null,
        _ => value,
    };
    let quantities = |map: &Option<BTreeMap<_, _>>| {
        let mut sums = super::usage::Amounts::new();
        super::usage::add(&mut sums, map.as_ref());
        empty_as_null(json!(texts(&sums)))
    };
    let spec = node.spec.clone().unwrap_or_default();
    let patch = match spec.unschedulable {
        Some(true) => StatusPatch::new(),
        _ => drain::condition::removed(StatusPatch::new()),
    };
    patch
        .field("nodeName", node.name_any())
        .field("hostname", optional(address("Hostname")))
        .field("ipAddress", optional(address("InternalIP")))
        .field("externalIpAddress", optional(address("ExternalIP")))
        .field("capacity", quantities(&observed.capacity))
        .field("allocatable", quantities(&observed.allocatable))
        .field("requested", json!(taken.requested()))
        .field("limits", empty_as_null(json!(texts(&taken.limits))))
        .field("nodeLabels", empty_as_null(json!(labels)))
        .field("nodeAnnotations", empty_as_null(json!(node.annotations())))
        .field("nodeTaints", empty_as_null(json!(spec.taints.clone().unwrap_or_default())))
        .field("controlPlane", roles.control_plane)
        .field("etcd", roles.etcd)
        .field("worker", roles.worker)
        .field("internalNodeSpec", json!(spec))
        .field("internalNodeStatus", json!(observed))
        .condition(REGISTERED, ConditionState::yes())
        .condition(PROVISIONED, ConditionState::yes())
        .condition(READY, ready(&observed))
}

fn ready(status: &KubeNodeStatus) -> ConditionState {
    let condition = status.conditions.iter().flatten().find(|c| c.type_ == "Ready");
    match condition {
        Some(condition) if condition.status == "True" => ConditionState::yes(),
        Some(condition) => ConditionState::no(
            condition.reason.as_deref().unwrap_or("NotReady"),
            condition.message.clone().unwrap_or_default(),
        ),
        None => ConditionState::unknown("NotReported", "the kubelet has not reported yet"),
    }
}

/// Roles that a node claims by its labels; one that claims none is a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Roles {
    control_plane: bool,
    etcd: bool,
    worker: bool,
}

impl Roles {
    fn of(labels: &BTreeMap<String, String>) -> Self {
        let has = |role: &str| labels.contains_key(&format!("node-role.kubernetes.io/{role}"));
        let control_plane = has("control-plane") || has("controlplane") || has("master");
        let etcd = has("etcd");
        let worker = has("worker") || !(control_plane || etcd);
        Self { control_plane, etcd, worker }
    }
}
