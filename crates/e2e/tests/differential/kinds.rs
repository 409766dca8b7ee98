//! The kinds that the stream works on: ones that no controller touches, so that every response
//! follows from the requests alone.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

/// One kind, and the content of a valid object.
pub struct Kind {
    /// The path up to the plural: `/api/v1/configmaps`.
    pub path: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    /// The object without type and metadata.
    pub content: fn(&mut StdRng) -> Value,
    /// Whether a strategic merge patch is supported.
    pub built_in: bool,
    /// Other namespaces have objects that only one of the servers created.
    pub shared: bool,
}

pub const KINDS: [Kind; 13] = [
    Kind {
        path: "/api/v1/configmaps",
        api_version: "v1",
        kind: "ConfigMap",
        namespaced: true,
        content: config_map,
        built_in: true,
        shared: true,
    },
    Kind {
        path: "/api/v1/secrets",
        api_version: "v1",
        kind: "Secret",
        namespaced: true,
        content: secret,
        built_in: true,
        shared: true,
    },
    Kind {
        path: "/api/v1/limitranges",
        api_version: "v1",
        kind: "LimitRange",
        namespaced: true,
        content: limit_range,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/api/v1/podtemplates",
        api_version: "v1",
        kind: "PodTemplate",
        namespaced: true,
        content: pod_template,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/apis/coordination.k8s.io/v1/leases",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        namespaced: true,
        content: lease,
        built_in: true,
        shared: true,
    },
    Kind {
        path: "/apis/networking.k8s.io/v1/networkpolicies",
        api_version: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        namespaced: true,
        content: network_policy,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/apis/networking.k8s.io/v1/ingresses",
        api_version: "networking.k8s.io/v1",
        kind: "Ingress",
        namespaced: true,
        content: ingress,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/apis/rbac.authorization.k8s.io/v1/roles",
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        namespaced: true,
        content: role,
        built_in: true,
        shared: true,
    },
    Kind {
        path: "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        namespaced: true,
        content: role_binding,
        built_in: true,
        shared: true,
    },
    Kind {
        path: "/apis/scheduling.k8s.io/v1/priorityclasses",
        api_version: "scheduling.k8s.io/v1",
        kind: "PriorityClass",
        namespaced: false,
        content: priority_class,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/apis/storage.k8s.io/v1/storageclasses",
        api_version: "storage.k8s.io/v1",
        kind: "StorageClass",
        namespaced: false,
        content: storage_class,
        built_in: true,
        shared: false,
    },
    Kind {
        path: "/apis/differential.example.com/v1/things",
        api_version: "differential.example.com/v1",
        kind: "Thing",
        namespaced: true,
        content: thing,
        built_in: false,
        shared: false,
    },
    Kind {
        path: "/apis/differential.example.com/v1/fleets",
        api_version: "differential.example.com/v1",
        kind: "Fleet",
        namespaced: false,
        content: thing,
        built_in: false,
        shared: false,
    },
];

/// The definitions behind the custom kinds; `Thing` has a status and a scale.
pub fn definitions() -> [Value; 2] {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 0, "maximum": 100},
                    "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                    "label": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 8},
                    "parts": {
                        "type": "array",
                        "maxItems": 4,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "weight": {"type": "number", "default": 1.5},
                            },
                        },
                    },
                    "tags": {
                        "type": "array",
                        "x-kubernetes-list-type": "set",
                        "items": {"type": "string"},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "port": {"x-kubernetes-int-or-string": true},
                    "maybe": {"type": "string", "nullable": true},
                },
            },
            "status": {
                "type": "object",
                "properties": {"seen": {"type": "integer"}, "phase": {"type": "string"}},
            },
        },
    });
    let definition = |plural: &str, kind: &str, scope: &str, subresources: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.differential.example.com")},
            "spec": {
                "group": "differential.example.com",
                "scope": scope,
                "names": {"plural": plural, "kind": kind},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
                    ],
                }],
            },
        })
    };
    [
        definition("things", "Thing", "Namespaced", json!({"status": {}})),
        definition("fleets", "Fleet", "Cluster", json!({})),
    ]
}

fn pick<T: Clone>(random: &mut StdRng, from: &[T]) -> T {
    from.choose(random).cloned().expect("the choice is not empty")
}

fn config_map(random: &mut StdRng) -> Value {
    match random.random_range(0..4) {
        0 => json!({}),
        1 => json!({"data": {"a": "1"}, "binaryData": {"b": "AAEC"}}),
        2 => json!({"data": {"a": "1", "b": "2"}, "immutable": random.random_bool(0.3)}),
        _ => json!({"data": {"a": pick(random, &["x", "y", ""])}}),
    }
}

