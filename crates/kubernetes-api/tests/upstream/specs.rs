//! Validation of specs of kinds other than pods and workloads, and of their updates.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::tally::{AT_ONCE, Tally};
use super::world::run;

/// A group of lines: `new KIND JSON` is a new object of the kind, `change NAME JSON` is merged into
/// the object with this name.
struct Area {
    kinds: &'static [SpecKind],
    cases: &'static str,
}

struct SpecKind {
    name: &'static str,
    path: &'static str,
    /// Where a line's JSON is merged: the field of this name, or the whole object.
    part: Option<&'static str>,
}

const POLICY: Area = Area {
    kinds: &[
        SpecKind {
            name: "quota",
            path: "/api/v1/namespaces/default/resourcequotas",
            part: Some("spec"),
        },
        SpecKind {
            name: "budget",
            path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            part: Some("spec"),
        },
    ],
    cases: include_str!("specs/policy.txt"),
};

const NETWORK: Area = Area {
    kinds: &[
        SpecKind {
            name: "policy",
            path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            part: Some("spec"),
        },
        SpecKind {
            name: "class",
            path: "/apis/networking.k8s.io/v1/ingressclasses",
            part: Some("spec"),
        },
        SpecKind { name: "endpoints", path: "/api/v1/namespaces/default/endpoints", part: None },
        SpecKind {
            name: "slice",
            path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            part: None,
        },
    ],
    cases: include_str!("specs/network.txt"),
};

const SERVICE: Area = Area {
    kinds: &[
        SpecKind { name: "service", path: SERVICES, part: Some("spec") },
        SpecKind { name: "whole", path: SERVICES, part: None },
        SpecKind { name: "ingress", path: INGRESSES, part: Some("spec") },
        SpecKind { name: "routes", path: INGRESSES, part: None },
    ],
    cases: include_str!("specs/service.txt"),
};
const SERVICES: &str = "/api/v1/namespaces/default/services";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";

/// An object that exists before it is changed.
struct ExistingObject {
    kind: &'static str,
    object: Value,
}

impl ExistingObject {
    fn new(kind: &'static str, name: &str, mut object: Value) -> Self {
        object["metadata"]["name"] = name.into();
        Self { kind, object }
    }
}

impl Area {
    fn kind(&self, name: &str) -> &SpecKind {
        self.kinds.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Sends all lines to both servers, which have the objects `kept`, and compares the responses.
    /// At least the given numbers of lines must be `refused` and `taken`.
    #[track_caller]
    fn compare(&self, kept: &[ExistingObject], refused: usize, taken: usize) {
        run(async |world| {
            for ExistingObject { kind, object } in kept {
                for side in world.sides() {
                    let path = self.kind(kind).path;
                    side.post(path, object).await.success();
                    if object["status"].is_object() {
                        let path = format!(
                            "{path}/{}/status",
                            object["metadata"]["name"].as_str().unwrap()
                        );
                        let status = json!({"status": object["status"]}).to_string();
                        side.patch(&path, "merge-patch+json", status).await.success();
                    }
                }
            }
            let lines = self.cases.lines().filter(|line| !line.starts_with('#'));
            let both = async |line: &'static str| {
                let (real, drover) = tokio::join!(
                    self.send_line(&world.real, kept, line),
                    self.send_line(&world.drover, kept, line)
                );
                (line, real, drover)
            };
            let mut tally = Tally::default();
            let mut responses = stream::iter(lines).map(both).buffered(AT_ONCE);
            while let Some((line, real, drover)) = responses.next().await {
                tally.add(line, &real, &drover);
            }
            tally.check(refused, taken);
        });
    }

    async fn send_line(&self, side: &Side, kept: &[ExistingObject], line: &str) -> TestResponse {
        let mut words = line.splitn(3, ' ');
        let (verb, name, text) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let given = serde_json::from_str(text).unwrap_or_else(|error| panic!("{line}: {error}"));
        if verb == "new" {
            let kind = self.kind(name);
            let mut object = kind.object(given);
            object["metadata"]["name"] = "of-spec".into();
            return side.post(&format!("{}?dryRun=All", kind.path), &object).await;
        }
        assert_eq!(verb, "change", "{line}");
        let it = kept.iter().find(|kept| kept.object["metadata"]["name"] == name);
        let kind = self.kind(it.unwrap_or_else(|| panic!("{line}")).kind);
        let path = format!("{}/{name}?dryRun=All", kind.path);
        side.patch(&path, "merge-patch+json", kind.object(given).to_string()).await
    }
}

