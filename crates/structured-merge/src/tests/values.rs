//! Validation, ownership, comparison and merging of values.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{schema, set};
use crate::{Comparison, Duplicates, Typed};

fn problems(value: &Value) -> String {
    let schema = schema();
    let refused = Typed::new(Cow::Borrowed(value), &schema, Duplicates::Refuse);
    refused.map(|_| String::new()).unwrap_or_else(|problems| problems.to_string())
}

fn owned(value: &Value) -> Value {
    let schema = schema();
    Typed::unchecked(Cow::Borrowed(value), &schema).field_set().to_value()
}

fn merged(live: &Value, config: &Value) -> Value {
    let schema = schema();
    let typed = |value| Typed::unchecked(Cow::Borrowed(value), &schema);
    typed(live).merge(&typed(config)).unwrap().value.into_owned()
}

fn compared(old: &Value, new: &Value) -> Comparison {
    let schema = schema();
    let typed = |value| Typed::unchecked(Cow::Borrowed(value), &schema);
    typed(old).compare(&typed(new)).unwrap()
}

#[test]
fn invalid_values_have_the_messages_of_kube_apiserver() {
    for (value, text) in [
        (json!({"foo": 1}), ".foo: field not declared in schema"),
        (json!({"count": "x"}), ".count: expected numeric (int or float), got string"),
        (json!({"text": 1}), ".text: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"flag": "yes"}), ".flag: expected boolean, got &{yes}"),
        (json!({"pair": [1, {"a": null}]}), ".pair: expected map, got &{[1 map[a:<nil>]]}"),
        (json!({"set": "a"}), ".set: expected list, got &{a}"),
        (json!({"set": ["a", "a"]}), ".set: duplicate entries for key [=\"a\"]"),
        (
            json!({"items": [{"name": "a"}, {"name": "a"}]}),
            ".items: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            json!({"items": [{"value": "x"}]}),
            ".items: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"items": [null]}),
            ".items: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"set": [["a"]]}),
            ".set: element 0: not supported: associative list with lists as elements",
        ),
        (
            json!({"items": [{"name": "a", "value": 1}], "count": true}),
            "errors:\n  .count: expected numeric (int or float), got bool\n  \
             .items[name=\"a\"].value: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ] {
        assert_eq!(problems(&value), text, "{value}");
    }
    let schema = schema();
    let twice = json!({"set": ["a", "a"]});
    Typed::new(Cow::Owned(twice), &schema, Duplicates::Allow).unwrap();
}

#[test]
fn leaves_items_and_entries_of_maps_are_owned_and_named_fields_are_not() {
    let value = json!({
        "text": "x", "granular": {"a": "1"}, "whole": {"a": "1"}, "pair": {"a": "1"},
        "list": [{"name": "n"}], "set": ["a", "b"], "numbers": [10, 9],
        "items": [{"name": "n", "value": "v"}], "ports": [{"port": 80}], "free": {"a": {"b": [1]}},
    });
    let expected = json!({
        "f:text": {}, "f:granular": {"f:a": {}}, "f:whole": {}, "f:pair": {"f:a": {}},
        "f:list": {}, "f:set": {"v:\"a\"": {}, "v:\"b\"": {}}, "f:numbers": {"v:10": {}, "v:9": {}},
        "f:items": {"k:{\"name\":\"n\"}": {".": {}, "f:name": {}, "f:value": {}}},
        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
        "f:free": {"f:a": {".": {}, "f:b": {}}},
    });
    assert_eq!(owned(&value), expected);
    assert_eq!(
        owned(&json!({"granular": {}, "pair": null})),
        json!({"f:granular": {}, "f:pair": {}})
    );
    assert_eq!(
        owned(&json!({"set": ["a", "a", "b"]})),
        json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})
    );
}

