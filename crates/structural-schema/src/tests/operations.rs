//! Pruning, defaulting, numbers, and the type errors of built-in objects.

use serde_json::{Map, Value, json};

use super::{compiled, field};
use crate::{Schema, number};

#[test]
fn unknown_fields_are_named_and_removed() {
    let mut object = json!({
        "apiVersion": "ex.org/v1", "kind": "Foo", "extra": 5,
        "metadata": {"name": "a", "bogus": 1, "ownerReferences": [{"uid": "1", "odd": 2}]},
        "spec": {"req": "abc", "unknown": 1, "free": {"x": {"y": 1}}, "nested": {"zz": 1},
            "lst": [{"k": "a"}, {"k": "b", "w": 1}]},
        "status": {"x": "no"},
    });
    let unknown = [
        "extra",
        "metadata.bogus",
        "metadata.ownerReferences[0].odd",
        "spec.lst[1].w",
        "spec.nested.zz",
        "spec.unknown",
    ];
    assert_eq!(compiled().unknown_fields(&object), unknown);
    compiled().prune(&mut object);
    assert_eq!(
        object,
        json!({
            "apiVersion": "ex.org/v1", "kind": "Foo",
            "metadata": {"name": "a", "ownerReferences": [{"uid": "1"}]},
            "spec": {"req": "abc", "free": {"x": {"y": 1}}, "nested": {},
                "lst": [{"k": "a"}, {"k": "b"}]},
            "status": {"x": "no"},
        })
    );
}

#[test]
fn pruning_resumes_below_preserved_fields_that_are_declared() {
    let schema = field(json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }));
    let mut object = json!({"spec": {"v": {"free": {"b": 1}, "known": {"a": "", "b": 1}}}});
    schema.prune(&mut object);
    assert_eq!(object, json!({"spec": {"v": {"free": {"b": 1}, "known": {"a": ""}}}}));
}

#[test]
fn embedded_resources_keep_type_and_metadata() {
    let schema = field(json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "properties": {"spec": {"type": "object"}},
    }));
    let object = json!({"spec": {"v": {
        "apiVersion": "v1", "kind": "K",
        "metadata": {"name": "q", "bogus": 1}, "spec": {"x": 1}}}});
    assert_eq!(schema.unknown_fields(&object), ["spec.v.metadata.bogus", "spec.v.spec.x"]);
}

#[test]
fn defaults_fill_existing_objects_and_nulls_count_as_absent() {
    let cases = [
        // No spec: no default inside it applies.
        (json!({}), json!({})),
        (json!({"spec": {"req": "a"}}), json!({"spec": {"req": "a", "num": 3, "nd": "dd"}})),
        (
            json!({"spec": {"req": "a", "nul": null, "nn": null, "nd": null}}),
            json!({"spec": {"req": "a", "nul": null, "nd": "dd", "num": 3}}),
        ),
        (
            json!({"spec": {"nested": {}, "num": 5}}),
            json!({"spec": {"nested": {"d": "nested"}, "num": 5, "nd": "dd"}}),
        ),
    ];
    for (mut object, expected) in cases {
        compiled().default(&mut object);
        assert_eq!(object, expected);
    }
}

#[test]
fn defaults_reach_into_lists_maps_and_defaulted_objects() {
    let schema = field(json!({
        "type": "object", "default": {}, "properties": {
            "list": {"type": "array", "items": {"type": "object",
                "properties": {"a": {"type": "integer", "default": 1}}}},
            "map": {"type": "object", "additionalProperties": {
                "type": "object", "default": {"b": 7},
                "properties": {"b": {"type": "integer", "default": 2}}}},
            "c": {"type": "string", "default": "c"},
        },
    }));
    let mut object = json!({"spec": {"v": {"list": [{}, {"a": 5}], "map": {"x": {}, "y": null}}}});
    schema.default(&mut object);
    let expected = json!({"spec": {"v": {
        "list": [{"a": 1}, {"a": 5}], "map": {"x": {"b": 2}, "y": {"b": 7}}, "c": "c"}}});
    assert_eq!(object, expected);
    let mut empty = json!({"spec": {}});
    schema.default(&mut empty);
    assert_eq!(empty, json!({"spec": {"v": {"c": "c"}}}));
}

#[test]
fn numbers_without_fraction_become_integers() {
    let mut value = json!({"a": 5.0, "b": [1e3, 1.5, 9007199254740993i64], "c": 1e21});
    number::canonicalize(&mut value);
    let text = r#"{"a":5,"b":[1000,1.5,9007199254740993],"c":1e+21}"#;
    assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
    assert!(value["a"].is_i64() && value["c"].is_f64());
}

