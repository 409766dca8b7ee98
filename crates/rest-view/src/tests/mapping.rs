//! Object to view and back.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::world::{depot, stored_widget, widget};
use crate::input::{self, WriteOperation};
use crate::mapping::{merge, to_stored, to_view};
use crate::{ApiVersion, Field, FieldType, Registry, StructType};

fn registry() -> Registry {
    Registry::new([ApiVersion::new("example.io", "v3", "/v3")], [widget()])
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

#[test]
fn a_stored_object_is_flattened_and_its_bookkeeping_dropped() {
    let spec = json!({
        "displayName": "One", "depotName": "d-1", "color": "red", "secret": "s", "pin": "1234",
        "undeclared": true,
    });
    let view = to_view(&widget(), &registry(), &stored_widget("d-1", "w-1", spec), false);
    insta::assert_json_snapshot!(view);
    for gone in ["finalizers", "resourceVersion", "ownerReferences", "managedFields", "metadata"] {
        assert!(!view.contains_key(gone), "{gone} is shown");
    }
}

#[test]
fn a_secret_is_shown_only_when_revealed_and_a_password_never() {
    let stored = stored_widget("d-1", "w-1", json!({"secret": "s", "pin": "1234"}));
    let listed = to_view(&widget(), &registry(), &stored, false);
    assert!(!listed.contains_key("secret") && !listed.contains_key("pin"));
    let created = to_view(&widget(), &registry(), &stored, true);
    assert_eq!(created["secret"], "s");
    assert!(!created.contains_key("pin"));
}

#[test]
fn references_are_null_and_defaults_present_when_nothing_is_stored() {
    let view = to_view(&widget(), &registry(), &json!({"metadata": {"name": "w"}}), false);
    assert_eq!(view["ownerId"], Value::Null);
    assert_eq!(view["namespaceId"], Value::Null);
    assert_eq!(view["enabled"], true);
    assert_eq!(view["weight"], 0);
    assert!(!view.contains_key("color"));
}

#[test]
fn absent_fields_of_embedded_types_are_shown_by_their_defaults() {
    let source = StructType::writable(
        "source",
        vec![
            Field::boolean("readOnly"),
            Field::int("partition"),
            Field::boolean("optional").without_default(),
            Field::new("password", FieldType::Password),
        ],
    );
    let kind = widget()
        .spec([
            Field::of("source", "source").create_update(),
            Field::array("sources", FieldType::of("source")).create_update(),
        ])
        .types([source]);
    let registry = Registry::new([ApiVersion::new("example.io", "v3", "/v3")], [kind.clone()]);
    let shown = |spec| to_view(&kind, &registry, &stored_widget("d-1", "w-1", spec), false);
    // Kubernetes leaves `false` and 0 out, whatever was sent.
    let view = shown(json!({"source": {}, "sources": [{"readOnly": true}, {"optional": false}]}));
    assert_eq!(view["source"], json!({"readOnly": false, "partition": 0}));
    assert_eq!(
        view["sources"],
        json!([{"readOnly": true, "partition": 0},
            {"readOnly": false, "partition": 0, "optional": false}])
    );
    assert!(!shown(json!({})).contains_key("source"), "what is not there has no fields");
}

#[test]
fn a_new_object_has_its_creator_and_the_namespace_of_its_parent() {
    let input = object(json!({"name": "One", "depotId": "x:d-1", "note": "hi",
        "annotations": {"field.cattle.io/creatorId": "u-mallory", "a": "b"}}));
    let stored = to_stored(&widget(), &input, "u-alice");
    insta::assert_json_snapshot!(stored);
}

#[test]
fn an_update_merges_embedded_types_and_replaces_maps_and_lists() {
    let mut stored = stored_widget(
        "d-1",
        "w-1",
        json!({
            "displayName": "One", "color": "red",
            "dimensions": {"height": 1, "width": 2, "depth": {"inner": 3, "outer": 4}},
            "parts": {"a": 1, "b": 2}, "tags": ["x", "y"],
        }),
    );
    let input = object(json!({
        "color": null, "dimensions": {"width": 9, "depth": {"inner": 8}}, "parts": {"b": 3},
        "tags": ["z"],
    }));
    merge(&widget(), &registry(), &mut stored, &input, false);
    assert_eq!(
        stored["spec"],
        json!({
            "displayName": "One",
            "dimensions": {"height": 1, "width": 9, "depth": {"inner": 8, "outer": 4}},
            "parts": {"b": 3}, "tags": ["z"],
        })
    );
    assert_eq!(stored["metadata"]["resourceVersion"], "7");
    assert_eq!(stored["status"]["count"], 2);
}

#[test]
fn a_replace_removes_what_was_left_out_but_never_what_cannot_be_updated() {
    let mut stored = stored_widget(
        "d-1",
        "w-1",
        json!({
            "displayName": "One", "depotName": "d-1", "color": "red", "tags": ["x"],
        }),
    );
    merge(&widget(), &registry(), &mut stored, &object(json!({"name": "Two"})), true);
    assert_eq!(
        stored["spec"],
        json!({
            "displayName": "Two", "depotName": "d-1", "size": "small", "enabled": true, "weight": 0,
        })
    );
}

#[test]
fn a_password_that_is_not_sent_again_is_unchanged_and_none_moves_to_another_host() {
    let password = || Field::new("password", FieldType::Password).create_update();
    let host = vec![Field::string("url"), password(), Field::array("inner", FieldType::of("host"))];
    let resource = crate::KubeResource::new("example.io", "v3", "safes", "Safe", false);
    let fields =
        [Field::array("hosts", FieldType::of("host")), Field::of("one", "host"), password()];
    let safe = crate::Descriptor::new("safe", "safes", resource)
        .spec(fields.map(Field::create_update))
        .types([crate::StructType::writable("host", host)]);
    let registry = Registry::new([ApiVersion::new("example.io", "v3", "/v3")], [safe.clone()]);
    let spec = json!({
        "password": "p0", "one": {"url": "o", "password": "p1"},
        "hosts": [{"url": "a", "password": "pa"}, {"url": "b", "password": "pb"}],
    });
    let merged = |input: Value, replace: bool| {
        let mut stored = json!({ "spec": spec.clone() });
        merge(&safe, &registry, &mut stored, &object(input), replace);
        stored["spec"].take()
    };
    let sent = json!({
        "one": {"url": "other", "password": ""}, "password": "",
        "hosts": [{"url": "b"}, {"url": "c"}, {"url": "a", "password": "new"}],
    });
    for replace in [false, true] {
        let expected = json!({
            "password": "p0", "one": {"url": "other", "password": "p1"},
            "hosts": [{"url": "b", "password": "pb"}, {"url": "c"}, {"url": "a", "password": "new"}],
        });
        assert_eq!(merged(sent.clone(), replace), expected, "{replace}");
    }
    let removed = merged(json!({"password": null, "one": {"password": null}}), false);
    assert_eq!((&removed["password"], &removed["one"]), (&Value::Null, &json!({"url": "o"})));
}

#[test]
fn labels_and_annotations_are_replaced_except_the_protected_ones() {
    let mut stored = stored_widget("d-1", "w-1", json!({}));
    stored["metadata"]["labels"] = json!({"region": "north", "cattle.io/creator": "norman"});
    let input = object(json!({
        "labels": {"zone": "a", "cattle.io/creator": "mallory"},
        "annotations": {"field.cattle.io/creatorId": "u-mallory", "field.cattle.io/other": "1"},
    }));
    merge(&widget(), &registry(), &mut stored, &input, false);
    assert_eq!(stored["metadata"]["labels"], json!({"zone": "a", "cattle.io/creator": "norman"}));
    assert_eq!(
        stored["metadata"]["annotations"],
        json!({
            "field.cattle.io/creatorId": "u-bob", "field.cattle.io/note": "hello",
            "field.cattle.io/other": "1",
        })
    );
}

#[test]
fn a_field_may_live_in_an_annotation_as_text_or_json() {
    let limits = Field::map("limits", FieldType::String).create_update();
    let kind = depot().root([
        Field::string("description").create_update().annotation("field.cattle.io/description"),
        limits.annotation_json("field.cattle.io/limits"),
    ]);
    let input = object(json!({"name": "x", "description": "cold", "limits": {"cpu": "2"}}));
    let mut stored = to_stored(&kind, &input, "u-alice");
    let annotations = &stored["metadata"]["annotations"];
    assert_eq!(annotations["field.cattle.io/description"], "cold");
    assert_eq!(annotations["field.cattle.io/limits"], "{\"cpu\":\"2\"}");
    let view = to_view(&kind, &registry(), &stored, false);
    assert_eq!((&view["description"], &view["limits"]), (&json!("cold"), &json!({"cpu": "2"})));
    assert_eq!(view["annotations"], json!({}), "what is a field is not shown twice");
    merge(&kind, &registry(), &mut stored, &object(json!({"limits": null})), false);
    assert_eq!(stored["metadata"]["annotations"].get("field.cattle.io/limits"), None);
    stored["metadata"]["annotations"]["field.cattle.io/limits"] = "{".into();
    assert!(!to_view(&kind, &registry(), &stored, false).contains_key("limits"));
}

fn widget_input() -> impl Strategy<Value = Value> {
    let text = "[a-z][a-z0-9 ]{0,8}[a-z]";
    let dimensions = (any::<i32>(), any::<i32>(), any::<i32>()).prop_map(
        |(height, width, inner)| {
            json!({"height": height, "width": width, "depth": {"inner": inner}})
        },
    );
    let parts = prop::collection::btree_map("[a-z]{1,4}", any::<i32>(), 0..4);
    let tags = prop::collection::vec(text, 0..4);
    let one = (text, prop::option::of(text), prop::option::of(dimensions), parts, tags);
    let two = (any::<bool>(), 0..=100i32, prop::option::of(text), "[a-z]{1,8}");
    (one, two).prop_map(
        |((name, color, dimensions, parts, tags), (enabled, weight, note, depot))| {
            let mut input = json!({
                "name": name, "depotId": depot, "parts": parts, "tags": tags, "enabled": enabled,
                "weight": weight, "size": "large",
            });
            let optional = [
                ("color", color.map(Value::from)),
                ("dimensions", dimensions),
                ("note", note.map(Value::from)),
            ];
            for (field, value) in optional {
                if let Some(value) = value {
                    input[field] = value;
                }
            }
            input
        },
    )
}

proptest! {
    #[test]
    fn written_input_is_read_back(input in widget_input()) {
        let (descriptor, registry) = (widget(), registry());
        let sent = object(input.clone());
        let checked = input::check(&descriptor, &registry, &sent, WriteOperation::Create).unwrap();
        let stored = to_stored(&descriptor, &checked, "u-alice");
        let view = to_view(&descriptor, &registry, &stored, false);
        for (name, value) in object(input) {
            prop_assert_eq!(&view[&name], &value, "{}", name);
        }
    }

    #[test]
    fn sending_the_view_back_changes_neither_spec_nor_metadata(input in widget_input()) {
        let (descriptor, registry) = (widget(), registry());
        let checked =
            input::check(&descriptor, &registry, &object(input), WriteOperation::Create).unwrap();
        let stored = to_stored(&descriptor, &checked, "u-alice");
        let view = to_view(&descriptor, &registry, &stored, false);
        let sent = input::check(&descriptor, &registry, &view, WriteOperation::Update).unwrap();
        let mut merged = stored.clone();
        merge(&descriptor, &registry, &mut merged, &sent, false);
        prop_assert_eq!(&merged["spec"], &stored["spec"]);
        prop_assert_eq!(&merged["metadata"], &stored["metadata"]);
    }
}
