//! Project: namespaces of one cluster that belong together. In the cluster's namespace.

use std::collections::BTreeMap;

use api_meta::status::Cause;
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::kind::{
    ApiVersion, KindName, ObjectRules, default_field, immutable, kind, object_field,
};
use crate::{ids, keys};

/// Condition: the project's namespace in the management API exists.
pub const BACKING_NAMESPACE_CREATED: &str = "BackingNamespaceCreated";
/// Condition: the creator of the project is its owner.
pub const CREATOR_MADE_OWNER: &str = "CreatorMadeOwner";
/// Condition: the initial roles of the project were created.
pub const INITIAL_ROLES_POPULATED: &str = "InitialRolesPopulated";

/// Display name of the project for unassigned namespaces.
pub const DEFAULT_DISPLAY_NAME: &str = "Default";
/// Display name of the project for the cluster's own components.
pub const SYSTEM_DISPLAY_NAME: &str = "System";

/// Namespaces of one cluster that belong together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Project {
    #[schemars(skip)]
    pub api_version: ApiVersion,
    #[schemars(skip)]
    pub kind: KindName<Self>,
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    pub spec: ProjectSpec,
    pub status: ProjectStatus,
}

kind!(Project, "projects", "project", Namespaced, NamespaceResourceScope,
    status: true, short: [], columns: [
    ("Name", "string", ".spec.displayName", false),
    ("Cluster", "string", ".spec.clusterName", false),
]);

/// The desired state of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectSpec {
    /// The name that users see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Id of the cluster; the namespace of the object has the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// What all namespaces of the project together may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_quota: Option<QuotaLimits>,
    /// What a namespace may use that says nothing else. Has the same resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_default_resource_quota: Option<QuotaLimits>,
    /// For containers that say nothing else: `requestsCpu`, `limitsMemory`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_default_resource_limit: Option<Amounts>,
    /// Name of the template with the Pod Security levels of its namespaces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_security_admission_configuration_template_name: String,
}

/// The resources that a quota can limit, in the names of `/v3`, and as Kubernetes names them.
pub const QUOTA_RESOURCES: [(&str, &str); 13] = [
    ("configMaps", "configmaps"),
    ("limitsCpu", "limits.cpu"),
    ("limitsMemory", "limits.memory"),
    ("persistentVolumeClaims", "persistentvolumeclaims"),
    ("pods", "pods"),
    ("replicationControllers", "replicationcontrollers"),
    ("requestsCpu", "requests.cpu"),
    ("requestsMemory", "requests.memory"),
    ("requestsStorage", "requests.storage"),
    ("secrets", "secrets"),
    ("services", "services"),
    ("servicesLoadBalancers", "services.loadbalancers"),
    ("servicesNodePorts", "services.nodeports"),
];
/// The resources that containers can have limits of: the request and the limit of each.
pub const CONTAINER_RESOURCES: [(&str, &str); 2] =
    [("requestsCpu", "limitsCpu"), ("requestsMemory", "limitsMemory")];

/// Kubernetes quantities by resource, in the names of `/v3`, as in `limitsCpu: 500m`. An absent
/// one may be null or the empty text, as forms send it.
pub type Amounts = BTreeMap<String, Option<String>>;

/// The limits of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QuotaLimits {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limit: Amounts,
}

/// The observed state of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What its namespaces were given of its quota, together. Quantities by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub used_limit: BTreeMap<String, String>,
    /// Name of the PodSecurityPolicyTemplate that a binding gives it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_security_policy_template_name: String,
}

impl Project {
    /// Whether it has the label of the project for unassigned namespaces.
    pub fn is_default(&self) -> bool {
        self.has_label(keys::DEFAULT_PROJECT)
    }
    /// Whether it has the label of the project for the cluster's own components.
    pub fn is_system(&self) -> bool {
        self.has_label(keys::SYSTEM_PROJECT)
    }
    fn has_label(&self, key: &str) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|map| map.get(key).is_some_and(|value| value == "true"))
    }
}

impl ObjectRules for Project {
    fn fill_defaults(object: &mut Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(spec) = object_field(object, "spec") else { return };
        // The server writes it to the status; `/v3` shows it here, and clients send it back.
        if let Some(quota) = spec.get_mut("resourceQuota").and_then(Value::as_object_mut) {
            quota.remove("usedLimit");
        }
        if !namespace.is_empty() {
            default_field(spec, "clusterName", namespace);
        }
        if !name.is_empty() {
            default_field(spec, "displayName", name);
        }
    }

    fn validate(&self, old: Option<&Self>) -> Vec<Cause> {
        let cluster = self.spec.cluster_name.as_str();
        let mut causes = Vec::new();
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if old.is_none() && !name.is_empty() && !ids::is_project_name(name) {
            let detail = "the namespace of the project has the same name, so names of projects are \
                          generated: leave the name empty, set generateName to \"p-\", and put the name \
                          that users see into spec.displayName";
            causes.push(Cause::invalid("metadata.name", &Value::from(name), detail));
        }
        if cluster.is_empty() {
            causes.push(Cause::required("spec.clusterName", ""));
        } else if self.metadata.namespace.as_deref().is_some_and(|ns| ns != cluster) {
            let detail = "must be the name of the object's namespace";
            causes.push(Cause::invalid("spec.clusterName", &Value::from(cluster), detail));
        }
        if self.spec.display_name.trim().is_empty() && self.metadata.name.is_some() {
            causes.push(Cause::required("spec.displayName", ""));
        }
        let stored = old.map(|old| old.spec.cluster_name.as_str());
        causes.extend(immutable("spec.clusterName", cluster, stored));
        causes
    }
}