impl SpecKind {
    fn object(&self, given: Value) -> Value {
        match self.part {
            Some(part) => json!({part: given}),
            None => given,
        }
    }
}

#[test]
fn quotas_and_budgets_are_validated_like_by_kube_apiserver() {
    // No pod has this many seconds until its deadline, so the quota limits nothing.
    let spec = json!({"hard": {"pods": "1000"}, "scopes": ["Terminating"]});
    let scoped = ExistingObject::new("quota", "of-spec-scoped", json!({"spec": spec}));
    POLICY.compare(&[scoped], 25, 10);
}

#[test]
fn network_kinds_are_validated_like_by_kube_apiserver() {
    let policy = json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}});
    let class = json!({"spec": {"controller": "acme.io/foo"}});
    let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]});
    let endpoints = json!({"subsets": [{"addresses": [{"ip": "10.1.2.3"}]}]});
    let kept = [
        ExistingObject::new("policy", "of-network-policy", policy),
        ExistingObject::new("class", "of-network-class", class),
        ExistingObject::new("slice", "of-network-slice", slice),
        ExistingObject::new("endpoints", "of-network-endpoints", endpoints),
    ];
    NETWORK.compare(&kept, 50, 20);
}

const CLUSTER: Area = Area {
    kinds: &[
        SpecKind {
            name: "scaler",
            path: "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            part: Some("spec"),
        },
        SpecKind {
            name: "limits",
            path: "/api/v1/namespaces/default/limitranges",
            part: Some("spec"),
        },
        SpecKind { name: "node", path: "/api/v1/nodes", part: None },
        SpecKind {
            name: "priority",
            path: "/apis/scheduling.k8s.io/v1/priorityclasses",
            part: None,
        },
        SpecKind { name: "runtime", path: "/apis/node.k8s.io/v1/runtimeclasses", part: None },
        SpecKind {
            name: "lease",
            path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            part: Some("spec"),
        },
    ],
    cases: include_str!("specs/cluster.txt"),
};

#[test]
fn scalers_limits_nodes_classes_and_leases_are_validated_like_by_kube_apiserver() {
    let named = |kind, object| ExistingObject::new(kind, &format!("of-spec-{kind}"), object);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    let scaler = json!({"spec": {"minReplicas": 2, "maxReplicas": 3, "scaleTargetRef": target}});
    // Limits of an unused resource limit nothing.
    let limits = json!({"spec": {"limits": [{"type": "example.com/nothing"}]}});
    let node = json!({"spec": {
        "externalID": "x",
        "podCIDR": "10.0.1.0/24",
        "podCIDRs": ["10.0.1.0/24"],
        "providerID": "first",
        "unschedulable": true,
    }});
    let kept = [
        named("scaler", scaler),
        named("limits", limits),
        named("node", node),
        named("priority", json!({"value": 5})),
        named("runtime", json!({"handler": "a"})),
        named("lease", json!({"spec": {"holderIdentity": "a"}})),
    ];
    CLUSTER.compare(&kept, 75, 40);
}

const STORAGE: Area = Area {
    kinds: &[
        SpecKind {
            name: "claim",
            path: "/api/v1/namespaces/default/persistentvolumeclaims",
            part: Some("spec"),
        },
        SpecKind {
            name: "claim-object",
            path: "/api/v1/namespaces/default/persistentvolumeclaims",
            part: None,
        },
        SpecKind { name: "volume", path: "/api/v1/persistentvolumes", part: Some("spec") },
        SpecKind { name: "volume-object", path: "/api/v1/persistentvolumes", part: None },
        SpecKind { name: "class", path: "/apis/storage.k8s.io/v1/storageclasses", part: None },
        SpecKind {
            name: "attributes",
            path: "/apis/storage.k8s.io/v1/volumeattributesclasses",
            part: None,
        },
        SpecKind {
            name: "attachment",
            path: "/apis/storage.k8s.io/v1/volumeattachments",
            part: Some("spec"),
        },
        SpecKind { name: "csi-node", path: "/apis/storage.k8s.io/v1/csinodes", part: Some("spec") },
        SpecKind { name: "driver", path: "/apis/storage.k8s.io/v1/csidrivers", part: Some("spec") },
    ],
    cases: include_str!("specs/storage.txt"),
};

