//! Cluster: a Kubernetes cluster that Drover manages. Cluster-scoped; its namespace has the same
//! name.
//!
//! Spec is the desired state, status the observed state. The condition types are defined here;
//! [`crate::state`] defines which of them a cluster needs to be active.

use std::time::Duration;

use api_meta::image::ImageReference;
use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::condition::Condition;
use crate::kind::{
    ApiVersion, KindName, ObjectRules, default_field, kind, object_field, other_fields,
};
use crate::provisioning::Provisioning;
use crate::{ids, keys, schema};

/// The server has seen the cluster object and works on it.
pub const PENDING: &str = "Pending";
/// The cluster exists, whatever created it.
pub const PROVISIONED: &str = "Provisioned";
/// The API of the cluster has responded at least once.
pub const WAITING: &str = "Waiting";
/// The API of the cluster is healthy now.
pub const READY: &str = "Ready";
/// The agent's tunnel is connected.
pub const CONNECTED: &str = "Connected";
/// The agent has run in the cluster at least once.
pub const AGENT_DEPLOYED: &str = "AgentDeployed";
/// The cluster's namespace exists in the management cluster.
pub const BACKING_NAMESPACE_CREATED: &str = "BackingNamespaceCreated";
/// The project for unassigned namespaces exists.
pub const DEFAULT_PROJECT_CREATED: &str = "DefaultProjectCreated";
/// The project for the cluster's own components exists.
pub const SYSTEM_PROJECT_CREATED: &str = "SystemProjectCreated";
/// The creator of the cluster is its owner.
pub const CREATOR_MADE_OWNER: &str = "CreatorMadeOwner";
/// The last spec has been applied.
pub const UPDATED: &str = "Updated";
/// The progress of the removal.
pub const REMOVED: &str = "Removed";
/// No node is short of disk.
pub const NO_DISK_PRESSURE: &str = "NoDiskPressure";
/// No node is short of memory.
pub const NO_MEMORY_PRESSURE: &str = "NoMemoryPressure";

/// `status.driver` of a cluster that joined through its agent.
pub const DRIVER_IMPORTED: &str = "imported";
/// `status.driver` of the management API itself.
pub const DRIVER_LOCAL: &str = "local";
/// Name of [`ClusterSpec::generic_engine_config`] in stored objects.
pub const ENGINE_CONFIG: &str = "genericEngineConfig";
/// The field of [`ClusterSpec::generic_engine_config`] with the object name of the driver.
pub const DRIVER_NAME: &str = "driverName";
/// Longest display name, in characters.
pub const DISPLAY_NAME_MAX: usize = 253;
/// How long a removal waits for a cluster that does not respond, from the deletion on. Clients that
/// follow a removal wait longer, so that they can report its result.
pub const REMOVAL_WAIT_MAX: Duration = Duration::from_secs(300);
/// Name of the agent's ClusterRole in its cluster, and of its binding.
pub const AGENT_ROLE: &str = "drover-cluster-agent";
/// Kind and name of the objects that remain in a cluster from which nothing could be deleted. All
/// other objects of Drover are in the namespace, or owned by it.
pub const LEFTOVERS: [(&str, &str); 3] = [
    ("Namespace", keys::SYSTEM_NS),
    ("ClusterRole", AGENT_ROLE),
    ("ClusterRoleBinding", AGENT_ROLE),
];
/// The default folder of the container runtime.
pub const DOCKER_ROOT_DIR: &str = "/var/lib/docker";

/// A Kubernetes cluster that is managed here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The desired state of the cluster.
    pub spec: ClusterSpec,
    /// The observed state of the cluster. Written by controllers only.
    pub status: ClusterStatus,
}

kind!(Cluster, "clusters", "cluster", Cluster, ClusterResourceScope,
    status: true, short: [], columns: [
    ("Name", "string", ".spec.displayName", false),
    ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", false),
    ("Connected", "string", ".status.conditions[?(@.type==\"Connected\")].status", false),
    ("Provider", "string", ".status.provider", false),
    ("Version", "string", ".status.version.gitVersion", false),
    ("Nodes", "integer", ".status.nodeCount", false),
    ("Driver", "string", ".status.driver", true),
]);

/// The desired state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// The name that users see. By default the object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The management API itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
    /// Agent image to run instead of the one in the setting agent-image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub desired_agent_image: String,
    /// As desiredAgentImage; wins over it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_image_override: String,
    /// Whether the namespaces of a project are closed to those of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_network_policy: Option<bool>,
    /// Name of the template with the Pod Security levels of namespaces whose project has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_pod_security_admission_configuration_template_name: String,
    /// Name of the PodSecurityPolicyTemplate that holds where nothing else does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_pod_security_policy_template_name: String,
    /// Environment variables of the agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list")]
    pub agent_env_vars: Vec<Value>,
    /// A cluster that is installed on nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub rancher_kubernetes_engine_config: Option<Value>,
    /// A cluster made by a cluster driver: its name and its options.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub generic_engine_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub eks_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub gke_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub aks_config: Option<Value>,
    /// The fields that no code reads: the whole spec is written to [`ClusterStatus::applied_spec`].
    #[serde(flatten, deserialize_with = "other_fields")]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// The observed state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Typed facts; each type has exactly one writer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The spec that was last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_spec: Option<ClusterSpec>,
    /// The projects of its namespaces are recorded: from then on their annotations follow the
    /// records.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub namespaces_assigned: bool,
    /// Name of the PodSecurityPolicyTemplate whose level the namespaces have by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub applied_pod_security_policy_template_name: String,
    /// Uid of its namespace kube-system, which identifies the cluster whatever its entry is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_system_uid: String,
    /// The agent that may speak for the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_identity: Option<AgentIdentity>,
    /// How far its driver came; `None` before the driver began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
}

