//! Which kinds and types the feature has, without a server.

use std::collections::BTreeSet;

use api_management::{has_struct, types};

use super::{kinds, views};

#[test]
fn every_stored_kind_has_rules_here_or_a_struct() {
    let kinds: BTreeSet<&str> = kinds().iter().map(|rules| rules.kind).collect();
    assert!(kinds.iter().all(|kind| !has_struct(kind)));
    for crd in api_management::crds() {
        let kind = crd.spec.names.kind;
        assert!(has_struct(&kind) || kinds.contains(kind.as_str()), "{kind}");
    }
}

#[test]
fn a_condition_says_of_objects_that_are_only_kept_that_they_are() {
    for rules in kinds() {
        let mut object = serde_json::json!({"metadata": {"name": "x"}});
        rules.prepare(feature_kit::ReviewOperation::Create, "u-alice", &mut object, None);
        let kept = types::tables_of_kind(rules.kind).iter().any(|table| table.is_unimplemented);
        let said =
            object["status"]["conditions"][0]["type"] == api_management::unimplemented::EFFECTIVE;
        assert_eq!(said, kept, "{}", rules.kind);
        let once = object.clone();
        rules.prepare(feature_kit::ReviewOperation::Update, "u-alice", &mut object, Some(&once));
        assert_eq!(object, once);
    }
}

#[test]
fn every_type_has_one_view() {
    let views = views();
    let ids: BTreeSet<&str> = views.iter().map(|view| view.id.as_str()).collect();
    assert_eq!(ids.len(), views.len());
}
