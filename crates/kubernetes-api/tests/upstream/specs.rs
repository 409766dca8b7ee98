//! What the specs of kinds other than pods and workloads may say, and what of them an update may change.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::side::{Answer, Side};
use super::tally::{AT_ONCE, Tally};
use super::world::run;

/// What is judged together, and the lines that say it: `new KIND JSON` is a new object of the kind,
/// `change NAME JSON` is merged into the object of this name.
struct Area {
    kinds: &'static [Kind],
    cases: &'static str,
}

struct Kind {
    name: &'static str,
    path: &'static str,
    /// What a line's JSON is: the field of this name, or all of the object.
    part: Option<&'static str>,
}

const POLICY: Area = Area {
    kinds: &[
        Kind {
            name: "quota",
            path: "/api/v1/namespaces/default/resourcequotas",
            part: Some("spec"),
        },
        Kind {
            name: "budget",
            path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            part: Some("spec"),
        },
    ],
    cases: include_str!("specs/policy.txt"),
};

const NETWORK: Area = Area {
    kinds: &[
        Kind {
            name: "policy",
            path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            part: Some("spec"),
        },
        Kind {
            name: "class",
            path: "/apis/networking.k8s.io/v1/ingressclasses",
            part: Some("spec"),
        },
        Kind { name: "endpoints", path: "/api/v1/namespaces/default/endpoints", part: None },
        Kind {
            name: "slice",
            path: "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            part: None,
        },
    ],
    cases: include_str!("specs/network.txt"),
};

const SERVICE: Area = Area {
    kinds: &[
        Kind { name: "service", path: SERVICES, part: Some("spec") },
        Kind { name: "whole", path: SERVICES, part: None },
        Kind { name: "ingress", path: INGRESSES, part: Some("spec") },
        Kind { name: "routes", path: INGRESSES, part: None },
    ],
    cases: include_str!("specs/service.txt"),
};
const SERVICES: &str = "/api/v1/namespaces/default/services";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";

/// An object that is there before it is changed.
struct Kept {
    kind: &'static str,
    object: Value,
}

impl Kept {
    fn new(kind: &'static str, name: &str, mut object: Value) -> Self {
        object["metadata"]["name"] = name.into();
        Self { kind, object }
    }
}

impl Area {
    fn kind(&self, name: &str) -> &Kind {
        self.kinds.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Sends all lines to both servers, which keep `kept`, and compares what they say. At least so
    /// many lines are `refused` and `taken`.
    #[track_caller]
    fn judge(&self, kept: &[Kept], refused: usize, taken: usize) {
        run(async |world| {
            for Kept { kind, object } in kept {
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
                let (real, ours) = tokio::join!(
                    self.ask(&world.real, kept, line),
                    self.ask(&world.ours, kept, line)
                );
                (line, real, ours)
            };
            let mut tally = Tally::default();
            let mut answers = stream::iter(lines).map(both).buffered(AT_ONCE);
            while let Some((line, real, ours)) = answers.next().await {
                tally.add(line, &real, &ours);
            }
            tally.check(refused, taken);
        });
    }

    async fn ask(&self, side: &Side, kept: &[Kept], line: &str) -> Answer {
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

impl Kind {
    fn object(&self, given: Value) -> Value {
        match self.part {
            Some(part) => json!({part: given}),
            None => given,
        }
    }
}

#[test]
fn quotas_and_budgets_are_judged_as_kube_apiserver_judges_them() {
    // No pod is so many seconds from its end: it limits nobody.
    let spec = json!({"hard": {"pods": "1000"}, "scopes": ["Terminating"]});
    let scoped = Kept::new("quota", "of-spec-scoped", json!({"spec": spec}));
    POLICY.judge(&[scoped], 25, 10);
}

#[test]
fn network_kinds_are_judged_as_kube_apiserver_judges_them() {
    let policy = json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}});
    let class = json!({"spec": {"controller": "acme.io/foo"}});
    let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]});
    let endpoints = json!({"subsets": [{"addresses": [{"ip": "10.1.2.3"}]}]});
    let kept = [
        Kept::new("policy", "of-network-policy", policy),
        Kept::new("class", "of-network-class", class),
        Kept::new("slice", "of-network-slice", slice),
        Kept::new("endpoints", "of-network-endpoints", endpoints),
    ];
    NETWORK.judge(&kept, 50, 20);
}