fn definitions() -> Map<String, Value> {
    let map = json!({
        "io.k8s.api.coordination.v1.LeaseSpec": {"type": "object", "properties": {
            "leaseDurationSeconds": {"type": "integer", "format": "int32"},
            "holderIdentity": {"type": "string"},
            "renewTime": {"$ref": "#/$defs/io.k8s.v1.MicroTime", "description": "d"},
            "acquireTime": {"allOf": [{"$ref": "#/components/schemas/io.k8s.v1.Time"}]},
            "raw": {"type": "string", "format": "byte"},
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
        }},
        "io.k8s.v1.MicroTime": {"type": "string", "format": "date-time"},
        "io.k8s.v1.Time": {"type": "string", "format": "date-time"},
        "io.k8s.api.coordination.v1.Lease": {"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"$ref": "#/$defs/io.k8s.api.coordination.v1.LeaseSpec"},
            "tree": {"$ref": "#/$defs/Tree"},
            "any": {},
        }},
        "Tree": {"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            "extra": {"$ref": "#/$defs/TreeOrBool"},
        }},
        "TreeOrBool": {"oneOf": [{"$ref": "#/$defs/Tree"}, {"type": "boolean"}]},
    });
    map.as_object().unwrap().clone()
}

fn lease() -> Schema {
    let root = json!({"$ref": "#/$defs/io.k8s.api.coordination.v1.Lease"});
    Schema::from_json_schema(&root, &definitions()).unwrap()
}

#[test]
fn recursive_built_in_types_are_followed() {
    let object = json!({
        "metadata": {"anything": 1}, "any": [{"x": 1}],
        "tree": {"children": [{"children": [], "odd": 1}, {"extra": true}],
            "extra": {"children": [{"odd": 2}]}},
    });
    let unknown = ["tree.children[0].odd", "tree.extra.children[0].odd"];
    assert_eq!(lease().unknown_fields(&object), unknown);
    assert_eq!(lease().type_error(&object), None);
}

#[test]
fn type_errors_of_built_in_objects_have_the_texts_of_a_go_decoder() {
    let micro = "2006-01-02T15:04:05.000000Z07:00";
    let cases = [
        (json!({"leaseDurationSeconds": 15}), None),
        (
            json!({"leaseDurationSeconds": 1.5}),
            Some(
                "json: cannot unmarshal number 1.5 into Go struct field \
                  LeaseSpec.spec.leaseDurationSeconds of type int32"
                    .to_owned(),
            ),
        ),
        (
            json!({"leaseDurationSeconds": 15.0}),
            Some(
                "json: cannot unmarshal number 15.0 into Go struct field \
                  LeaseSpec.spec.leaseDurationSeconds of type int32"
                    .to_owned(),
            ),
        ),
        (
            json!({"data": {"a": 1}}),
            Some(
                "json: cannot unmarshal number into Go struct field LeaseSpec.spec.data of type \
                  string"
                    .to_owned(),
            ),
        ),
        (
            json!({"data": []}),
            Some(
                "json: cannot unmarshal array into Go struct field LeaseSpec.spec.data of type \
                  map[string]string"
                    .to_owned(),
            ),
        ),
        (json!({"raw": "%%%"}), Some("illegal base64 data at input byte 0".to_owned())),
        (json!({"raw": "YQ=="}), None),
        (json!({"raw": "YQ"}), Some("illegal base64 data at input byte 2".to_owned())),
        (json!({"renewTime": "2026-01-01T00:00:00.123456Z"}), None),
        (json!({"renewTime": "2026-01-01T02:00:00.123456+02:00"}), None),
        (
            json!({"renewTime": "2026-01-01T00:00:00Z"}),
            Some(format!(
                "parsing time \"2026-01-01T00:00:00Z\" as \"{micro}\": cannot parse \"Z\" \
                          as \".000000\""
            )),
        ),
        (
            json!({"renewTime": "2026-01-01"}),
            Some(format!("parsing time \"2026-01-01\" as \"{micro}\": cannot parse \"\" as \"T\"")),
        ),
        (json!({"acquireTime": "2026-01-01T00:00:00Z"}), None),
        (json!({"acquireTime": null}), None),
    ];
    for (spec, expected) in cases {
        assert_eq!(lease().type_error(&json!({"spec": spec})), expected, "{spec}");
    }
    assert_eq!(
        lease().type_error(&json!({"spec": "x"})).unwrap(),
        "json: cannot unmarshal string into Go struct field Lease.spec of type v1.LeaseSpec"
    );
}
