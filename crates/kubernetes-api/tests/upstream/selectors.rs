//! Results of field selectors on built-in kinds, and the fields that they may name.

use serde_json::{Value, json};

use super::side::Side;
use super::world::run;

/// Selects only the objects of this test.
const OWN: &str = "labelSelector=test%3Dselectors";

/// Objects of one kind, and the selectors that are tried on them.
struct Case {
    path: &'static str,
    /// Whole objects. A status is written afterwards, as clients do.
    objects: Vec<Value>,
    selectors: &'static [&'static str],
}

fn pod(name: &str, host_network: Option<bool>, status: &Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]},
    });
    if let Some(host_network) = host_network {
        pod["spec"]["hostNetwork"] = host_network.into();
    }
    pod["status"] = status.clone();
    pod
}

fn pods() -> Case {
    let mut placed = pod("selectors-placed", Some(false), &json!({"phase": "Running"}));
    placed["spec"]["nodeName"] = "somewhere".into();
    placed["spec"]["restartPolicy"] = "Never".into();
    placed["spec"]["schedulerName"] = "other".into();
    placed["status"]["podIP"] = "10.1.2.3".into();
    placed["status"]["podIPs"] = json!([{"ip": "10.1.2.3"}]);
    Case {
        path: "/api/v1/namespaces/default/pods",
        objects: vec![
            pod("selectors-plain", None, &Value::Null),
            pod("selectors-host", Some(true), &Value::Null),
            placed,
        ],
        selectors: &[
            "spec.hostNetwork=false",
            "spec.hostNetwork=true",
            "spec.hostNetwork=",
            "spec.hostNetwork!=false",
            "spec.nodeName=",
            "spec.nodeName=somewhere",
            "spec.host=somewhere",
            "spec.restartPolicy=Never",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=default",
            "status.phase=Pending",
            "status.phase=Running,spec.hostNetwork=false",
            "status.podIP=",
            "status.podIP=10.1.2.3",
            "status.nominatedNodeName=",
            "metadata.namespace=default,spec.hostNetwork=false",
            "spec.none=x",
        ],
    }
}

fn nodes() -> Case {
    let node = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    Case {
        path: "/api/v1/nodes",
        objects: vec![
            node("selectors-open", json!({})),
            node("selectors-explicit", json!({"unschedulable": false})),
            node("selectors-closed", json!({"unschedulable": true})),
        ],
        selectors: &[
            "spec.unschedulable=false",
            "spec.unschedulable=true",
            "spec.unschedulable=",
            "spec.unschedulable!=false",
            "metadata.name=selectors-open,spec.unschedulable=false",
            "metadata.namespace=",
            "spec.none=x",
        ],
    }
}

fn jobs() -> Case {
    let template = json!({"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}],
    }});
    let spec = json!({"managedBy": "example.com/nobody", "template": template});
    let job = |name: &str, status: Value| json!({"metadata": {"name": name}, "spec": spec.clone(), "status": status});
    let done = json!({"startTime": "2026-01-01T00:00:00Z", "succeeded": 1});
    Case {
        path: "/apis/batch/v1/namespaces/default/jobs",
        objects: vec![job("selectors-new", Value::Null), job("selectors-done", done)],
        selectors: &[
            "status.successful=0",
            "status.successful=1",
            "status.successful=",
            "status.successful!=0",
            "status.none=x",
        ],
    }
}

fn replication_controllers() -> Case {
    let labels = json!({"app": "selectors"});
    let spec = json!({"replicas": 0, "template": {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }});
    Case {
        path: "/api/v1/namespaces/default/replicationcontrollers",
        objects: vec![json!({"metadata": {"name": "selectors-none"}, "spec": spec})],
        selectors: &["status.replicas=0", "status.replicas=2", "status.replicas=", "status.none=x"],
    }
}

