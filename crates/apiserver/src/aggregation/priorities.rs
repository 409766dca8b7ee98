//! The priorities of the built-in groups of Kubernetes, and of all others.

use super::Priority;

/// The priority of groups from CustomResourceDefinitions.
const CUSTOM: Priority = Priority { group: 1000, version: 100 };

/// Group, version, and their priorities, as kube-apiserver 1.36 registers them.
const BUILT_IN: [(&str, &str, i64, i64); 22] = [
    ("", "v1", 18_000, 1),
    // Has no APIService, and precedes all groups that have one.
    ("apiregistration.k8s.io", "v1", 20_001, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("autoscaling", "v1", 17_500, 15),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
];

/// The priorities with which a version is registered.
pub(super) fn of(group: &str, version: &str) -> Priority {
    let known = BUILT_IN.iter().find(|known| (known.0, known.1) == (group, version));
    known.map_or(CUSTOM, |known| Priority { group: known.2, version: known.3 })
}
