//! Which names definitions get, and how their status reports it.

use serde_json::{Value, json};

use super::{create_definition, establish_definition, recorded_definition};
use crate::custom::names::{desired_status, is_protected};

fn condition(status: &Value, kind: &str) -> (String, String, String) {
    let list = status["conditions"].as_array().unwrap();
    let found = list.iter().find(|c| c["type"] == kind).unwrap_or(&Value::Null);
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn expected_condition(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn a_definition_without_conflicts_is_established() {
    let crd = create_definition(recorded_definition());
    let status = desired_status(&crd, &[&crd], 0);
    assert_eq!(
        condition(&status, "NamesAccepted"),
        expected_condition("True", "NoConflicts", "no conflicts found")
    );
    let message = "the initial names have been accepted";
    assert_eq!(
        condition(&status, "Established"),
        expected_condition("True", "InitialNamesAccepted", message)
    );
    assert_eq!(
        status["acceptedNames"],
        json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList",
            "shortNames": ["fo"], "categories": ["all"]})
    );
    assert_eq!(status["storedVersions"], json!(["v1"]));
}

#[test]
fn transition_times_change_only_with_the_status() {
    let mut crd = create_definition(recorded_definition());
    crd["status"] = desired_status(&crd, &[], 0);
    assert_eq!(desired_status(&crd, &[], 1_000), crd["status"]);
}

#[test]
fn names_in_use_are_not_accepted() {
    let first = establish_definition(recorded_definition());
    let mut second = recorded_definition();
    second["metadata"]["name"] = "bars.ex.org".into();
    second["spec"]["names"] = json!({"plural": "bars", "kind": "Foo", "singular": "foo"});
    let second = create_definition(second);
    let status = desired_status(&second, &[&first, &second], 0);
    let message = "\"FooList\" is already in use";
    assert_eq!(
        condition(&status, "NamesAccepted"),
        expected_condition("False", "ListKindConflict", message)
    );
    let message = "not all names are accepted";
    assert_eq!(
        condition(&status, "Established"),
        expected_condition("False", "NotAccepted", message)
    );
    assert_eq!(status["acceptedNames"], json!({"plural": "bars", "kind": ""}));
    // In another group the same names are free.
    let mut other_group = second.clone();
    other_group["spec"]["group"] = "other.org".into();
    let status = desired_status(&other_group, &[&first], 0);
    assert_eq!(condition(&status, "Established").0, "True");
}

#[test]
fn an_established_definition_remains_established_and_retains_its_names() {
    let mut first = establish_definition(recorded_definition());
    let mut second = recorded_definition();
    second["metadata"]["name"] = "bars.ex.org".into();
    second["spec"]["names"] = json!({"plural": "bars", "kind": "Bar", "shortNames": ["ba"]});
    let second = establish_definition(second);
    first["spec"]["names"]["shortNames"] = json!(["ba", "fo"]);
    let status = desired_status(&first, &[&second], 0);
    assert_eq!(condition(&status, "NamesAccepted").1, "ShortNamesConflict");
    assert_eq!(condition(&status, "Established").0, "True");
    assert_eq!(status["acceptedNames"]["shortNames"], json!(["fo"]));
}

#[test]
fn groups_of_the_kubernetes_project_are_protected() {
    assert!(is_protected("k8s.io") && is_protected("a.k8s.io") && is_protected("b.kubernetes.io"));
    assert!(!is_protected("ak8s.io") && !is_protected("k8s.io.example.com"));
    let mut crd = recorded_definition();
    crd["spec"]["group"] = "foo.k8s.io".into();
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "https://example.com/1"});
    let status = desired_status(&create_definition(crd), &[], 0);
    let found = condition(&status, "KubernetesAPIApprovalPolicyConformant");
    assert_eq!(
        found,
        expected_condition("True", "ApprovedAnnotation", "approved in https://example.com/1")
    );
}

#[test]
fn deletion_is_reported_as_a_condition() {
    let mut crd = establish_definition(recorded_definition());
    crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let status = desired_status(&crd, &[], 0);
    assert_eq!(condition(&status, "Terminating").1, "InstanceDeletionInProgress");
}
