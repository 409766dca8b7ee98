//! Rules at admission, identities and their rights, without a server.

use api_management::{Cluster, PolicyRule, Project, keys};
use serde_json::json;

use crate::access::cluster_group;
use crate::controller::{ControllerIdentity, GROUP_CONTROLLERS, ManagementSpec};
use crate::kind::{KindRules, Review, ReviewOperation};
use crate::rbac::{self, ours};
use crate::runtime::identities;
use crate::{Feature, rbac::controller_objects};

fn review<'a>(
    groups: &'a [String],
    object: &'a serde_json::Value,
    old: &'a serde_json::Value,
) -> Review<'a> {
    Review {
        operation: ReviewOperation::Update,
        user: "system:drover:controller:x",
        groups,
        namespace: "",
        name: "c-1",
        dry_run: false,
        object: Some(object),
        old: Some(old),
    }
}

#[tokio::test]
async fn a_controller_may_take_off_finalizers_but_not_change_spec() {
    let rules = KindRules::of::<Cluster>();
    let old = json!({"metadata": {"name": "c-1", "finalizers": ["a"], "resourceVersion": "1"},
        "spec": {"displayName": "x"}, "status": {}});
    let mut finalized = old.clone();
    finalized["metadata"]["finalizers"] = json!([]);
    finalized["metadata"]["resourceVersion"] = json!("2");
    let mut changed = old.clone();
    changed["spec"]["displayName"] = json!("y");
    let controllers = [GROUP_CONTROLLERS.to_owned()];
    assert!(rules.admit(&review(&controllers, &finalized, &old)).await.is_ok());
    let refused = rules.admit(&review(&controllers, &changed, &old)).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(rules.admit(&review(&[], &changed, &old)).await.is_ok());
}

#[test]
fn the_creator_is_the_asker_and_stays() {
    let rules = KindRules::of::<Cluster>();
    let mut object = json!({"metadata": {"annotations": {keys::CREATOR_ID: "u-forged"}}});
    rules.prepare(ReviewOperation::Create, "u-real", &mut object, None);
    assert_eq!(object["metadata"]["annotations"][keys::CREATOR_ID], "u-real");
    let mut update = json!({"metadata": {}});
    rules.prepare(ReviewOperation::Update, "u-other", &mut update, Some(&object));
    assert_eq!(update["metadata"]["annotations"][keys::CREATOR_ID], "u-real");
    let mut system = json!({"metadata": {"annotations": {keys::CREATOR_ID: "u-real"}}});
    rules.prepare(ReviewOperation::Create, "system:drover:controller:x", &mut system, None);
    assert_eq!(system["metadata"]["annotations"][keys::CREATOR_ID], "u-real");
}

#[test]
fn finalizers_are_put_on_at_creation_only() {
    let rules = KindRules::of::<Cluster>().finalizers(&["drover.io/x"]);
    let mut object = json!({"metadata": {"name": "c-1"}});
    rules.prepare(ReviewOperation::Create, "u-1", &mut object, None);
    assert_eq!(object["metadata"]["finalizers"], json!(["drover.io/x"]));
    let mut update = json!({"metadata": {"name": "c-1", "finalizers": []}});
    rules.prepare(ReviewOperation::Update, "u-1", &mut update, Some(&object));
    assert_eq!(update["metadata"]["finalizers"], json!([]));
}

#[test]
fn an_object_of_the_wrong_shape_is_a_violation_not_a_panic() {
    let rules = KindRules::of::<Project>();
    let causes = rules.validate(&json!({"spec": {"displayName": 7}}), None);
    assert_eq!(causes.len(), 1);
}

#[test]
fn an_identity_named_twice_gets_the_rules_of_both_once() {
    let spec = |rules: Vec<PolicyRule>| {
        let identity = ControllerIdentity::new("x", rules);
        ManagementSpec::new(identity, |_, _| async {})
    };
    let read = ours(&["clusters"], &["get"]);
    let write = ours(&["clusters/status"], &["patch"]);
    let features = [
        Feature::new("a").management(spec(vec![read.clone()])),
        Feature::new("b").management(spec(vec![read.clone(), write.clone()])),
    ];
    let all = identities(&features);
    let merged = all.iter().find(|identity| identity.name == "x").unwrap();
    assert_eq!(merged.rules, [read, write]);
    let (role, binding) = controller_objects(merged);
    assert_eq!(role.metadata.name.as_deref(), Some("system:drover:controller:x"));
    assert_eq!(binding.subjects.unwrap()[0].name, "system:drover:controller:x");
}

#[test]
fn the_watching_identities_can_write_nothing() {
    let rules = [rbac::reflector_identity().rules, rbac::feed_identity().rules].concat();
    let verbs = rules.iter().flat_map(|rule| &rule.verbs);
    assert!(verbs.into_iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str())));
}

#[test]
fn role_groups_carry_the_cluster_and_the_role() {
    assert_eq!(cluster_group("c-1", "cluster-owner"), "drover:cluster:c-1:cluster-owner");
}
