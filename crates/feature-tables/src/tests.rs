//! Which kinds and types the feature has, without a server.

use std::collections::BTreeSet;

use api_management::{has_struct, types};

use super::{KINDS_OF_OTHER_FEATURES, kinds, views};

#[test]
fn every_kind_without_a_struct_has_rules_here_or_in_another_feature() {
    let kinds: BTreeSet<&str> = kinds().iter().map(|rules| rules.kind).collect();
    for crd in api_management::crds() {
        let kind = crd.spec.names.kind;
        let is_other = has_struct(&kind) || KINDS_OF_OTHER_FEATURES.contains(&kind.as_str());
        assert_ne!(is_other, kinds.contains(kind.as_str()), "{kind}");
    }
}

#[test]
fn unimplemented_objects_report_that_nothing_acts_on_them() {
    for rules in kinds() {
        let mut object = serde_json::json!({"metadata": {"name": "x"}});
        rules.prepare(feature_kit::ReviewOperation::Create, "u-alice", &mut object, None);
        let is_unimplemented =
            types::tables_of_kind(rules.kind).iter().any(|table| table.is_unimplemented);
        let is_reported =
            object["status"]["conditions"][0]["type"] == api_management::unimplemented::EFFECTIVE;
        assert_eq!(is_reported, is_unimplemented, "{}", rules.kind);
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
