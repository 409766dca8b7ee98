//! How lists and maps of built-in types merge: what the types' sources say in tags and
//! `k8s-openapi` leaves out.
//!
//! Clients compute strategic merge patches by this (kubectl apply).

use serde_json::{Value, json};

/// How one list property merges.
enum Rule {
    /// Merged by a key; the second part are the keys of the list type, empty for none.
    Merge(&'static str, &'static [&'static str]),
    /// The same, and fields of an entry that are not sent are cleared.
    MergeRetain(&'static str, &'static [&'static str]),
    /// A set of scalars that merges.
    Set,
    /// Replaced as a whole.
    Atomic,
    /// Only the sent fields of an object stay.
    Retain,
}

/// Definitions, by the end of their name, whose objects are replaced as a whole.
const ATOMIC_MAPS: [&str; 14] = [
    ".ConfigMapKeySelector",
    ".EndpointAddress",
    ".LabelSelector",
    ".LocalObjectReference",
    ".NodeSelector",
    ".NodeSelectorTerm",
    ".ObjectFieldSelector",
    ".ObjectReference",
    ".ResourceFieldSelector",
    ".RoleRef",
    ".SecretKeySelector",
    ".SecretReference",
    ".Subject",
    ".TypedLocalObjectReference",
];

use Rule::{Atomic, Merge, MergeRetain, Retain, Set};

/// Type, property, rule.
const RULES: &[(&str, &str, Rule)] = &[
    ("ObjectMeta", "ownerReferences", Merge("uid", &["uid"])),
    ("ObjectMeta", "finalizers", Set),
    ("ObjectMeta", "managedFields", Atomic),
    ("PodSpec", "containers", Merge("name", &["name"])),
    ("PodSpec", "initContainers", Merge("name", &["name"])),
    ("PodSpec", "ephemeralContainers", Merge("name", &["name"])),
    ("PodSpec", "volumes", MergeRetain("name", &["name"])),
    ("PodSpec", "imagePullSecrets", Merge("name", &["name"])),
    ("PodSpec", "hostAliases", Merge("ip", &["ip"])),
    ("PodSpec", "resourceClaims", MergeRetain("name", &["name"])),
    ("PodSpec", "schedulingGates", Merge("name", &["name"])),
    (
        "PodSpec",
        "topologySpreadConstraints",
        Merge("topologyKey", &["topologyKey", "whenUnsatisfiable"]),
    ),
    ("PodSpec", "tolerations", Atomic),
    ("PodSpec", "readinessGates", Atomic),
    ("PodStatus", "conditions", Merge("type", &["type"])),
    ("PodStatus", "podIPs", Merge("ip", &["ip"])),
    ("PodStatus", "hostIPs", Merge("ip", &[])),
    ("PodStatus", "containerStatuses", Atomic),
    ("PodStatus", "initContainerStatuses", Atomic),
    ("PodStatus", "ephemeralContainerStatuses", Atomic),
    ("Container", "ports", Merge("containerPort", &["containerPort", "protocol"])),
    ("Container", "env", Merge("name", &["name"])),
    ("Container", "volumeMounts", Merge("mountPath", &["mountPath"])),
    ("Container", "volumeDevices", Merge("devicePath", &["devicePath"])),
    ("Container", "args", Atomic),
    ("Container", "command", Atomic),
    ("Container", "envFrom", Atomic),
    ("Container", "resizePolicy", Atomic),
    ("EphemeralContainer", "ports", Merge("containerPort", &["containerPort", "protocol"])),
    ("EphemeralContainer", "env", Merge("name", &["name"])),
    ("EphemeralContainer", "volumeMounts", Merge("mountPath", &["mountPath"])),
    ("EphemeralContainer", "volumeDevices", Merge("devicePath", &["devicePath"])),
    ("EphemeralContainer", "args", Atomic),
    ("EphemeralContainer", "command", Atomic),
    ("EphemeralContainer", "envFrom", Atomic),
    ("ServiceSpec", "ports", Merge("port", &["port", "protocol"])),
    ("ServiceSpec", "clusterIPs", Atomic),
    ("ServiceSpec", "externalIPs", Atomic),
    ("ServiceSpec", "ipFamilies", Atomic),
    ("ServiceSpec", "loadBalancerSourceRanges", Atomic),
    ("ServiceStatus", "conditions", Merge("type", &["type"])),
    ("ServiceAccount", "secrets", Merge("name", &["name"])),
    ("ServiceAccount", "imagePullSecrets", Atomic),
    ("NamespaceStatus", "conditions", Merge("type", &["type"])),
    ("NamespaceSpec", "finalizers", Atomic),
    ("NodeSpec", "podCIDRs", Set),
    ("NodeSpec", "taints", Atomic),
    ("NodeStatus", "addresses", Merge("type", &["type"])),
    ("NodeStatus", "conditions", Merge("type", &["type"])),
    ("NodeStatus", "images", Atomic),
    ("NodeStatus", "volumesAttached", Atomic),
    ("NodeStatus", "volumesInUse", Atomic),
    ("PersistentVolumeSpec", "accessModes", Atomic),
    ("PersistentVolumeClaimSpec", "accessModes", Atomic),
    ("PersistentVolumeClaimStatus", "conditions", Merge("type", &["type"])),
    ("ReplicationControllerStatus", "conditions", Merge("type", &["type"])),
    ("DeploymentSpec", "strategy", Retain),
    ("DeploymentStatus", "conditions", Merge("type", &["type"])),
    ("DaemonSetStatus", "conditions", Merge("type", &["type"])),
    ("ReplicaSetStatus", "conditions", Merge("type", &["type"])),
    ("StatefulSetStatus", "conditions", Merge("type", &["type"])),
    ("StatefulSetSpec", "volumeClaimTemplates", Atomic),
    ("JobStatus", "conditions", Merge("type", &[])),
    ("CronJobStatus", "active", Atomic),
    ("HorizontalPodAutoscalerSpec", "metrics", Atomic),
    ("HorizontalPodAutoscalerStatus", "conditions", Merge("type", &["type"])),
    ("PodDisruptionBudgetStatus", "conditions", Merge("type", &["type"])),
    ("APIServiceStatus", "conditions", Merge("type", &["type"])),
    ("CustomResourceDefinitionStatus", "conditions", Merge("", &["type"])),
    ("CustomResourceDefinitionStatus", "storedVersions", Atomic),
    ("CustomResourceDefinitionSpec", "versions", Atomic),
    ("ValidatingWebhookConfiguration", "webhooks", Merge("name", &["name"])),
    ("MutatingWebhookConfiguration", "webhooks", Merge("name", &["name"])),
    ("ValidatingWebhook", "matchConditions", Merge("name", &["name"])),
    ("MutatingWebhook", "matchConditions", Merge("name", &["name"])),
    ("ValidatingAdmissionPolicySpec", "matchConditions", Merge("name", &["name"])),
    ("ValidatingAdmissionPolicySpec", "variables", Merge("name", &["name"])),
    ("ValidatingAdmissionPolicySpec", "validations", Atomic),
    ("ClusterRole", "rules", Atomic),
    ("Role", "rules", Atomic),
    ("PolicyRule", "apiGroups", Atomic),
    ("PolicyRule", "resources", Atomic),
    ("PolicyRule", "resourceNames", Atomic),
    ("PolicyRule", "nonResourceURLs", Atomic),
    ("PolicyRule", "verbs", Atomic),
    ("AggregationRule", "clusterRoleSelectors", Atomic),
    ("ClusterRoleBinding", "subjects", Atomic),
    ("RoleBinding", "subjects", Atomic),
    ("EndpointSlice", "endpoints", Atomic),
    ("EndpointSlice", "ports", Atomic),
    ("LabelSelector", "matchExpressions", Atomic),
    ("LabelSelectorRequirement", "values", Atomic),
    ("IngressSpec", "rules", Atomic),
    ("IngressSpec", "tls", Atomic),
    ("NetworkPolicySpec", "egress", Atomic),
    ("NetworkPolicySpec", "ingress", Atomic),
    ("NetworkPolicySpec", "policyTypes", Atomic),
];

/// Adds the extensions to a definition, in place.
pub fn annotate(name: &str, definition: &mut Value) {
    if ATOMIC_MAPS.iter().any(|ending| name.ends_with(ending)) {
        definition["x-kubernetes-map-type"] = "atomic".into();
    }
    let short = name.rsplit('.').next().unwrap_or(name);
    let rules = RULES.iter().filter(|(kind, ..)| *kind == short);
    for (_, property, rule) in rules {
        let Some(schema) = definition["properties"].get_mut(*property) else {
            continue;
        };
        match rule {
            Merge(key, keys) => merge(schema, "merge", key, keys),
            MergeRetain(key, keys) => merge(schema, "merge,retainKeys", key, keys),
            Set => {
                schema["x-kubernetes-patch-strategy"] = "merge".into();
                schema["x-kubernetes-list-type"] = "set".into();
            }
            Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
            Retain => schema["x-kubernetes-patch-strategy"] = "retainKeys".into(),
        }
    }
}

fn merge(schema: &mut Value, strategy: &str, key: &str, keys: &[&str]) {
    if !key.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategy.into();
        schema["x-kubernetes-patch-merge-key"] = key.into();
    }
    if !keys.is_empty() {
        schema["x-kubernetes-list-type"] = "map".into();
        schema["x-kubernetes-list-map-keys"] = json!(keys);
    }
}
