//! The ClusterRoles of the management policy, as data.

use authz::PolicyRule;
use serde_json::{Value, json};

use super::{metadata, rule_json};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ALL: &[&str] = &["*"];
const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];

const TO_ADMIN: &str = "rbac.authorization.k8s.io/aggregate-to-admin";
const TO_EDIT: &str = "rbac.authorization.k8s.io/aggregate-to-edit";
const TO_VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";

/// The ClusterRoles of the management policy, like those of Kubernetes.
pub fn bootstrap_cluster_roles() -> Vec<Value> {
    let on = PolicyRule::resources;
    let at = PolicyRule::paths;
    vec![
        role("cluster-admin", &[], &[on(ALL, ALL, ALL), at(ALL, ALL)]),
        role("system:discovery", &[], &[at(DISCOVERY_PATHS, GET)]),
        role(
            "system:monitoring",
            &[],
            &[at(MONITORING_PATHS, GET), on(&[""], &["nodes/metrics"], GET)],
        ),
        role(
            "system:basic-user",
            &[],
            &[
                on(
                    &["authorization.k8s.io"],
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    CREATE,
                ),
                on(&["authentication.k8s.io"], &["selfsubjectreviews"], CREATE),
            ],
        ),
        role("system:public-info-viewer", &[], &[at(PUBLIC_PATHS, GET)]),
        role(
            "system:auth-delegator",
            &[],
            &[
                on(&["authentication.k8s.io"], &["tokenreviews"], CREATE),
                on(&["authorization.k8s.io"], &["subjectaccessreviews"], CREATE),
            ],
        ),
        role("system:service-account-issuer-discovery", &[], &[at(ISSUER_PATHS, GET)]),
        aggregating_role("admin", &[], TO_ADMIN),
        aggregating_role("edit", &[TO_ADMIN], TO_EDIT),
        aggregating_role("view", &[TO_EDIT], TO_VIEW),
        role("system:aggregate-to-admin", &[TO_ADMIN], &admin_rules()),
        role("system:aggregate-to-edit", &[TO_EDIT], &edit_rules()),
        role("system:aggregate-to-view", &[TO_VIEW], &view_rules()),
    ]
}

const DISCOVERY_PATHS: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const MONITORING_PATHS: &[&str] = &[
    "/flagz",
    "/healthz",
    "/healthz/*",
    "/livez",
    "/livez/*",
    "/metrics",
    "/metrics/slis",
    "/readyz",
    "/readyz/*",
    "/statusz",
];
const PUBLIC_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const ISSUER_PATHS: &[&str] = &[
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
];

/// What the administrator of a namespace may do beyond an editor: delegate.
fn admin_rules() -> Vec<PolicyRule> {
    let on = PolicyRule::resources;
    vec![
        on(&["authorization.k8s.io"], &["localsubjectaccessreviews"], CREATE),
        on(
            &["rbac.authorization.k8s.io"],
            &["rolebindings", "roles"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ]
}

fn edit_rules() -> Vec<PolicyRule> {
    let on = PolicyRule::resources;
    let inside = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy"];
    vec![
        on(&[""], &[&inside[..], &["secrets", "services/proxy"]].concat(), READ),
        on(&[""], &["serviceaccounts"], &["impersonate"]),
        on(&[""], &[&["pods"], &inside[..]].concat(), WRITE),
        on(&[""], &["pods/eviction"], CREATE),
        on(
            &[""],
            &[
                "configmaps",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ],
            WRITE,
        ),
        on(&[""], &["serviceaccounts/token"], CREATE),
        on(&["", "events.k8s.io"], &["events"], WRITE),
        on(
            &["apps"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ],
            WRITE,
        ),
        on(&["autoscaling"], &["horizontalpodautoscalers"], WRITE),
        on(&["batch"], &["cronjobs", "jobs"], WRITE),
        on(
            &["extensions"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "ingresses",
                "networkpolicies",
                "replicasets",
                "replicasets/scale",
                "replicationcontrollers/scale",
            ],
            WRITE,
        ),
        on(&["policy"], &["poddisruptionbudgets"], WRITE),
        on(&["networking.k8s.io"], &["ingresses", "networkpolicies"], WRITE),
        on(
            &["coordination.k8s.io"],
            &["leases"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ]
}

fn view_rules() -> Vec<PolicyRule> {
    let on = |group: &str, resources: &[&str]| PolicyRule::resources(&[group], resources, READ);
    vec![
        on("", CORE_WITH_STATUS),
        on("", CORE_STATUS_ONLY),
        on("", &["namespaces"]),
        PolicyRule::resources(&["", "events.k8s.io"], &["events"], READ),
        on("discovery.k8s.io", &["endpointslices"]),
        on("apps", APPS),
        on("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
        on("batch", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
        on("extensions", EXTENSIONS),
        on("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        on("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies"]),
    ]
}

const CORE_WITH_STATUS: &[&str] = &[
    "configmaps",
    "endpoints",
    "persistentvolumeclaims",
    "persistentvolumeclaims/status",
    "pods",
    "replicationcontrollers",
    "replicationcontrollers/scale",
    "serviceaccounts",
    "services",
    "services/status",
];
const CORE_STATUS_ONLY: &[&str] = &[
    "bindings",
    "limitranges",
    "namespaces/status",
    "pods/log",
    "pods/status",
    "replicationcontrollers/status",
    "resourcequotas",
    "resourcequotas/status",
];
const APPS: &[&str] = &[
    "controllerrevisions",
    "daemonsets",
    "daemonsets/status",
    "deployments",
    "deployments/scale",
    "deployments/status",
    "replicasets",
    "replicasets/scale",
    "replicasets/status",
    "statefulsets",
    "statefulsets/scale",
    "statefulsets/status",
];
const EXTENSIONS: &[&str] = &[
    "daemonsets",
    "daemonsets/status",
    "deployments",
    "deployments/scale",
    "deployments/status",
    "ingresses",
    "ingresses/status",
    "networkpolicies",
    "replicasets",
    "replicasets/scale",
    "replicasets/status",
    "replicationcontrollers/scale",
];

fn role(name: &str, labels: &[&str], rules: &[PolicyRule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name, labels),
        "rules": rules.iter().map(rule_json).collect::<Vec<_>>(),
    })
}

/// A ClusterRole that aggregates all roles with a label.
fn aggregating_role(name: &str, labels: &[&str], label: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name, labels),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
        "rules": [],
    })
}