fn events() -> [Case; 2] {
    let event = |name: &str, more: Value| {
        let mut event = json!({
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "selectors"},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let newer = json!({
        "metadata": {"name": "selectors-newer"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/newer",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "selectors"},
    });
    let both = json!({"source": {"component": "s"}, "reportingComponent": "example.com/r"});
    [
        Case {
            path: "/api/v1/namespaces/default/events",
            objects: vec![
                event("selectors-bare", json!({})),
                event("selectors-source", json!({"source": {"component": "s"}, "type": "Warning"})),
                event("selectors-both", both),
            ],
            selectors: &[
                "source=",
                "source=s",
                "source=example.com/r",
                "source!=s",
                "reportingComponent=",
                "reportingComponent=example.com/r",
                "reason=,type=Warning",
                "involvedObject.name=selectors",
                "involvedObject.uid=",
                "regarding.name=selectors",
            ],
        },
        Case {
            path: "/apis/events.k8s.io/v1/namespaces/default/events",
            objects: vec![newer],
            selectors: &[
                "reportingController=example.com/newer",
                "reportingController=",
                "regarding.kind=Pod,type=Normal",
                "source=example.com/newer",
                "involvedObject.name=selectors",
            ],
        },
    ]
}

/// Kinds whose selectors only compare text.
fn others() -> Vec<Case> {
    vec![
        Case {
            path: "/api/v1/namespaces/default/secrets",
            objects: vec![
                json!({"metadata": {"name": "selectors-opaque"}}),
                json!({"metadata": {"name": "selectors-typed"}, "type": "example.com/t"}),
            ],
            selectors: &["type=Opaque", "type=example.com/t", "type=", "data=x"],
        },
        Case {
            path: "/api/v1/namespaces/default/services",
            objects: vec![
                json!({
                    "metadata": {"name": "selectors-headless"},
                    "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
                }),
                json!({
                    "metadata": {"name": "selectors-named"},
                    "spec": {"type": "ExternalName", "externalName": "example.com"},
                }),
            ],
            selectors: &[
                "spec.clusterIP=None",
                "spec.clusterIP=",
                "spec.type=ClusterIP",
                "spec.type=ExternalName",
                "spec.none=x",
            ],
        },
        Case {
            path: "/api/v1/namespaces",
            objects: vec![json!({"metadata": {"name": "selectors"}})],
            selectors: &[
                "status.phase=Active",
                "status.phase=",
                "metadata.namespace=",
                "name=selectors",
            ],
        },
    ]
}

fn cluster_kinds() -> Vec<Case> {
    let slice = |name: &str, node: Value| {
        let mut spec = node;
        spec["driver"] = "example.com".into();
        spec["pool"] = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    vec![
        Case {
            path: "/apis/resource.k8s.io/v1/resourceslices",
            objects: vec![
                slice("selectors-all", json!({"allNodes": true})),
                slice("selectors-one", json!({"nodeName": "somewhere"})),
            ],
            selectors: &[
                "spec.nodeName=somewhere",
                "spec.nodeName=",
                "spec.driver=example.com",
                "metadata.namespace=",
            ],
        },
        Case {
            path: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            objects: Vec::new(),
            selectors: &["spec.signerName=example.com/s", "metadata.namespace=", "spec.none=x"],
        },
        Case {
            path: "/api/v1/namespaces/default/configmaps",
            objects: vec![json!({"metadata": {"name": "selectors"}})],
            selectors: &["metadata.name=selectors", "metadata.namespace=default", "data.a=x"],
        },
        Case {
            path: "/apis/storage.k8s.io/v1/storageclasses",
            objects: Vec::new(),
            selectors: &["metadata.namespace=", "provisioner=x"],
        },
    ]
}

async fn make(side: &Side, case: &Case) {
    for object in &case.objects {
        let mut object = object.clone();
        let status = object.as_object_mut().unwrap().remove("status").unwrap_or_default();
        object["metadata"]["labels"] = json!({"test": "selectors"});
        side.post(case.path, &object).await.success();
        if !status.is_null() {
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = format!("{}/{name}/status", case.path);
            let patch = json!({"status": status}).to_string();
            side.patch(&path, "merge-patch+json", patch).await.success();
        }
    }
}

/// The names of the selected objects, or why the selector is invalid.
async fn found(side: &Side, path: &str, selector: &str) -> Value {
    let response = side.get(&format!("{path}?{OWN}&fieldSelector={selector}")).await;
    let body = response.json();
    if response.code != 200 {
        return json!([response.code, body["message"]]);
    }
    let items = body["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].clone()).collect()
}

#[test]
fn field_selectors_select_the_same_objects_as_kube_apiserver() {
    run(async |world| {
        let mut cases = vec![pods(), nodes(), jobs(), replication_controllers()];
        cases.extend(events());
        cases.extend(others());
        cases.extend(cluster_kinds());
        let (mut differences, mut some) = (String::new(), 0);
        for case in &cases {
            for side in world.sides() {
                make(side, case).await;
            }
            for selector in case.selectors {
                let real = found(&world.real, case.path, selector).await;
                let drover = found(&world.drover, case.path, selector).await;
                some += usize::from(real[0].is_string());
                if real != drover {
                    differences += &format!(
                        "{} {selector}\n  kube-apiserver {real}\n  drover         {drover}\n",
                        case.path
                    );
                }
            }
        }
        assert!(differences.is_empty(), "{differences}");
        assert!(some > 30, "{some} selectors found something");
        for case in &cases {
            for side in world.sides() {
                let path = format!("{}?{OWN}&gracePeriodSeconds=0", case.path);
                match case.path {
                    "/api/v1/namespaces" => side.delete(&format!("{}/selectors", case.path)).await,
                    _ => side.delete(&path).await,
                };
            }
        }
    });
}
