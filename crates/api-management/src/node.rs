//! Node: a node of a downstream cluster, as the management cluster records it. In the namespace of
//! the cluster.
//!
//! The contents of the downstream Node are under `status.internalNodeSpec` and
//! `status.internalNodeStatus`: in status, not in spec, because they are observed, and controllers
//! do not write spec.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSpec as KubeNodeSpec, NodeStatus as KubeNodeStatus, Taint};
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The name that users see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Host name it is to have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    /// The machine existed before the node was imported.
    pub imported: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub etcd: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_pool_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_template_name: String,
    /// `true` or `false` to have the node cordoned or not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub desired_node_unschedulable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub custom_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub metadata_update: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub node_drain_input: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list")]
    pub desired_node_taints: Vec<Value>,
}

/// The observed state of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Name of the downstream node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub external_ip_address: String,
    /// What the node has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, String>,
    /// What it has for pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// What its pods request, summed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requested: BTreeMap<String, String>,
    /// What its pods are limited to, summed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Labels of the downstream node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Annotations of the downstream node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list")]
    pub node_taints: Vec<Taint>,
    /// Roles by the node's own labels.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub etcd: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
    /// Spec of the downstream node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub internal_node_spec: Option<KubeNodeSpec>,
    /// Status of the downstream node, without heartbeat times and images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub internal_node_status: Option<KubeNodeStatus>,
}

impl ObjectRules for Node {}
