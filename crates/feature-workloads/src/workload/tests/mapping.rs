//! The mapping by example.

use std::sync::LazyLock;

use rest_view::state::Transitioning;
use serde_json::{Value, json};

use crate::workload::kind::WorkloadKind;
use crate::workload::types::{self, Types};
use crate::workload::{creation, flat, pod, state};

static TYPES: LazyLock<Types> = LazyLock::new(Types::read);

fn get(kind: WorkloadKind, object: &Value) -> Value {
    flat::get(&TYPES, kind, object)
}
fn put(kind: WorkloadKind, flat: &Value) -> Value {
    flat::put(&TYPES, kind, flat).unwrap()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}},
        "spec": {
            "replicas": 3, "paused": true, "minReadySeconds": 5,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"x": "y"}},
                "spec": {
                    "nodeSelector": {"disk": "ssd"},
                    "priorityClassName": "high", "schedulerName": "default-scheduler",
                    "securityContext": {"runAsUser": 1, "fsGroup": 2, "supplementalGroups": [3],
                        "seLinuxOptions": {"level": "s0"}},
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "containers": [{
                        "name": "main", "image": "nginx", "command": ["/bin/sh"], "args": ["-c", "x"],
                        "env": [{"name": "B", "value": "1"}, {"name": "A", "value": "$(B)"},
                            {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                        "envFrom": [{"prefix": "P", "configMapRef": {"name": "c"}}],
                        "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080,
                            "protocol": "TCP", "hostIP": "1.2.3.4"}],
                        "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 3},
                        "lifecycle": {"preStop": {"exec": {"command": ["bye"]}}},
                        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                        "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                        "securityContext": {"privileged": true, "readOnlyRootFilesystem": true,
                            "capabilities": {"add": ["net_admin"]}},
                    }],
                    "initContainers": [{"name": "first", "image": "busybox", "restartPolicy": "Always"}],
                    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
                },
            },
        },
        "status": {"replicas": 3, "readyReplicas": 1},
    })
}

#[test]
fn every_table_is_read_and_every_nested_type_is_there() {
    for kind in WorkloadKind::ALL {
        let table = types::table_of(kind);
        assert_eq!(table.id, kind.id());
        assert_eq!(table.embedded.unwrap(), ("podSpec", &*kind.pod_spec().join(".")));
    }
    let known: Vec<_> = types::nested().collect();
    for nested in &known {
        for field in &nested.fields {
            if let rest_view::FieldType::Struct(id) = field.kind.innermost() {
                assert!(TYPES.fields(id).is_some(), "{}.{} is of type {id}", nested.id, field.name);
            }
        }
        assert_eq!(known.iter().filter(|other| other.id == nested.id).count(), 1, "{}", nested.id);
    }
}

#[test]
fn a_deployment_is_shown_flattened() {
    let shown = get(WorkloadKind::Deployment, &deployment());
    let expect = [
        ("scale", json!(3)),
        ("paused", json!(true)),
        ("labels", json!({"app": "web"})),
        ("annotations", json!({"x": "y"})),
        ("uid", json!(1)),
        ("fsgid", json!(2)),
        ("gids", json!([3])),
        (
            "deploymentConfig",
            json!({"strategy": "RollingUpdate", "maxSurge": "25%", "maxUnavailable": 1,
                "minReadySeconds": 5}),
        ),
        ("deploymentStatus", json!({"replicas": 3, "readyReplicas": 1})),
        (
            "scheduling",
            json!({"priorityClassName": "high", "scheduler": "default-scheduler",
                "tolerate": [{"key": "k", "operator": "Exists"}],
                "node": {"requireAll": ["disk = ssd"]}}),
        ),
        (
            "volumes",
            json!([{"name": "v", "persistentVolumeClaim": {"persistentVolumeClaimId": "default:data"}}]),
        ),
        (
            "containers",
            json!([
                {
                    "name": "main", "image": "nginx", "entrypoint": ["/bin/sh"], "command": ["-c", "x"],
                    "environment": {"A": "$(B)", "B": "1"},
                    "environmentFrom": [
                        {"source": "secret", "sourceName": "s", "sourceKey": "k", "targetKey": "K",
                            "optional": false},
                        {"source": "configMap", "sourceName": "c", "prefix": "P", "optional": false},
                    ],
                    "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080, "protocol": "TCP",
                        "hostIp": "1.2.3.4", "kind": "HostPort", "sourcePort": 8080}],
                    "livenessProbe": {"tcp": true, "port": 80, "periodSeconds": 3},
                    "preStop": {"command": ["bye"]},
                    "resources": {"limits": {"cpu": "1"}},
                    "privileged": true, "readOnly": true, "capAdd": ["NET_ADMIN"],
                },
                {"name": "first", "image": "busybox", "initContainer": true},
            ]),
        ),
    ];
    for (key, value) in expect {
        assert_eq!(shown[key], value, "{key}");
    }
    for key in ["template", "spec", "strategy", "securityContext", "nodeSelector", "initContainers"]
    {
        assert_eq!(shown.get(key), None, "{key}");
    }
}

