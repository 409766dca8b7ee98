//! Schemas from models, and changes of schema.

use serde_json::{Map, Value, json};

use super::{from_model, set};
use crate::typed::reconcile;
use crate::{ListKind, OpenApiError, Scalar, Schema, TypeId};

fn list_kind(property: Value) -> ListKind {
    let schema = from_model(json!({"type": "object", "properties": {"a": property}}));
    let of = schema.atom(schema.root()).map.as_ref().unwrap().fields["a"];
    schema.atom(of).list.clone().unwrap().kind
}

#[test]
fn the_type_of_a_list_wins_over_its_patch_strategy() {
    let list = |more: Value| {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        list.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        list_kind(list)
    };
    let keyed = |keys: &[&str]| ListKind::Keyed(keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(list(json!({})), ListKind::Atomic);
    assert_eq!(list(json!({"x-kubernetes-list-type": "set"})), ListKind::Set);
    let merge = json!({"x-kubernetes-patch-strategy": "merge"});
    assert_eq!(list(merge), ListKind::Set);
    let by_name = json!({
        "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name",
    });
    assert_eq!(list(by_name.clone()), keyed(&["name"]));
    let mut both = by_name;
    both["x-kubernetes-list-type"] = json!("map");
    both["x-kubernetes-list-map-keys"] = json!(["port", "protocol"]);
    assert_eq!(list(both), keyed(&["port", "protocol"]));
}

#[test]
fn models_may_refer_to_themselves_and_references_may_make_them_atomic() {
    let models = json!({
        "Node": {"type": "object", "properties": {
            "next": {"$ref": "#/components/schemas/Node"},
            "whole": {
                "allOf": [{"$ref": "#/components/schemas/Node"}], "default": {},
                "x-kubernetes-map-type": "atomic",
            },
            "size": {"$ref": "#/x/io.k8s.apimachinery.pkg.api.resource.Quantity"},
        }},
    });
    let schema = Schema::from_openapi(models.as_object().unwrap(), "Node").unwrap();
    let map = schema.atom(schema.root()).map.as_ref().unwrap();
    assert_eq!(map.fields["next"], schema.root());
    assert!(!map.atomic);
    assert!(schema.atom(map.fields["whole"]).map.as_ref().unwrap().atomic);
    assert_eq!(schema.atom(map.fields["size"]).scalar, Some(Scalar::Untyped));
}

#[test]
fn models_that_say_nothing_known_are_refused() {
    let error = Schema::from_openapi(&Map::new(), "A").unwrap_err();
    assert!(matches!(error, OpenApiError::MissingModel(name) if name == "A"));
    let models = json!({"A": {"type": "array", "x-kubernetes-list-type": "bag"}});
    let error = Schema::from_openapi(models.as_object().unwrap(), "A").unwrap_err();
    assert_eq!(error.to_string(), "x-kubernetes-list-type of \"A\" has an unknown value: \"bag\"");
}

#[test]
fn built_in_kinds_have_structs_and_required_fields_before_they_are_set() {
    let schema = from_model(json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "default": {}, "required": ["list", "name"],
            "properties": {
                "list": {"type": "array"}, "name": {"type": "string", "default": ""},
                "other": {"type": "string"},
            },
        },
        "pointer": {"type": "object", "properties": {"a": {"type": "string"}}},
    }}));
    let mut object = json!({});
    schema.fill_zeros(&mut object);
    assert_eq!(object, json!({"spec": {"list": null, "name": ""}}));
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let atomic = from_model(json!({"type": "object", "properties": {
        "map": {
            "type": "object", "additionalProperties": {"type": "string"},
            "x-kubernetes-map-type": "atomic",
        },
        "list": {"type": "array", "items": {"type": "object"}},
        "free": {"type": "object"},
    }}));
    let parts = set(&json!({
        "f:map": {".": {}, "f:a": {}}, "f:list": {"k:{\"a\":1}": {}}, "f:free": {"f:x": {"f:y": {}}},
        "f:gone": {"f:z": {}},
    }));
    let whole = reconcile(&atomic, &parts).unwrap();
    let expected = json!({
        "f:map": {}, "f:list": {}, "f:free": {"f:x": {"f:y": {}}}, "f:gone": {"f:z": {}},
    });
    assert_eq!(whole, set(&expected));
    assert_eq!(reconcile(&atomic, &whole), None);
    // A type that changes from atomic to granular needs no change: the member stays.
    let granular = from_model(json!({"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }}));
    assert_eq!(reconcile(&granular, &set(&json!({"f:map": {}}))), None);
}

#[test]
fn a_value_without_a_schema_has_the_types_of_its_json() {
    let schema = Schema::deduced();
    assert_eq!(schema.root(), TypeId::DEDUCED);
    let value = json!({"a": {"b": [1], "c": {}}, "d": null});
    let typed = crate::Typed::unchecked(std::borrow::Cow::Borrowed(&value), &schema);
    let expected = json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}});
    assert_eq!(typed.field_set(), set(&expected));
}
