//! Objects as Kubernetes 1.36 writes them, and their diagnoses.

use serde_json::{Value, json};

use super::*;

fn decode_all<T: serde::de::DeserializeOwned>(values: &[Value]) -> Vec<T> {
    values.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect()
}

fn set(status: &Value) -> Value {
    json!({
        "metadata": {"name": "cattle-cluster-agent-2", "uid": "set-2",
            "annotations": {"deployment.kubernetes.io/revision": "2"}},
        "spec": {"selector": {}}, "status": status,
    })
}

fn pod(node: Option<&str>, status: &Value) -> Value {
    json!({
        "metadata": {"name": "agent", "uid": "pod-1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x",
                "uid": "set-2"}]},
        "spec": {"containers": [], "nodeName": node}, "status": status,
    })
}

fn container(state: &Value, last: &Value) -> Value {
    json!({"containerStatuses": [{
        "name": "cluster-register", "image": "drover-agent:0.1.0", "imageID": "", "ready": false,
        "restartCount": 1, "state": state, "lastState": last,
    }]})
}

fn event(reason: &str, message: &str, at: &str) -> Value {
    json!({
        "metadata": {"name": "agent.1"}, "reason": reason, "message": message, "lastTimestamp": at,
        "involvedObject": {"kind": "Pod", "name": "agent", "uid": "pod-1"},
    })
}

fn of_pod(pod: Value, events: &[Value]) -> Progress {
    let replica_sets = decode_all(&[set(&json!({"replicas": 1}))]);
    diagnose(&AgentObjects { replica_sets, pods: decode_all(&[pod]), events: decode_all(events) })
}

fn waiting(reason: &str, message: &str, last: &Value) -> Progress {
    let state = json!({"waiting": {"reason": reason, "message": message}});
    of_pod(pod(Some("node-1"), &container(&state, last)), &[])
}

fn trouble_text(progress: Progress, step: AgentStep) -> String {
    assert_eq!(progress.step, step, "{progress:?}");
    progress.trouble.expect("something is wrong").to_string()
}

#[test]
fn without_a_problem_only_the_step_is_reported() {
    let running = container(&json!({"running": {"startedAt": "2026-01-01T00:00:01Z"}}), &json!({}));
    let creating = json!({"waiting": {"reason": "ContainerCreating"}});
    for (progress, step) in [
        (diagnose(&AgentObjects::default()), AgentStep::Created),
        (of_pod(pod(None, &json!({})), &[]), AgentStep::Scheduled),
        (of_pod(pod(Some("node-1"), &json!({})), &[]), AgentStep::ImageThere),
        (
            of_pod(pod(Some("node-1"), &container(&creating, &json!({}))), &[]),
            AgentStep::ImageThere,
        ),
        (of_pod(pod(Some("node-1"), &running), &[]), AgentStep::Connected),
    ] {
        assert_eq!(progress, Progress { step, trouble: None });
    }
}