#[test]
fn a_change_retains_what_the_view_does_not_know() {
    let mut sent = get(WorkloadKind::Deployment, &deployment());
    sent["containers"][0]["image"] = "nginx:2".into();
    sent["containers"][0]["environment"] = json!({"B": "2", "C": "3"});
    sent["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}});
    sent["scale"] = 5.into();
    let mut expected = deployment();
    expected["spec"]["replicas"] = 5.into();
    let container = &mut expected["spec"]["template"]["spec"]["containers"][0];
    container["image"] = "nginx:2".into();
    container["resources"]["limits"]["cpu"] = "2".into();
    container["env"] = json!([{"name": "B", "value": "2"},
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "C", "value": "3"}]);
    assert_eq!(put(WorkloadKind::Deployment, &sent), expected);
}

#[test]
fn ports_get_names_and_are_noted_in_the_template() {
    let mut sent = get(WorkloadKind::Deployment, &deployment());
    sent["containers"][0]["ports"] = json!([
        {"containerPort": 80, "protocol": "TCP", "kind": "ClusterIP"},
        {"containerPort": 80, "protocol": "TCP", "kind": "NodePort", "sourcePort": 30080},
        {"containerPort": 53, "protocol": "UDP", "kind": "HostPort", "sourcePort": 5353, "name": "dns"},
    ]);
    let stored = put(WorkloadKind::Deployment, &sent);
    let template = &stored["spec"]["template"];
    let ports = json!([
        {"name": "80tcp02", "containerPort": 80, "protocol": "TCP"},
        {"name": "80tcp300801", "containerPort": 80, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "protocol": "UDP", "hostPort": 5353},
    ]);
    assert_eq!(template["spec"]["containers"][0]["ports"], ports);
    let note = template["metadata"]["annotations"]["field.cattle.io/ports"].as_str().unwrap();
    let note: Value = serde_json::from_str(note).unwrap();
    assert_eq!(note[0][0]["dnsName"], "web");
    assert_eq!(note[0][1]["dnsName"], "web-nodeport");
    assert_eq!(note[1], json!([]));
    let shown = get(WorkloadKind::Deployment, &stored);
    assert_eq!(shown["containers"][0]["ports"][1]["kind"], "NodePort");
    assert_eq!(shown["containers"][0]["ports"][1]["sourcePort"], 30080);
    assert_eq!(shown["annotations"], json!({"x": "y"}));
    assert_eq!(put(WorkloadKind::Deployment, &shown), stored);

    sent["containers"][0]["ports"] =
        json!([{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]);
    let refused = flat::put(&TYPES, WorkloadKind::Deployment, &sent).unwrap_err();
    assert_eq!((refused.status, refused.field.as_deref()), (422, Some("ports")));
}

#[test]
fn another_strategy_takes_what_belongs_to_rolling_updates_along() {
    let mut sent = get(WorkloadKind::Deployment, &deployment());
    sent["deploymentConfig"]["strategy"] = "Recreate".into();
    assert_eq!(
        put(WorkloadKind::Deployment, &sent)["spec"]["strategy"],
        json!({"type": "Recreate"})
    );
}

#[test]
fn requirements_of_nodes_go_where_kubernetes_has_them() {
    let mut sent = get(WorkloadKind::Deployment, &deployment());
    sent["scheduling"]["node"] = json!({
        "requireAll": ["disk = ssd", "zone in (a, b)"], "preferred": ["gpu", "!old && cores > 3"]});
    let stored = put(WorkloadKind::Deployment, &sent);
    let spec = &stored["spec"]["template"]["spec"];
    assert_eq!(spec["nodeSelector"], json!({"disk": "ssd"}));
    let affinity = &spec["affinity"]["nodeAffinity"];
    let zone = json!({"key": "zone", "operator": "In", "values": ["a", "b"]});
    assert_eq!(
        affinity["requiredDuringSchedulingIgnoredDuringExecution"],
        json!({"nodeSelectorTerms": [{"matchExpressions": [zone]}]})
    );
    let weights = affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array().unwrap();
    assert_eq!((&weights[0]["weight"], &weights[1]["weight"]), (&json!(100), &json!(99)));
    let mut shown = get(WorkloadKind::Deployment, &stored);
    assert_eq!(shown["scheduling"], sent["scheduling"]);
    shown["scheduling"]["node"] = Value::Null;
    let spec = &put(WorkloadKind::Deployment, &shown)["spec"]["template"]["spec"];
    assert_eq!((spec.get("nodeSelector"), spec.get("affinity")), (None, None));
}

#[test]
fn a_probe_becomes_another_one_whole() {
    let mut sent = get(WorkloadKind::Deployment, &deployment());
    sent["containers"][0]["livenessProbe"] =
        json!({"port": 8080, "path": "/ok", "periodSeconds": 3});
    let probe = &put(WorkloadKind::Deployment, &sent)["spec"]["template"]["spec"]["containers"][0]
        ["livenessProbe"];
    assert_eq!(*probe, json!({"httpGet": {"port": 8080, "path": "/ok"}, "periodSeconds": 3}));
}

#[test]
fn what_has_the_wrong_form_is_refused_by_its_name() {
    let cases = [
        ("containers", json!("x"), "containers"),
        ("containers", json!([1]), "containers"),
        ("containers", json!([{"name": "main", "environment": []}]), "environment"),
        ("containers", json!([{"name": "main", "environment": {"A": 1}}]), "environment"),
        ("containers", json!([{"name": "main", "environmentFrom": [{}]}]), "source"),
        (
            "containers",
            json!([{"name": "main", "environmentFrom": [{"source": "field"}]}]),
            "targetKey",
        ),
        ("containers", json!([{"name": "main", "livenessProbe": {"command": "x"}}]), "command"),
        ("scheduling", json!({"node": "x"}), "node"),
        ("scheduling", json!({"node": {"requireAll": "x"}}), "requireAll"),
        ("scale", json!("many"), "scale"),
        ("deploymentConfig", json!(1), "deploymentConfig"),
        ("volumes", json!({}), "volumes"),
        (
            "volumes",
            json!([{"persistentVolumeClaim": {"persistentVolumeClaimId": "other:data"}}]),
            "persistentVolumeClaimId",
        ),
    ];
    for (key, value, field) in cases {
        let mut sent = get(WorkloadKind::Deployment, &deployment());
        sent[key] = value.clone();
        let refused = flat::put(&TYPES, WorkloadKind::Deployment, &sent).unwrap_err();
        assert_eq!(refused.status, 422, "{key}: {value}");
        assert_eq!(refused.field.as_deref(), Some(field), "{key}: {value}: {refused}");
    }
}

#[test]
fn a_new_workload_is_of_the_kind_whose_configuration_it_has() {
    let new = |more: Value| {
        let mut flat = json!({"metadata": {"name": "x", "namespace": "ns"}});
        flat.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let kind = creation::kind_of(&flat);
        creation::complete(kind, &mut flat);
        put(kind, &flat)
    };
    let containers = json!([{"name": "c", "image": "i"}]);
    let object = new(json!({"containers": containers}));
    let label = json!({"workload.user.cattle.io/workloadselector": "deployment-ns-x"});
    assert_eq!(object["kind"], "Deployment");
    assert_eq!(object["spec"]["selector"]["matchLabels"], label);
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], label);
    assert_eq!(object["metadata"]["labels"], label);

    let selector = json!({"matchLabels": {"app": "x"}});
    let object = new(json!({"statefulSetConfig": {"serviceName": "s"}, "selector": selector}));
    assert_eq!(
        (&object["kind"], &object["spec"]["serviceName"]),
        (&json!("StatefulSet"), &json!("s"))
    );
    assert_eq!(object["spec"]["selector"], selector);

    let config =
        json!({"schedule": "* * * * *", "jobConfig": {"backoffLimit": 2}, "jobLabels": {"a": "b"}});
    let object = new(json!({"cronJobConfig": config, "containers": containers}));
    assert_eq!(object["apiVersion"], "batch/v1");
    let job = &object["spec"]["jobTemplate"];
    assert_eq!(
        (&job["spec"]["backoffLimit"], &job["metadata"]["labels"]),
        (&json!(2), &json!({"a": "b"}))
    );
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    assert_eq!(object["spec"].get("selector"), None);
    assert_eq!(get(WorkloadKind::CronJob, &object)["cronJobConfig"], config);

    let long = "n".repeat(60);
    let mut flat = json!({"metadata": {"name": long, "namespace": "ns"}});
    creation::complete(WorkloadKind::DaemonSet, &mut flat);
    let label = flat["labels"]["workload.user.cattle.io/workloadselector"].as_str().unwrap();
    assert!(label.len() <= 63 && label.starts_with("daemonSet-ns-nnn"), "{label}");
}

