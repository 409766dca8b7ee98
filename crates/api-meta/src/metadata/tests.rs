//! Object metadata: what may be written, what may change, in upstream's words.

use serde_json::json;

use super::*;

fn object(metadata: Value) -> Value {
    let mut object = json!({"metadata": {"name": "a", "namespace": "n"}});
    for (field, value) in metadata.as_object().expect("a map") {
        object["metadata"][field] = value.clone();
    }
    object
}

fn create(metadata: Value) -> Vec<Cause> {
    let object = object(metadata);
    let mut causes = validate_name(&object, NameRule::Dns1123Subdomain);
    causes.extend(validate(&object, true));
    causes
}

#[test]
fn an_object_needs_a_name_and_a_namespace() {
    assert_eq!(
        validate_name(&json!({}), NameRule::Dns1123Subdomain),
        [Cause::required("metadata.name", "name or generateName is required")]
    );
    assert_eq!(validate(&json!({}), true), [Cause::required("metadata.namespace", "")]);
    assert!(create(json!({})).is_empty());
}

#[test]
fn an_invalid_prefix_is_reported_before_the_generated_name() {
    let causes = create(json!({"generateName": "Bad_", "name": "Bad_n44w8"}));
    let fields: Vec<&str> = causes.iter().map(|c| c.field.as_str()).collect();
    assert_eq!(fields, ["metadata.generateName", "metadata.name"]);
}

#[test]
fn owners_are_checked_in_upstreams_words() {
    let causes = create(json!({"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"},
    ]}));
    assert_eq!(causes[0].field, "metadata.ownerReferences.uid");
    assert_eq!(causes[0].message, "Invalid value: \"\": must not be empty");
    let causes = create(json!({"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": true},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "2", "controller": true},
    ]}));
    assert_eq!(
        causes[0].message,
        "Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"a\",\"uid\":\
         \"1\",\
         \"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"b\",\"uid\":\
         \"2\",\"controller\":true}]: Only one reference can have Controller set to true. Found \
         \"true\" in references for ConfigMap/a and ConfigMap/b"
    );
    let causes = create(json!({"ownerReferences": [
        {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"},
    ]}));
    assert!(causes[0].message.ends_with("/v1, Kind=Event is disallowed from being an owner"));
}

#[test]
fn finalizers_are_qualified_and_exclusive() {
    let causes = create(json!({"finalizers": ["a b"]}));
    assert_eq!(causes[0].field, "metadata.finalizers");
    let object = json!({"metadata": {"finalizers": ["a.b/c", "orphan", "abc"]}});
    let causes = validate_finalizer_names(&object);
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, "metadata.finalizers[2]");
    assert_eq!(
        causes[0].message,
        "Invalid value: \"abc\": name is neither a standard finalizer name nor is it fully \
         qualified"
    );
    let causes = create(json!({"finalizers": ["orphan", "foregroundDeletion"]}));
    assert_eq!(
        causes[0].message,
        "Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
         foregroundDeletion cannot be both set"
    );
}

#[test]
fn a_terminating_object_takes_no_new_finalizers() {
    let old = object(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a/b", "ex.com/g"]);
    let causes = validate_update(&new, &old);
    assert_eq!(
        causes[0].message,
        "Forbidden: no new finalizers can be added if the object is being deleted, found new \
         finalizers []string{\"ex.com/g\"}"
    );
    new["metadata"]["finalizers"] = json!([]);
    assert!(validate_update(&new, &old).is_empty());
}

#[test]
fn identity_does_not_change() {
    let old = object(json!({"uid": "1"}));
    let new = object(json!({"uid": "2", "deletionGracePeriodSeconds": 7}));
    let causes = validate_update(&new, &old);
    assert_eq!(causes[0], Cause::invalid("metadata.uid", &json!("2"), "field is immutable"));
    assert_eq!(causes[1].message, "Invalid value: 7: field is immutable");
}

#[test]
fn metadata_of_the_wrong_type_is_reported_like_a_decoding_failure() {
    let problem = type_problem(&json!({"metadata": {"labels": {"a": 1}}})).expect("mistyped");
    assert_eq!(
        problem,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of \
         type string"
    );
    for bad in [
        json!({"metadata": []}),
        json!({"metadata": {"name": 1}}),
        json!({"metadata": {"finalizers": [{}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": 3}]}}),
        json!({"metadata": {"generation": 1.5}}),
        json!({"metadata": {"creationTimestamp": "yesterday"}}),
    ] {
        assert!(type_problem(&bad).is_some(), "{bad}");
    }
    assert_eq!(
        type_problem(&json!({"metadata": {"labels": null, "creationTimestamp": null}})),
        None
    );
}

#[test]
fn repeated_owners_are_dropped() {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"});
    let mut twice = object(json!({"ownerReferences": [owner, owner]}));
    assert_eq!(deduplicate_owners(&mut twice), ["1"]);
    assert_eq!(twice["metadata"]["ownerReferences"], json!([owner]));
}