/// The key that the cluster's agent made at its first registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentIdentity {
    /// Public key, base64.
    pub public_key: String,
    /// When it was registered.
    pub registered_at: String,
    /// Name of the registration token that was used.
    pub token_name: String,
}

impl Cluster {
    /// The name that users see.
    pub fn display_name(&self) -> &str {
        if self.spec.display_name.is_empty() {
            self.metadata.name.as_deref().unwrap_or_default()
        } else {
            &self.spec.display_name
        }
    }

    /// Whether it is the management API itself.
    pub fn is_local(&self) -> bool {
        self.metadata.name.as_deref() == Some(ids::LOCAL_CLUSTER)
    }

    /// Whether the cluster joins through its agent: nothing in the spec describes how to create it.
    pub fn is_imported(&self) -> bool {
        let spec = &self.spec;
        let made = [
            &spec.rancher_kubernetes_engine_config,
            &spec.generic_engine_config,
            &spec.eks_config,
            &spec.gke_config,
            &spec.aks_config,
        ];
        !self.is_local() && made.iter().all(|config| config.is_none())
    }

    /// Object name of the driver that makes the cluster.
    pub fn driver_name(&self) -> Option<&str> {
        let config = self.spec.generic_engine_config.as_ref()?;
        config[DRIVER_NAME].as_str().filter(|name| !name.is_empty())
    }

    /// A cluster stays with the driver that made it: only that one can change and remove it.
    fn refuse_another_driver(&self, old: Option<&Self>) -> Option<Cause> {
        let known = old?.driver_name()?;
        let name = self.driver_name().unwrap_or_default();
        let detail = format!("must stay \"{known}\": the cluster was made with this driver");
        let path = format!("spec.{ENGINE_CONFIG}.{DRIVER_NAME}");
        (name != known).then(|| Cause::invalid(path, &Value::from(name), &detail))
    }

    /// Whether removal must not wait for what cannot be reached.
    pub fn is_removal_forced(&self) -> bool {
        self.is_marked(keys::FORCE_REMOVE)
    }

    /// Whether removal must leave what runs in the cluster as it is, even if Drover created the
    /// cluster.
    pub fn is_detached(&self) -> bool {
        self.is_marked(keys::DETACH)
    }

    /// Whether its driver is to do nothing: what runs is cancelled, and nothing new begins.
    pub fn is_paused(&self) -> bool {
        self.is_marked(keys::PAUSED)
    }

    /// Whether the entry may manage a cluster with the uid of another entry: a clone.
    pub fn is_imported_as_new(&self) -> bool {
        self.is_marked(keys::IMPORT_AS_NEW)
    }

    fn is_marked(&self, annotation: &str) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|map| map.get(annotation).is_some_and(|value| value == "true"))
    }
}

impl ObjectRules for Cluster {
    fn fill_defaults(object: &mut Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(spec) = object_field(object, "spec") else { return };
        if !name.is_empty() {
            default_field(spec, "displayName", name.clone());
        }
        default_field(spec, "dockerRootDir", DOCKER_ROOT_DIR);
        if name == ids::LOCAL_CLUSTER {
            default_field(spec, "internal", true);
        }
    }

    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if !name.is_empty() && !ids::is_cluster_id(name) {
            let detail = "must be a DNS label: at most 63 of a-z, 0-9 and '-', with a letter or \
                          digit at both ends, since the cluster's namespace has the same name";
            causes.push(Cause::invalid("metadata.name", &Value::from(name), detail));
        } else if !name.is_empty() && old.is_none() && !ids::is_cluster_name(name) {
            let detail = format!(
                "the cluster's namespace has the same name, and \"default\" and names that begin with {} \
                 are those of other namespaces; choose another, or leave the name empty and set \
                 generateName to \"{}\"",
                ids::RESERVED_PREFIXES.map(|prefix| format!("\"{prefix}\"")).join(", "),
                ids::CLUSTER_PREFIX,
            );
            causes.push(Cause::invalid("metadata.name", &Value::from(name), &detail));
        }
        let display = self.spec.display_name.as_str();
        if display.chars().count() > DISPLAY_NAME_MAX {
            causes.push(Cause::too_long("spec.displayName", DISPLAY_NAME_MAX));
        }
        if display.trim() != display || display.chars().any(char::is_control) {
            let detail = "must not begin or end with a blank nor have control characters";
            causes.push(Cause::invalid("spec.displayName", &Value::from(display), detail));
        }
        if self.spec.internal && !name.is_empty() && !self.is_local() {
            let detail = "may be true only for the cluster \"local\"";
            causes.push(Cause::invalid("spec.internal", &Value::from(true), detail));
        }
        for (field, image) in [
            ("spec.desiredAgentImage", &self.spec.desired_agent_image),
            ("spec.agentImageOverride", &self.spec.agent_image_override),
        ] {
            if !image.is_empty()
                && let Err(error) = image.parse::<ImageReference>()
            {
                let value = Value::from(image.as_str());
                causes.push(Cause::invalid(field, &value, &error.to_string()));
            }
        }
        causes.extend(self.refuse_another_driver(old));
        causes
    }
}