#[test]
fn ids_name_kind_namespace_and_name() {
    let (kind, key) = WorkloadKind::Deployment.key_of("statefulset:default:db").unwrap();
    assert_eq!(
        (kind, key.namespace.as_str(), key.name.as_str()),
        (WorkloadKind::StatefulSet, "default", "db")
    );
    assert_eq!(kind.id_of(&key), "statefulset:default:db");
    assert_eq!(WorkloadKind::Job.key_of("default:x").unwrap().0, WorkloadKind::Job);
    for odd in ["", "x", ":", "::", "a:b:c", "deployment:..:x", "deployment:a:b:c", "job:a/b:c"] {
        assert_eq!(WorkloadKind::Deployment.key_of(odd), None, "{odd}");
    }
}

#[test]
fn a_pod_is_of_the_workload_above_its_controller() {
    let pod = |kind: &str, name: &str| {
        json!({"metadata": {"namespace": "ns", "labels": {"pod-template-hash": "5d9"},
            "ownerReferences": [{"kind": kind, "name": name, "controller": true}]}})
    };
    let of = |pod: &Value| {
        pod::workload_id(pod, |job| {
            (job == "tick-1").then(|| (WorkloadKind::CronJob, "tick".to_owned()))
        })
    };
    assert_eq!(of(&pod("ReplicaSet", "web-5d9")).unwrap(), "deployment:ns:web");
    assert_eq!(of(&pod("ReplicaSet", "web-other")).unwrap(), "replicaset:ns:web-other");
    assert_eq!(of(&pod("Job", "tick-1")).unwrap(), "cronjob:ns:tick");
    assert_eq!(of(&pod("Job", "once")).unwrap(), "job:ns:once");
    assert_eq!(of(&pod("DaemonSet", "d")).unwrap(), "daemonset:ns:d");
    assert_eq!(of(&pod("Node", "n")), None);
    assert_eq!(of(&json!({"metadata": {"namespace": "ns"}})), None);
}

