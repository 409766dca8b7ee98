//! Node: a node of a downstream cluster, as the management cluster records it. In the namespace of
//! the cluster.
//!
//! The contents of the downstream Node are under `status.internalNodeSpec` and
//! `status.internalNodeStatus`: in status, not in spec, because they are observed, and controllers
//! do not write spec.

use k8s_openapi::api::core::v1::NodeSpec as KubeNodeSpec;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::kind::{ApiVersion, KindName, ObjectRules, kind};
use crate::schema;

/// Condition: the node was set up.
pub const INITIALIZED: &str = "Initialized";
/// Condition: the machine exists.
pub const PROVISIONED: &str = "Provisioned";
/// Condition: the node joined its cluster.
pub const REGISTERED: &str = "Registered";
/// Condition: the kubelet of the node is ready.
pub const READY: &str = "Ready";
/// Condition: the progress of a drain.
pub const DRAINED: &str = "Drained";
/// Condition: the progress of the removal.
pub const REMOVED: &str = "Removed";

/// A node of a downstream cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

kind!(Node, "nodes", "node", Namespaced, NamespaceResourceScope,
    status: true, short: [], columns: [
    ("Node", "string", ".status.nodeName", false),
    ("Ready", "string",
        ".status.internalNodeStatus.conditions[?(@.type==\"Ready\")].status", false),
    ("Version", "string", ".status.internalNodeStatus.nodeInfo.kubeletVersion", false),
    ("Address", "string", ".status.ipAddress", true),
]);

/// The desired state of a node; empty for nodes that came with their cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// Host name it is to have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    /// The machine existed before the node was imported.
    pub imported: bool,
}

/// The observed state of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Spec of the downstream node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub internal_node_spec: Option<KubeNodeSpec>,
}

impl ObjectRules for Node {}