fn secret(random: &mut StdRng) -> Value {
    match random.random_range(0..4) {
        0 => json!({"stringData": {"a": pick(random, &["x", "y"])}}),
        1 => {
            json!({"type": "kubernetes.io/basic-auth", "data": {"username": "YQ==", "password": "Yg=="}})
        }
        2 => json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}),
        _ => json!({"data": {"a": "AQID"}}),
    }
}

fn limit_range(random: &mut StdRng) -> Value {
    // Not "0.5": it is returned as 500m, and yet is another value in kube-apiserver's field
    // ownership.
    let amount = pick(random, &["1", "500m", "1e3m", "2Gi"]);
    json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}, "defaultRequest": {"cpu": amount}}]}})
}

fn pod_template(random: &mut StdRng) -> Value {
    let mut container = json!({"name": "main", "image": pick(random, &["busybox", "busybox:1.36", "a/b@sha256:1"])});
    if random.random_bool(0.5) {
        container["env"] = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    }
    if random.random_bool(0.5) {
        container["ports"] = json!([{"containerPort": pick(random, &[80, 443, 70000])}]);
    }
    if random.random_bool(0.3) {
        container["livenessProbe"] =
            json!({"httpGet": {"path": "/", "port": pick(random, &[json!(80), json!("http")])}});
    }
    json!({"template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}})
}

fn lease(random: &mut StdRng) -> Value {
    json!({"spec": {
        "holderIdentity": pick(random, &["one", "two"]),
        "leaseDurationSeconds": pick(random, &[15, 30, 0, -1]),
        "renewTime": pick(random, &["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.000000Z"]),
    }})
}

fn network_policy(random: &mut StdRng) -> Value {
    match random.random_range(0..3) {
        0 => json!({"spec": {"podSelector": {}}}),
        1 => {
            json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Egress"], "egress": [{}]}})
        }
        _ => {
            json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": pick(random, &[json!(80), json!("web"), json!(0)])}]}]}})
        }
    }
}

fn ingress(random: &mut StdRng) -> Value {
    let port = pick(random, &[json!({"number": 80}), json!({"name": "web"}), json!({})]);
    let backend = json!({"service": {"name": "web", "port": port}});
    match random.random_range(0..2) {
        0 => json!({"spec": {"defaultBackend": backend}}),
        _ => json!({"spec": {"rules": [{
            "host": pick(random, &["a.example.com", "*.example.com", "not a host"]),
            "http": {"paths": [{"path": pick(random, &["/", "/x", "x"]), "pathType": "Prefix", "backend": backend}]},
        }]}}),
    }
}

fn role(random: &mut StdRng) -> Value {
    match random.random_range(0..3) {
        0 => json!({"rules": []}),
        1 => {
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": pick(random, &[vec!["get"], vec!["*"], vec![]])}]})
        }
        _ => {
            json!({"rules": [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["a"], "verbs": ["patch"]}]})
        }
    }
}

fn role_binding(random: &mut StdRng) -> Value {
    let subject = match random.random_range(0..3) {
        0 => json!({"kind": "User", "name": "someone"}),
        1 => json!({"kind": "ServiceAccount", "name": "default", "namespace": "left"}),
        _ => json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "people"}),
    };
    let role = pick(random, &["view", "edit"]);
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject]})
}

fn priority_class(random: &mut StdRng) -> Value {
    json!({"value": pick(random, &[1, 1000, 2_000_000_001]), "description": "of a test"})
}

fn storage_class(random: &mut StdRng) -> Value {
    let mut class = json!({"provisioner": "example.com/disk"});
    if random.random_bool(0.5) {
        class["reclaimPolicy"] = pick(random, &["Delete", "Retain", "Recycle"]).into();
        class["parameters"] = json!({"kind": "fast"});
    }
    class
}

fn thing(random: &mut StdRng) -> Value {
    let mut spec =
        json!({"size": pick(random, &[json!(1), json!(2), json!(100), json!(101), json!(3)])});
    let parts = pick(
        random,
        &[
            Value::Null,
            json!([{"name": "a"}, {"name": "b", "weight": 2}]),
            json!([{"name": "a"}, {"name": "a"}]),
        ],
    );
    if !parts.is_null() {
        spec["parts"] = parts;
    }
    if random.random_bool(0.3) {
        spec["tags"] = pick(random, &[json!(["x", "y"]), json!(["x", "x"]), json!([])]);
    }
    if random.random_bool(0.3) {
        spec["free"] = json!({"any": {"thing": [1, 2.5, "x", null]}});
    }
    if random.random_bool(0.3) {
        spec["port"] = pick(random, &[json!(80), json!("80"), json!(true)]);
    }
    if random.random_bool(0.3) {
        spec["maybe"] = pick(random, &[Value::Null, json!("x")]);
    }
    if random.random_bool(0.2) {
        spec["label"] = pick(random, &["abc", "ABC", "abcdefghi"]).into();
    }
    json!({"spec": spec, "status": {"seen": 1}})
}
