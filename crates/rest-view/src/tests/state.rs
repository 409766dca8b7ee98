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
    for (conditions, wanted) in [
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
        assert_eq!(summary(with(&conditions)), wanted, "{conditions:?}");
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