#[test]
fn a_comparison_separates_added_changed_and_removed_fields() {
    let old =
        json!({"text": "x", "granular": {"a": "1", "b": "1"}, "set": ["a"], "whole": {"a": "1"}});
    let new = json!({"granular": {"a": "2", "c": "1"}, "set": ["b"], "whole": {"b": 1}, "pair": {"a": "1"}});
    let found = compared(&old, &new);
    let added = json!({
        "f:granular": {"f:c": {}}, "f:set": {"v:\"b\"": {}}, "f:pair": {".": {}, "f:a": {}},
    });
    assert_eq!(found.added, set(&added));
    assert_eq!(found.modified, set(&json!({"f:granular": {"f:a": {}}, "f:whole": {}})));
    let removed = json!({"f:text": {}, "f:granular": {"f:b": {}}, "f:set": {"v:\"a\"": {}}});
    assert_eq!(found.removed, set(&removed));
    assert!(compared(&json!({"count": 1}), &json!({"count": 1.0})).is_same());
}

#[test]
fn order_alone_is_no_change_where_items_have_identities() {
    let old = json!({"set": ["a", "b"], "items": [{"name": "x"}, {"name": "y"}]});
    let new = json!({"set": ["b", "a"], "items": [{"name": "y"}, {"name": "x"}]});
    assert!(compared(&old, &new).is_same());
    let atomic =
        compared(&json!({"list": [{"name": "x"}, {}]}), &json!({"list": [{}, {"name": "x"}]}));
    assert_eq!(atomic.modified, set(&json!({"f:list": {}})));
}

#[test]
fn duplicate_items_are_compared_as_one_value() {
    let single = json!({"items": [{"name": "a", "value": "1"}]});
    let double = json!({"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]});
    let item = "k:{\"name\":\"a\"}";
    let doubled = compared(&single, &double);
    assert_eq!(doubled.added, set(&json!({"f:items": {item: {}}})));
    let below = json!({"f:items": {item: {".": {}, "f:name": {}, "f:value": {}}}});
    assert_eq!(doubled.removed, set(&below));
    let halved = compared(&double, &single);
    assert_eq!(halved.removed, set(&json!({"f:items": {item: {}}})));
    assert_eq!(halved.added, set(&below));
}

#[test]
fn merging_sets_the_values_of_the_configuration() {
    let live =
        json!({"text": "x", "granular": {"a": "1"}, "whole": {"a": "1"}, "list": [{"name": "l"}]});
    let config = json!({"granular": {"b": "2"}, "whole": {"b": 2}, "list": []});
    let expected = json!({
        "text": "x", "granular": {"a": "1", "b": "2"}, "whole": {"b": 2}, "list": [],
    });
    assert_eq!(merged(&live, &config), expected);
}

#[test]
fn merged_lists_have_the_order_of_the_configuration_and_retain_other_items() {
    for (live, config, expected) in [
        (vec!["a", "b"], vec!["c"], vec!["a", "b", "c"]),
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec!["a", "x", "b"], vec!["a", "b"], vec!["a", "x", "b"]),
        (vec!["b", "a"], vec!["a", "b"], vec!["a", "b"]),
        (vec!["a"], vec!["b", "a", "c"], vec!["b", "a", "c"]),
        (vec![], vec!["b"], vec!["b"]),
    ] {
        assert_eq!(
            merged(&json!({"set": live}), &json!({"set": config})),
            json!({"set": expected}),
            "{live:?} {config:?}"
        );
    }
}

#[test]
fn atomic_parts_are_found_at_every_depth() {
    let schema = schema();
    let of = |value| Typed::unchecked(Cow::Owned(value), &schema).atomics();
    let granular = json!({"text": "a", "granular": {"a": "b"}, "set": ["x"], "pair": {"a": "b"},
        "items": [{"name": "a", "labels": {"x": "y"}}]});
    assert_eq!(of(granular), Vec::<String>::new());
    let whole = json!({"whole": {"a": "b"}, "list": [{"name": "a"}], "free": {"any": [1]}});
    assert_eq!(of(whole), [".list", ".whole"]);
}
