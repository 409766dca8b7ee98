//! Laws that hold for all objects and sets.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Single, schema};
use crate::{FieldSet, Managers, Path, PathElement, Schema, Typed, Updater};

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c]".prop_map(PathElement::Field),
        (0..3i64, prop::option::of("[x-y]")).prop_map(|(port, name)| {
            let name = name.map(|name| ("name".to_owned(), json!(name)));
            PathElement::key(name.into_iter().chain([("port".to_owned(), json!(port))]))
        }),
        (-2..12i64).prop_map(|value| PathElement::Value(json!(value))),
        "[a<&\"\\\\é\n]{0,2}".prop_map(|text| PathElement::Value(json!(text))),
        (0..3i64).prop_map(PathElement::Index),
    ]
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(element(), 1..4).prop_map(Path);
    prop::collection::vec(path, 0..8).prop_map(FieldSet::from_iter)
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", "[12]", 1..3).prop_map(|map| json!(map))
}

fn some(
    field: &'static str,
    value: BoxedStrategy<Value>,
) -> BoxedStrategy<Option<(String, Value)>> {
    prop::option::of(value.prop_map(move |value| (field.to_owned(), value))).boxed()
}

/// Objects that fit the test schema, without duplicate items. No part of them is empty: a part from
/// which everything is pruned becomes null, which differs from the empty list or map that an
/// applier may state.
fn object() -> impl Strategy<Value = Value> {
    let item = ("[a-d]", prop::option::of("[12]"), prop::option::of(texts()));
    let items = prop::collection::vec(item, 1..4).prop_map(|items| {
        let mut seen = std::collections::BTreeSet::new();
        let items = items.into_iter().filter(|(name, ..)| seen.insert(name.clone()));
        let items = items.map(|(name, value, labels)| {
            let mut item = json!({"name": name});
            if let Some(value) = value {
                item["value"] = value.into();
            }
            if let Some(labels) = labels {
                item["labels"] = labels;
            }
            item
        });
        Value::Array(items.collect())
    });
    let items = items.boxed();
    let set = prop::sample::subsequence(vec!["p", "q", "r", "s"], 1..4).prop_shuffle();
    let whole = prop::option::of("[12]").prop_map(|a| json!({"a": a}));
    let fields = vec![
        some("text", "[xy]".prop_map(Value::from).boxed()),
        some("granular", texts().boxed()),
        some("whole", whole.boxed()),
        some("set", set.prop_map(|set| json!(set)).boxed()),
        some("items", items.clone()),
        some("list", items),
        some("free", texts().prop_map(|texts| json!({"deep": texts})).boxed()),
    ];
    fields.prop_map(|fields| {
        let kind = ("kind".to_owned(), json!("K"));
        Value::Object(fields.into_iter().flatten().chain([kind]).collect::<Map<_, _>>())
    })
}

fn typed<'a>(value: &Value, schema: &'a Schema) -> Typed<'a> {
    Typed::unchecked(Cow::Owned(value.clone()), schema)
}

proptest! {
    #[test]
    fn sets_survive_their_encoding(set in field_set()) {
        prop_assert_eq!(&FieldSet::from_json(&set.to_json()).unwrap(), &set);
        prop_assert_eq!(&FieldSet::from_value(&set.to_value()).unwrap(), &set);
        prop_assert_eq!(&set.paths().into_iter().collect::<FieldSet>(), &set);
        prop_assert_eq!(set.paths().len(), set.len());
    }

    #[test]
    fn any_text_is_decoded_or_refused(text in "\\PC{0,40}") {
        let _ = PathElement::decode(&text);
        let _ = FieldSet::from_json(&text);
    }

    #[test]
    fn sets_obey_the_laws_of_sets(a in field_set(), b in field_set(), c in field_set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(&a.union(&a), &a);
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.recursive_difference(&b).difference(&a.difference(&b)).is_empty());
    }

    #[test]
    fn nothing_differs_from_itself(value in object()) {
        let schema = schema();
        let value = typed(&value, &schema);
        prop_assert!(value.compare(&value).unwrap().is_same());
    }

    #[test]
    fn what_is_added_one_way_is_removed_the_other(old in object(), new in object()) {
        let schema = schema();
        let (old, new) = (typed(&old, &schema), typed(&new, &schema));
        let (forth, back) = (old.compare(&new).unwrap(), new.compare(&old).unwrap());
        prop_assert_eq!(forth.added, back.removed);
        prop_assert_eq!(forth.modified, back.modified);
        prop_assert_eq!(forth.removed, back.added);
    }

    #[test]
    fn merging_twice_is_merging_once(live in object(), config in object()) {
        let schema = schema();
        let (live, config) = (typed(&live, &schema), typed(&config, &schema));
        let once = live.merge(&config).unwrap();
        prop_assert!(once.compare(&once.merge(&config).unwrap()).unwrap().is_same());
    }

    #[test]
    fn a_forced_configuration_is_owned_and_applying_it_again_changes_nothing(
        first in object(), stated in object(), config in object(),
    ) {
        let schema = schema();
        let updater = Updater { versions: &Single };
        let empty = typed(&json!({"kind": "K"}), &schema);
        let (first, stated) = (typed(&first, &schema), typed(&stated, &schema));
        let config = typed(&config, &schema);
        let managers = updater.update(&empty, &stated, "v1", Managers::new(), "other").unwrap();
        let apply = |live: &Typed<'_>, config: &Typed<'_>, managers: Managers| {
            let live = typed(&live.value, &schema);
            let config = typed(&config.value, &schema);
            let (new, managers) =
                updater.apply(&live, &config, "v1", managers, "me", true).unwrap();
            (new.is_some(), new.unwrap_or(live).value.into_owned(), managers)
        };
        let (_, live, managers) = apply(&stated, &first, managers);
        let live = typed(&live, &schema);
        let (_, live, managers) = apply(&live, &config, managers);
        let owned = managers.get("me").map(|own| own.set.clone()).unwrap_or_default();
        prop_assert_eq!(&owned, &config.field_set());
        let live = typed(&live, &schema);
        let (changed, again, after) = apply(&live, &config, managers.clone());
        prop_assert!(!changed, "{:?} became {:?}", live.value, again);
        prop_assert_eq!(managers, after);
    }
}
