//! Properties of all schemas and objects.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Schema, check};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "metadata"];

/// Any JSON, with names that often equal those of the schemas.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5i64..20).prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..5).prop_map(|map| {
        map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>().into()
    })
}

/// Structural schemas with defaults, nullable and preserving parts.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|n| json!({"type": "string", "nullable": n, "default": "x"})),
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer", "default": 3, "maximum": 9})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|of| json!({"type": "object", "additionalProperties": of})),
            (object_schema(inner), any::<bool>(), any::<bool>()).prop_map(
                |(properties, default, embedded)| {
                    let mut schema = json!({"type": "object", "properties": properties});
                    if default {
                        schema["default"] = json!({});
                    }
                    if embedded && !default {
                        schema["x-kubernetes-embedded-resource"] = true.into();
                        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                    }
                    schema
                }
            ),
        ]
    })
}

fn object_schema(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..4]), inner, 0..4).prop_map(|map| {
        map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>().into()
    })
}

fn root() -> impl Strategy<Value = Value> {
    object_schema(schema()).prop_map(|fields| json!({"type": "object", "properties": fields}))
}

proptest! {
    #[test]
    fn generated_schemas_are_structural(schema in root()) {
        prop_assert_eq!(check(&schema, "s"), []);
    }

    #[test]
    fn pruning_removes_exactly_the_unknown_fields(schema in root(), object in object(value())) {
        let schema = Schema::compile(&schema).unwrap();
        let mut pruned = object.clone();
        schema.prune(&mut pruned);
        prop_assert_eq!(schema.unknown_fields(&pruned), Vec::<String>::new());
        prop_assert_eq!(schema.unknown_fields(&object).is_empty(), pruned == object);
        let again = pruned.clone();
        schema.prune(&mut pruned);
        prop_assert_eq!(pruned, again);
    }

    #[test]
    fn defaulting_is_idempotent_and_adds_nothing_unknown(
        schema in root(), object in object(value()),
    ) {
        let schema = Schema::compile(&schema).unwrap();
        let mut defaulted = object;
        schema.prune(&mut defaulted);
        schema.default(&mut defaulted);
        prop_assert_eq!(schema.unknown_fields(&defaulted), Vec::<String>::new());
        let once = defaulted.clone();
        schema.default(&mut defaulted);
        prop_assert_eq!(defaulted, once);
    }

    #[test]
    fn an_unchanged_object_is_always_valid_on_update(schema in root(), object in object(value())) {
        let schema = Schema::compile(&schema).unwrap();
        prop_assert_eq!(schema.validate(&object, Some(&object)), vec![]);
    }

    #[test]
    fn no_text_panics_the_path_and_pattern_parsers(text in "\\PC{0,40}") {
        let _ = crate::JsonPath::parse(&text);
        let _ = cel::pattern::compile(&text);
    }
}
