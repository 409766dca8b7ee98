//! The state in one word.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::state::summarise;

fn now() -> Timestamp {
    "2024-01-01T00:10:00Z".parse().unwrap()
}

fn summary(object: Value) -> (String, &'static str, String) {
    let summary = summarise(&object, now());
    (summary.state, summary.transitioning.as_str(), summary.message)
}

fn with(conditions: &[(&str, &str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, message)| json!({"type": kind, "status": status, "message": message}))
        .collect();
    json!({"status": {"conditions": conditions}})
}

#[test]
fn conditions_decide_the_word() {
    let expected = |state: &str, transitioning, message: &str| {
        (state.to_owned(), transitioning, message.to_owned())
    };
    for (conditions, expected) in [
        (vec![("Ready", "True", "")], expected("active", "no", "")),
        (vec![("Ready", "False", "down")], expected("unavailable", "yes", "down")),
        (vec![("Ready", "Unknown", "lost")], expected("unavailable", "error", "lost")),
        (vec![("Provisioned", "Unknown", "")], expected("provisioning", "yes", "")),
        (vec![("Provisioned", "False", "no")], expected("provisioning", "error", "no")),
        (
            vec![("Waiting", "Unknown", "soon"), ("Ready", "False", "down")],
            expected("waiting", "yes", "soon"),
        ),
        // A later False wins over an earlier Unknown.
        (
            vec![("Waiting", "Unknown", "soon"), ("Provisioned", "False", "no")],
            expected("provisioning", "error", "soon; no"),
        ),
        (vec![("Failed", "False", "bad")], expected("error", "error", "bad")),
        (vec![("MemoryPressure", "True", "full")], expected("active", "error", "full")),
        (vec![("MemoryPressure", "False", "fine")], expected("active", "no", "")),
        (vec![("Reconciling", "True", "")], expected("reconciling", "yes", "")),
    ] {
        assert_eq!(summary(with(&conditions)), expected, "{conditions:?}");
    }
}

#[test]
fn phase_activity_age_and_removal_count_where_no_condition_speaks() {
    let state = |object: Value| summary(object).0;
    assert_eq!(state(json!({"spec": {"active": false}})), "inactive");
    assert_eq!(state(json!({"status": {"phase": "Bound"}})), "bound");
    assert_eq!(state(json!({"status": {"phase": "Succeeded"}})), "succeeded");
    let young =
        |age: &str, api: &str| json!({"apiVersion": api, "metadata": {"creationTimestamp": age}});
    let cattle = "management.cattle.io/v3";
    assert_eq!(state(young("2024-01-01T00:09:58Z", cattle)), "initializing");
    assert_eq!(state(young("2024-01-01T00:09:50Z", cattle)), "active");
    assert_eq!(state(young("2024-01-01T00:09:58Z", "example.io/v1")), "active");

    let removed = |since: &str| {
        json!({"metadata": {
            "deletionTimestamp": since,
            "finalizers": ["controller.cattle.io/widget-cleanup"],
        }})
    };
    let message = "waiting on widget-cleanup".to_owned();
    let expected = ("removing".to_owned(), "yes", message.clone());
    assert_eq!(summary(removed("2024-01-01T00:09:00Z")), expected);
    let expected = ("removing".to_owned(), "error", message);
    assert_eq!(summary(removed("2024-01-01T00:01:00Z")), expected);
}

#[test]
fn what_the_status_says_outright_comes_first() {
    let shown = |status: Value| {
        let (state, transitioning, message) = summary(json!({"status": status}));
        format!("{state} {transitioning} {message}")
    };
    let ready = json!([{"type": "Ready", "status": "False", "message": "down"}]);
    let failed = json!([{"type": "Ready", "status": "True", "reason": "Error", "message": "bad"}]);
    let said = json!({"state": "Waiting", "transitioning": true, "message": "soon"});
    assert_eq!(shown(json!({"display": said})), "waiting yes soon");
    assert_eq!(shown(json!({"display": {}, "summary": said})), "waiting yes soon");
    assert_eq!(shown(json!({"summary": said, "conditions": ready})), "waiting yes soon");
    assert_eq!(shown(json!({"summary": said, "conditions": failed})), "waiting error soon; bad");
    let active = json!({"state": "active"});
    assert_eq!(shown(json!({"display": active, "conditions": failed})), "error error bad");
    let broken = json!({"display": {"error": true}, "conditions": ready});
    assert_eq!(shown(broken), "unavailable error down");
    assert_eq!(shown(json!({"display": "text", "summary": [1]})), "active no ");
}