#[test]
fn containers_of_pods_say_how_they_are() {
    let object = json!({
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]},
        "status": {"hostIP": "1.1.1.1", "podIP": "2.2.2.2", "phase": "Running", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}}},
            {"name": "b", "ready": false, "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}},
            {"name": "c", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
        ]},
    });
    let shown = get(WorkloadKind::Pod, &object);
    let said = |at: usize, key: &str| shown["containers"][at][key].clone();
    assert_eq!((said(0, "state"), said(0, "restartCount")), (json!("running"), json!(2)));
    assert_eq!(
        (said(1, "transitioningMessage"), said(1, "transitioning")),
        (json!("ErrImagePull: no"), json!("yes"))
    );
    assert_eq!((said(2, "exitCode"), said(2, "transitioning")), (json!(1), json!("error")));
    assert_eq!(said(3, "state"), "unknown");
    assert_eq!(
        (&shown["status"]["nodeIp"], &shown["status"]["podIp"]),
        (&json!("1.1.1.1"), &json!("2.2.2.2"))
    );
}

#[test]
fn a_workload_is_active_when_its_pods_are_ready() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut object = deployment();
    assert_eq!(state::of(WorkloadKind::Deployment, &object, now).state, "paused");
    object["spec"]["paused"] = false.into();
    let summary = state::of(WorkloadKind::Deployment, &object, now);
    assert_eq!((summary.state.as_str(), summary.transitioning), ("updating", Transitioning::Yes));
    object["status"]["readyReplicas"] = 3.into();
    assert_eq!(state::of(WorkloadKind::Deployment, &object, now).state, "active");
    object["metadata"]["generation"] = 2.into();
    let unseen = state::of(WorkloadKind::Deployment, &object, now);
    assert_eq!((unseen.state.as_str(), unseen.transitioning), ("updating", Transitioning::Yes));
    object["status"]["observedGeneration"] = 2.into();
    assert_eq!(state::of(WorkloadKind::Deployment, &object, now).state, "active");
    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(state::of(WorkloadKind::Deployment, &object, now).state, "removing");
}