const CLUSTER: Area = Area {
    kinds: &[
        Kind {
            name: "scaler",
            path: "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            part: Some("spec"),
        },
        Kind { name: "limits", path: "/api/v1/namespaces/default/limitranges", part: Some("spec") },
        Kind { name: "node", path: "/api/v1/nodes", part: None },
        Kind { name: "priority", path: "/apis/scheduling.k8s.io/v1/priorityclasses", part: None },
        Kind { name: "runtime", path: "/apis/node.k8s.io/v1/runtimeclasses", part: None },
        Kind {
            name: "lease",
            path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            part: Some("spec"),
        },
    ],
    cases: include_str!("specs/cluster.txt"),
};

#[test]
fn scalers_limits_nodes_classes_and_leases_are_judged_as_kube_apiserver_judges_them() {
    let named = |kind, object| Kept::new(kind, &format!("of-spec-{kind}"), object);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    let scaler = json!({"spec": {"minReplicas": 2, "maxReplicas": 3, "scaleTargetRef": target}});
    // Limits of what is nowhere limit nobody.
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
    CLUSTER.judge(&kept, 75, 40);
}

const STORAGE: Area = Area {
    kinds: &[
        Kind {
            name: "claim",
            path: "/api/v1/namespaces/default/persistentvolumeclaims",
            part: Some("spec"),
        },
        Kind {
            name: "claim-object",
            path: "/api/v1/namespaces/default/persistentvolumeclaims",
            part: None,
        },
        Kind { name: "volume", path: "/api/v1/persistentvolumes", part: Some("spec") },
        Kind { name: "volume-object", path: "/api/v1/persistentvolumes", part: None },
        Kind { name: "class", path: "/apis/storage.k8s.io/v1/storageclasses", part: None },
        Kind {
            name: "attributes",
            path: "/apis/storage.k8s.io/v1/volumeattributesclasses",
            part: None,
        },
        Kind {
            name: "attachment",
            path: "/apis/storage.k8s.io/v1/volumeattachments",
            part: Some("spec"),
        },
        Kind { name: "csi-node", path: "/apis/storage.k8s.io/v1/csinodes", part: Some("spec") },
        Kind { name: "driver", path: "/apis/storage.k8s.io/v1/csidrivers", part: Some("spec") },
    ],
    cases: include_str!("specs/storage.txt"),
};

#[test]
fn volumes_are_judged_as_kube_apiserver_judges_them() {
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
    // Whoever looks for a volume in the real cluster finds none but the one for it.
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
        Kept::new("volume", "of-spec-volume", json!({"spec": kept_volume})),
        Kept::new("volume", "of-spec-bound", json!({"spec": bound_volume})),
        Kept::new("claim", "of-spec-claim", json!({"spec": claim})),
        Kept::new("claim", "of-spec-bound-claim", json!({"spec": bound, "status": status})),
        Kept::new("claim-object", "of-spec-old-claim", old),
        Kept::new("class", "of-spec-class", json!({"provisioner": "a", "parameters": {"a": "b"}})),
        Kept::new("attributes", "of-spec-attributes", attributes),
        Kept::new("attachment", "of-spec-attachment", json!({"spec": attachment})),
        Kept::new("csi-node", "of-spec-csi-node", json!({"spec": {"drivers": [driver]}})),
        Kept::new("driver", "of-spec-driver", json!({"spec": {}})),
    ];
    STORAGE.judge(&kept, 95, 40);
}

#[test]
fn services_and_ingresses_are_judged_as_kube_apiserver_judges_them() {
    let service = |name: &str, mut spec: Value| {
        if spec["type"] != "ExternalName" {
            spec["ports"] = json!([{"port": 80}]);
        }
        Kept::new("service", &format!("of-service-{name}"), json!({"spec": spec}))
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
        Kept { kind: "ingress", object: ingress },
    ];
    SERVICE.judge(&kept, 70, 30);
}
