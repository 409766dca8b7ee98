//! `cargo run --release -p kubernetes-protobuf --example throughput`: encodes and decodes a list of
//! pods.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kubernetes_protobuf::{decode, encode};
use serde_json::{Value, json};

const PODS: usize = 1_000;
const ROUNDS: u32 = 20;

fn main() {
    let list = json!({
        "apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"},
        "items": (0..PODS).map(pod).collect::<Vec<_>>(),
    });
    let json = serde_json::to_vec(&list).expect("a tree serialises");
    let protobuf = encode(&json).expect("the list is well-formed");
    println!(
        "{} bytes of JSON and {} of protobuf per pod",
        json.len() / PODS,
        protobuf.len() / PODS
    );
    report("JSON bytes to protobuf", json.len(), || drop(black_box(encode(&json))));
    report("protobuf to a tree", protobuf.len(), || drop(black_box(decode(&protobuf, None))));
    report("serde_json: bytes to a tree", json.len(), || {
        drop(black_box(serde_json::from_slice::<Value>(&json)));
    });
    report("serde_json: tree to bytes", json.len(), || drop(black_box(serde_json::to_vec(&list))));
}

fn report(what: &str, size: usize, run: impl Fn()) {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        run();
    }
    let each: Duration = start.elapsed() / ROUNDS;
    let speed = size as f64 / each.as_secs_f64() / 1e6;
    println!("{what}: {:.1} ms, {speed:.0} MB/s of input", each.as_secs_f64() * 1e3);
}

fn pod(index: usize) -> Value {
    let name = format!("web-6d4cf56db6-{index:05}");
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": null,
               "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1})
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "generateName": "web-6d4cf56db6-", "namespace": "default",
            "uid": format!("5f1ab0c5-6f3c-4a5e-9d52-{index:012}"), "resourceVersion": "123456",
            "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1,
            "labels": {"app": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4cf56db6",
                "uid": "9b1f5bb0-27cf-4a1c-8ed7-4f0a52f3f1c5", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "containers": [{
                "name": "web", "image": "registry.example/web:1.2.3", "imagePullPolicy": "IfNotPresent",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": "MODE", "value": "production"}, {"name": "LEVEL", "value": "info"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"},
                    "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                "volumeMounts": [{"name": "kube-api-access-x7k2p", "readOnly": true,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "nodeName": "node-1",
            "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0,
            "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
            "startTime": "2026-01-02T03:04:05Z", "qosClass": "Burstable",
            "conditions": [condition("PodScheduled"), condition("Initialized"),
                condition("ContainersReady"), condition("Ready")],
            "containerStatuses": [{"name": "web", "ready": true, "started": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}}, "lastState": {},
                "image": "registry.example/web:1.2.3", "imageID": "sha256:0123456789abcdef",
                "containerID": "containerd://0123456789abcdef0123456789abcdef"}],
        },
    })
}