#[test]
fn a_pod_that_the_cluster_refuses_is_explained_by_who_refuses() {
    let replica_failure = |message: &str| {
        let failure = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": message});
        let replica_sets = decode_all(&[set(&json!({"replicas": 0, "conditions": [failure]}))]);
        let progress = diagnose(&AgentObjects { replica_sets, ..AgentObjects::default() });
        trouble_text(progress, AgentStep::Created)
    };
    let quota =
        replica_failure("pods \"agent-x\" is forbidden: exceeded quota: none, requested: pods=1");
    assert!(quota.contains("exceeded quota: none") && quota.contains("raise or remove"), "{quota}");
    let level =
        replica_failure("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": x");
    assert!(level.contains("pod-security.kubernetes.io"), "{level}");
    let account = replica_failure(
        "pods \"x\" is forbidden: error looking up serviceaccount cattle: not found",
    );
    assert!(account.contains("--resume"), "{account}");
    let webhook = replica_failure("admission webhook \"policy.example\" denied the request: no");
    assert!(webhook.contains("admission webhook"), "{webhook}");
}

#[test]
fn a_pod_without_a_node_says_which_taint_or_what_is_missing() {
    let unschedulable = |message: &str| {
        let condition = json!({"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": message});
        let progress = of_pod(pod(None, &json!({"conditions": [condition]})), &[]);
        trouble_text(progress, AgentStep::Scheduled)
    };
    let taint = unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint(s).");
    assert!(taint.contains("untolerated taint") && taint.contains("kubectl taint"), "{taint}");
    let full = unschedulable("0/1 nodes are available: 1 Insufficient memory.");
    assert!(full.contains("make room"), "{full}");
}

#[test]
fn a_missing_image_is_named_with_both_solutions() {
    for (reason, message) in [
        ("ErrImageNeverPull", "Container image \"drover-agent:0.1.0\" is not present with pull"),
        ("ErrImagePull", "failed to pull and unpack image: no such host"),
        ("ImagePullBackOff", "Back-off pulling image: ErrImagePull: no such host"),
    ] {
        let text = trouble_text(waiting(reason, message, &json!({})), AgentStep::ImageThere);
        for part in ["\"drover-agent:0.1.0\"", "node-1", reason, message, "agent-image", "ctr"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}

#[test]
fn an_agent_that_cannot_start_or_ends_says_why() {
    let message = "container has runAsNonRoot and image will run as root";
    let text = trouble_text(
        waiting("CreateContainerConfigError", message, &json!({})),
        AgentStep::Started,
    );
    assert!(text.contains("runAsNonRoot") && text.contains("describe pod"), "{text}");
    let text =
        trouble_text(waiting("StartError", "exec format error", &json!({})), AgentStep::Started);
    assert!(text.contains("processor"), "{text}");

    let ended = |reason: &str, message: &str| {
        let end = json!({"terminated": {"exitCode": 1, "reason": reason, "message": message}});
        trouble_text(waiting("CrashLoopBackOff", "back-off 10s", &end), AgentStep::Connected)
    };
    let text = ended("Error", "decide whether to trust the server:\nthe CA has the checksum");
    assert_eq!(text, "the agent says: decide whether to trust the server: the CA has the checksum");
    assert!(ended("Error", "").contains("logs -p"));
    assert!(ended("OOMKilled", "").contains("memory"));
}

#[test]
fn the_startup_probe_says_why_a_running_agent_is_not_connected() {
    let running = container(&json!({"running": {"startedAt": "2026-01-01T00:00:01Z"}}), &json!({}));
    let pod = pod(Some("node-1"), &running);
    let mut other = event("Unhealthy", "Startup probe failed: of another", "2026-01-01T00:00:09Z");
    other["involvedObject"]["uid"] = "pod-0".into();
    let events = [
        event("Unhealthy", "Startup probe failed: reach the server: new\n", "2026-01-01T00:00:05Z"),
        event("Unhealthy", "Startup probe failed: old", "2026-01-01T00:00:03Z"),
        event("Pulled", "Container image is there", "2026-01-01T00:00:08Z"),
        other,
    ];
    let text = trouble_text(of_pod(pod, &events), AgentStep::Connected);
    assert_eq!(text, "the agent says: reach the server: new");
}

#[test]
fn a_node_that_cannot_mount_or_wire_the_pod_is_quoted() {
    let events = [event("FailedMount", "secret \"x\" not found", "2026-01-01T00:00:03Z")];
    let text =
        trouble_text(of_pod(pod(Some("node-1"), &json!({})), &events), AgentStep::ImageThere);
    assert!(text.contains("secret \"x\" not found"), "{text}");
}

#[test]
fn only_the_newest_pod_of_the_newest_set_counts_and_long_words_are_cut() {
    let mut old = set(&json!({"replicas": 1}));
    old["metadata"]["uid"] = "set-1".into();
    old["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1".into();
    let mut of_old = pod(Some("node-1"), &json!({}));
    of_old["metadata"]["ownerReferences"][0]["uid"] = "set-1".into();
    let message = "x".repeat(5000);
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": message});
    let observed = AgentObjects {
        replica_sets: decode_all(&[set(&json!({"replicas": 1})), old]),
        pods: decode_all(&[of_old, pod(None, &json!({"conditions": [condition]}))]),
        events: Vec::new(),
    };
    let text = trouble_text(diagnose(&observed), AgentStep::Scheduled);
    assert!(text.contains('…') && text.chars().count() < 1000);
}