#[test]
fn volumes_are_validated_like_by_kube_apiserver() {
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "nowhere",
    });
    let mut bound = claim.clone();
    bound["storageClassName"] = "none".into();
    bound["volumeName"] = "of-spec-bound".into();
    bound["resources"]["limits"] = json!({"storage": "8Gi"});
    let mut old = json!({"spec": claim.clone()});
    old["spec"]["storageClassName"] = Value::Null;
    old["metadata"] = json!({"annotations": {"volume.beta.kubernetes.io/storage-class": "none"}});
    let volume = |name: &str| {
        json!({
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "a", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]},
            ]}},
            "storageClassName": "none",
        })
    };
    // No volume in the real cluster matches but the one for it.
    let mut bound_volume = volume("bound");
    bound_volume["claimRef"] = json!({"namespace": "default", "name": "of-spec-bound-claim"});
    let mut kept_volume = volume("kept");
    kept_volume["storageClassName"] = "kept".into();
    kept_volume["volumeAttributesClassName"] = "a".into();
    let status = json!({
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "phase": "Bound",
    });
    let attributes = json!({"driverName": "a", "parameters": {"a": "b"}});
    let driver = json!({"name": "a", "nodeID": "b", "topologyKeys": null});
    let attachment =
        json!({"attacher": "a", "nodeName": "b", "source": {"persistentVolumeName": "c"}});
    let kept = [
        ExistingObject::new("volume", "of-spec-volume", json!({"spec": kept_volume})),
        ExistingObject::new("volume", "of-spec-bound", json!({"spec": bound_volume})),
        ExistingObject::new("claim", "of-spec-claim", json!({"spec": claim})),
        ExistingObject::new(
            "claim",
            "of-spec-bound-claim",
            json!({"spec": bound, "status": status}),
        ),
        ExistingObject::new("claim-object", "of-spec-old-claim", old),
        ExistingObject::new(
            "class",
            "of-spec-class",
            json!({"provisioner": "a", "parameters": {"a": "b"}}),
        ),
        ExistingObject::new("attributes", "of-spec-attributes", attributes),
        ExistingObject::new("attachment", "of-spec-attachment", json!({"spec": attachment})),
        ExistingObject::new("csi-node", "of-spec-csi-node", json!({"spec": {"drivers": [driver]}})),
        ExistingObject::new("driver", "of-spec-driver", json!({"spec": {}})),
    ];
    STORAGE.compare(&kept, 95, 40);
}

#[test]
fn services_and_ingresses_are_validated_like_by_kube_apiserver() {
    let service = |name: &str, mut spec: Value| {
        if spec["type"] != "ExternalName" {
            spec["ports"] = json!([{"port": 80}]);
        }
        ExistingObject::new("service", &format!("of-service-{name}"), json!({"spec": spec}))
    };
    let ingress = json!({"metadata": {"name": "of-ingress"}, "spec": {"rules": [{"host": "a.b"}]}});
    let balancer = json!({
        "type": "LoadBalancer", "loadBalancerClass": "acme.io/lb", "externalTrafficPolicy": "Local",
    });
    let kept = [
        service("plain", json!({"clusterIP": "10.96.7.9"})),
        service("balancer", balancer),
        service("headless", json!({"clusterIP": "None", "selector": {"a": "b"}})),
        service("named", json!({"type": "ExternalName", "externalName": "a.b"})),
        ExistingObject { kind: "ingress", object: ingress },
    ];
    SERVICE.compare(&kept, 70, 30);
}
