//! The index of owners alone: which work each change queues.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiserver::stored::{Stored, to_bytes};
use serde_json::{Value, json};
use storage::KeyValue;

use super::graph::{Graph, Work};

fn object(name: &str, metadata: Value) -> Stored {
    let mut object = json!({"metadata": {"name": name, "uid": format!("uid-{name}")}});
    for (field, value) in metadata.as_object().expect("a map") {
        object["metadata"][field] = value.clone();
    }
    let item = KeyValue {
        key: format!("/registry/things/{name}").into(),
        value: to_bytes(&object),
        create_revision: 1,
        mod_revision: 1,
    };
    Stored::decode(&item, &[]).expect("an object")
}

fn owned_by(owner: &str, block: bool) -> Value {
    json!({"ownerReferences": [{
        "apiVersion": "v1", "kind": "Thing", "name": owner, "uid": format!("uid-{owner}"),
        "blockOwnerDeletion": block,
    }]})
}

fn names(queue: &BTreeSet<Work>) -> Vec<String> {
    queue
        .iter()
        .map(|work| {
            let name = work.key().rsplit('/').next().unwrap_or_default().to_owned();
            match work {
                Work::Check(_) => name,
                Work::Orphan(_) => format!("orphan {name}"),
            }
        })
        .collect()
}

#[test]
fn an_object_without_owners_queues_no_work() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    graph.insert(&object("a", json!({})), &mut queue);
    assert!(queue.is_empty());
    graph.remove(&object("a", json!({})), &mut queue);
    assert!(queue.is_empty());
}

#[test]
fn the_deletion_of_an_owner_queues_its_dependents() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    graph.insert(&object("child", owned_by("parent", false)), &mut queue);
    assert_eq!(names(&queue), ["child"]);
    queue.clear();
    graph.remove(&object("parent", json!({})), &mut queue);
    assert_eq!(names(&queue), ["child"]);
}

#[test]
fn a_waiting_owner_is_checked_when_a_dependent_is_deleted_or_released() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    let waiting = json!({"deletionTimestamp": "2026-01-01T00:00:00Z",
                         "finalizers": ["foregroundDeletion"]});
    graph.insert(&object("first", owned_by("parent", true)), &mut queue);
    graph.insert(&object("second", owned_by("parent", false)), &mut queue);
    graph.insert(&object("parent", waiting), &mut queue);
    let blockers: Vec<String> =
        graph.blockers_of("uid-parent").iter().map(|key| key.to_string()).collect();
    assert_eq!(blockers, ["/registry/things/first"]);
    queue.clear();
    graph.remove(&object("first", owned_by("parent", true)), &mut queue);
    assert_eq!(names(&queue), ["parent"]);
    assert!(graph.blockers_of("uid-parent").is_empty());
    queue.clear();
    graph.insert(&object("second", json!({})), &mut queue);
    assert_eq!(names(&queue), ["parent"]);
}

#[test]
fn an_orphaning_owner_queues_orphan_work() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    let orphaning = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"]});
    graph.insert(&object("parent", orphaning), &mut queue);
    assert_eq!(names(&queue), ["orphan parent"]);
}

#[test]
fn after_a_reset_all_dependents_are_checked_again() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    graph.insert(&object("remaining", owned_by("parent", false)), &mut queue);
    graph.insert(&object("removed", owned_by("parent", false)), &mut queue);
    queue.clear();
    let remaining = Arc::new(object("remaining", owned_by("parent", false)));
    graph.reset("/registry/things/", &[remaining], &mut queue);
    assert_eq!(names(&queue), ["remaining"]);
    assert_eq!(graph.dependents_of("uid-parent").count(), 1);
}

#[test]
fn a_cycle_of_waiting_objects_is_detected() {
    let (mut graph, mut queue) = (Graph::default(), BTreeSet::new());
    let mut waiting = owned_by("b", true);
    waiting["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    waiting["finalizers"] = json!(["foregroundDeletion"]);
    graph.insert(&object("a", waiting), &mut queue);
    graph.insert(&object("b", owned_by("a", true)), &mut queue);
    assert!(graph.has_waiting_dependent("uid-b"));
    assert!(!graph.has_waiting_dependent("uid-a"));
}
