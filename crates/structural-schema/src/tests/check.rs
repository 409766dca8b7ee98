//! Schemas that are not structural, and the path of each refusal.

use serde_json::{Value, json};

use super::recorded;
use crate::check;

fn messages(schema: &Value) -> Vec<String> {
    check(schema, "s").iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// A root with one property `foo`.
fn root(foo: Value) -> Value {
    json!({"type": "object", "properties": {"foo": foo}})
}

#[test]
fn the_recorded_schema_is_structural() {
    assert_eq!(messages(&recorded()), [""; 0]);
}

/// Each schema has one fault, which is reported at a path below the root with a text.
fn expect(cases: &[(Value, &str, &str)]) {
    for (schema, field, message) in cases {
        let (field, message) = (format!("s{field}"), (*message).to_owned());
        let reported: Vec<_> =
            check(schema, "s").into_iter().map(|cause| (cause.field, cause.message)).collect();
        assert_eq!(reported, [(field, message)], "{schema}");
    }
}

#[test]
fn types_must_be_given_everywhere() {
    let object = "Required value: must not be empty for specified object fields";
    let items = "Required value: must not be empty for specified array items";
    let null = "Forbidden: type cannot be set to null, use nullable as an alternative";
    expect(&[
        (root(json!({})), ".properties[foo].type", object),
        (json!({}), ".type", "Required value: must not be empty at the root"),
        (
            json!({"type": "string"}),
            ".type",
            "Invalid value: \"string\": must be object at the root",
        ),
        (
            root(json!({"type": "array"})),
            ".properties[foo].items",
            "Required value: must be specified",
        ),
        (root(json!({"type": "array", "items": {}})), ".properties[foo].items.type", items),
        (root(json!({"type": "null"})), ".properties[foo].type", null),
    ]);
}

#[test]
fn keywords_without_a_structural_meaning_are_refused() {
    let unique = "Forbidden: uniqueItems cannot be set to true since the runtime complexity \
                  becomes quadratic";
    let exclusive = "Forbidden: additionalProperties and properties are mutual exclusive";
    let keys = "Required value: must not be empty if x-kubernetes-list-type is map";
    let default = "Invalid value: \"integer\":  in body must be of type string: \"integer\"";
    let metadata = "Forbidden: must not specify anything other than name and generateName, but \
                    metadata is implicitly specified";
    let text = json!({"type": "string"});
    let both = json!({
        "type": "object", "properties": {"a": text}, "additionalProperties": text});
    let map = json!({"type": "array", "items": text, "x-kubernetes-list-type": "map"});
    let labels = json!({"type": "object", "properties": {"labels": {"type": "object"}}});
    expect(&[
        (
            root(json!({"type": "object", "$ref": "#/x"})),
            ".properties[foo].$ref",
            "Forbidden: $ref is not supported",
        ),
        (
            root(json!({"type": "string", "uniqueItems": true})),
            ".properties[foo].uniqueItems",
            unique,
        ),
        (root(json!({"type": "string", "default": 5})), ".properties[foo].default", default),
        (root(map), ".properties[foo].x-kubernetes-list-map-keys", keys),
        (root(both), ".properties[foo].additionalProperties", exclusive),
        (
            json!({"type": "object", "additionalProperties": text}),
            ".additionalProperties",
            "Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"metadata": labels}}),
            ".properties[metadata]",
            metadata,
        ),
    ]);
    let pattern = check(&root(json!({"type": "string", "pattern": "("})), "s");
    assert!(pattern[0].message.starts_with("Invalid value: \"(\": must be a valid regular"));
}

#[test]
fn value_validations_declare_nothing() {
    expect(&[
        (
            root(json!({"type": "string", "anyOf": [{"type": "string"}]})),
            ".properties[foo].anyOf[0].type",
            "Forbidden: must be empty to be structural",
        ),
        (
            root(json!({"type": "object", "oneOf": [{"properties": {"a": {"minLength": 1}}}]})),
            ".properties[foo].properties[a]",
            "Required value: because it is defined in s.properties[foo].oneOf[0].properties[a]",
        ),
        (
            root(json!({"type": "string", "not": {"nullable": true}})),
            ".properties[foo].not.nullable",
            "Forbidden: must be false to be structural",
        ),
    ]);
}

#[test]
fn int_or_string_may_repeat_its_types() {
    let schema = root(json!({
        "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}));
    assert_eq!(messages(&schema), [""; 0]);
}

#[test]
fn endless_errors_and_nesting_are_bounded() {
    let many: serde_json::Map<String, Value> =
        (0..1000).map(|n| (format!("f{n}"), json!({}))).collect();
    let causes = check(&json!({"type": "object", "properties": many}), "s");
    assert_eq!(causes.len(), crate::schema::CAUSES_MAX);
    let mut deep = json!({"type": "string"});
    for _ in 0..crate::schema::SCHEMA_DEPTH_MAX + 1 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert_eq!(check(&deep, "s").len(), 1);
}