#[test]
fn conditions_are_also_read_from_the_annotation() {
    let text = json!({"Conditions": [{"type": "Ready", "status": "False", "message": "down"}]});
    let object = json!({"metadata": {"annotations": {"cattle.io/status": text.to_string()}}});
    assert_eq!(summary(object), ("unavailable".to_owned(), "yes", "down".to_owned()));
    let broken = json!({"metadata": {"annotations": {"cattle.io/status": "{"}}});
    assert_eq!(summary(broken).0, "active");
}

#[test]
fn a_service_waits_for_the_address_of_its_load_balancer() {
    let service = |kind: &str, ingress: Value| {
        let status = json!({"loadBalancer": {"ingress": ingress}});
        summary(json!({"kind": "Service", "spec": {"type": kind}, "status": status})).0
    };
    assert_eq!(service("LoadBalancer", json!([])), "pending");
    assert_eq!(service("LoadBalancer", Value::Null), "pending");
    assert_eq!(service("LoadBalancer", json!([{"ip": "10.0.0.1"}])), "active");
    assert_eq!(service("ClusterIP", json!([])), "active");
}

#[test]
fn each_condition_has_its_word() {
    let progress_while_unknown = [
        ("activating", "Active InitialRolesPopulated"),
        ("provisioning", "AddonDeploy AgentDeployed CertsGenerated DockerProvisioned etcd"),
        ("provisioning", "NodesCreated Provisioned"),
        ("configuring", "BackingNamespaceCreated ConfigOK CreatorMadeOwner"),
        ("configuring", "DefaultNamespaceAssigned DefaultNetworkPolicyCreated"),
        ("configuring", "DefaultProjectCreated SystemProjectCreated"),
        ("building", "Built"),
        ("creating", "Created"),
        ("deploying", "Deployed"),
        ("draining", "Drained"),
        ("downloading", "Downloaded"),
        ("deactivating", "Inactive"),
        ("initializing", "Initialized"),
        ("installing", "Installed"),
        ("pending", "Pending AbleToScale ScalingActive"),
        ("scheduling", "PodScheduled"),
        ("refreshed", "Refreshed"),
        ("registering", "Registered"),
        ("removing", "Removed"),
        ("saving", "Saved"),
        ("updating", "Updated Updating"),
        ("upgrading", "Upgraded"),
        ("waiting", "Waiting"),
        ("running", "RunCompleted"),
        ("processed", "Processed"),
    ];
    let progress_while_false =
        [("activating", "Completed"), ("unavailable", "Ready"), ("updating", "Available")];
    let shown = |kind: &str, status: &str| {
        let (state, transitioning, _) = summary(with(&[(kind, status, "")]));
        (state, transitioning)
    };
    for (table, [while_false, while_unknown]) in [
        (&progress_while_unknown[..], ["error", "yes"]),
        (&progress_while_false[..], ["yes", "error"]),
    ] {
        for (word, kinds) in table {
            for kind in kinds.split(' ') {
                assert_eq!(shown(kind, "False"), ((*word).to_owned(), while_false), "{kind}");
                assert_eq!(shown(kind, "Unknown"), ((*word).to_owned(), while_unknown), "{kind}");
                assert_eq!(shown(kind, "True"), ("active".to_owned(), "no"), "{kind}");
            }
        }
    }
    assert_eq!(shown("Progressing", "Unknown"), ("inactive".to_owned(), "error"));
    assert_eq!(shown("Progressing", "False"), ("error".to_owned(), "error"));
    let marks = "OutOfDisk MemoryPressure DiskPressure NetworkUnavailable KernelHasNoDeadlock \
                 Unschedulable ReplicaFailure Stalled";
    for kind in marks.split_whitespace() {
        assert_eq!(shown(kind, "True"), ("active".to_owned(), "error"), "{kind}");
    }
}
