//! The three kinds of patches: what they change and what they refuse.

use proptest::prelude::*;
use serde_json::json;

use super::*;

struct Pods;

impl MergeKeys for Pods {
    fn list(&self, path: &[&str]) -> ListStrategy {
        match path {
            [.., "containers" | "env" | "volumes"] => ListStrategy::MergeBy("name"),
            [.., "ports"] => ListStrategy::MergeBy("containerPort"),
            [.., "finalizers"] => ListStrategy::Set,
            _ => ListStrategy::Replace,
        }
    }
}

fn strategic(mut object: Value, patch: Value) -> Result<Value, PatchError> {
    strategic_merge_patch(&mut object, &patch, &Pods)?;
    Ok(object)
}

fn json_patched(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    check_json_patch(patch)?;
    let mut object = object.clone();
    json_patch(&mut object, patch)?;
    Ok(object)
}

#[test]
fn json_patch_changes_maps_and_lists() {
    let object = json!({"data": {"k": "1"}, "list": [1, 2]});
    for (patch, expected) in [
        (
            json!([{"op": "add", "path": "/data/x", "value": null}]),
            json!({"data": {"k": "1", "x": null}, "list": [1, 2]}),
        ),
        (
            json!([{"op": "replace", "path": "/data/zzz", "value": "1"}]),
            json!({"data": {"k": "1", "zzz": "1"}, "list": [1, 2]}),
        ),
        (
            json!([
                {"op": "add", "path": "/list/-", "value": 3},
                {"op": "remove", "path": "/list/0"},
            ]),
            json!({"data": {"k": "1"}, "list": [2, 3]}),
        ),
        (
            json!([{"op": "move", "from": "/data/k", "path": "/a~1b"}]),
            json!({"data": {}, "a/b": "1", "list": [1, 2]}),
        ),
        (
            json!([
                {"op": "copy", "from": "/data", "path": "/c"},
                {"op": "test", "path": "/c/k", "value": "1"},
            ]),
            json!({"data": {"k": "1"}, "c": {"k": "1"}, "list": [1, 2]}),
        ),
        (
            json!([
                {"op": "add", "path": "/list/-1", "value": 5},
                {"op": "replace", "path": "/list/-3", "value": 4},
                {"op": "add", "path": "/list/-2", "value": 6},
                {"op": "remove", "path": "/list/+01"},
            ]),
            json!({"data": {"k": "1"}, "list": [4, 6, 5]}),
        ),
        (
            json!([
                {"op": "add", "path": "anything/x"},
                {"op": "copy", "from": "/nothing", "path": "/y"},
                {"op": "test", "path": "/z", "value": null},
            ]),
            json!({"data": {"k": "1"}, "list": [1, 2], "x": null, "y": null}),
        ),
        (
            json!([{"op": "move", "from": "/list", "path": "/data/list"}]),
            json!({"data": {"k": "1", "list": [1, 2]}}),
        ),
        (Value::Null, object.clone()),
    ] {
        assert_eq!(json_patched(&object, &patch), Ok(expected), "{patch}");
    }
}

#[test]
fn json_patch_that_does_not_fit_is_rejected_as_a_whole() {
    let object = json!({"data": {"k": "1"}, "list": []});
    for patch in [
        json!([{"op": "zap", "path": "/x"}]),
        json!([{"op": "test", "path": "/data/k", "value": "zzz"}]),
        json!([{"op": "remove", "path": "/data/zzz"}]),
        json!([{"op": "add", "path": "data", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "replace", "path": "", "value": 1}]),
        json!([{"op": "copy", "from": "", "path": "/x"}]),
        json!([{"op": "test", "path": "/foo/bar"}]),
        json!([{"op": "test", "path": "/list/0"}]),
        json!([{"op": "replace", "path": "/list/-", "value": 1}]),
        json!([{"op": "add", "path": "/list/-2", "value": 1}]),
        json!([{"op": "remove", "path": "/list/-1"}]),
        json!([{"op": "add", "path": "/foo/bar", "value": 1}]),
        json!([{"op": "add", "path": "/list/1", "value": 1}]),
        json!([{"op": "move", "from": "/data", "path": "/data/k"}]),
        json!([{}]),
    ] {
        assert_eq!(json_patched(&object, &patch), Err(PatchError::Rejected), "{patch}");
    }
    let status = Status::from(PatchError::Rejected);
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
}

#[test]
fn an_operation_that_does_not_fit_is_explained() {
    let object = json!({"data": {"k": "1"}, "list": []});
    for (operation, expected) in [
        (json!({"op": "zap", "path": "/x"}), "Unexpected kind: zap"),
        (
            json!({"op": "remove", "path": "/data/no"}),
            "error in remove for path: '/data/no': Unable to remove nonexistent key: no: missing \
             value",
        ),
        (
            json!({"op": "add", "path": "/no/where", "value": 1}),
            "add operation does not apply: doc is missing path: \"/no/where\": missing value",
        ),
        (
            json!({"op": "replace", "path": "/list/3", "value": 1}),
            "replace operation does not apply: doc is missing key: /list/3: missing value",
        ),
        (
            json!({"op": "move", "from": "/no/where", "path": "/x"}),
            "move operation does not apply: doc is missing from path: /no/where: missing value",
        ),
        (
            json!({"op": "add", "path": "/list/1", "value": 1}),
            "error in add for path: '/list/1': Unable to access invalid index: 1: invalid index \
             referenced",
        ),
    ] {
        let patched = json_patch_explained(&mut object.clone(), &json!([operation]));
        assert_eq!(patched, Err(Unfit::Operation(expected.to_owned())), "{operation}");
    }
    let test = json!([{"op": "test", "path": "/data/k", "value": 2}]);
    let patched = json_patch_explained(&mut object.clone(), &test);
    assert_eq!(patched, Err(Unfit::Test("/data/k".to_owned())));
}

#[test]
fn what_is_no_patch_is_malformed_in_upstreams_words() {
    let text = |result: Result<_, PatchError>| match result {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    assert_eq!(
        text(check_json_patch(&json!({"op": "add"}))),
        "error decoding patch: json: cannot unmarshal object into Go value of type \
         []handlers.jsonPatchOp"
    );
    assert_eq!(
        text(decode_object(b"{{", false).map(drop)),
        "error decoding patch: invalid character '{' looking for beginning of object key string"
    );
    assert_eq!(
        text(decode_object(b"{{", true).map(drop)),
        "invalid character '{' looking for beginning of object key string"
    );
    assert_eq!(
        text(decode_object(b"[]", false).map(drop)),
        "error decoding patch: json: cannot unmarshal array into Go value of type \
         map[string]interface {}"
    );
}

#[test]
fn json_patch_has_limits() {
    let test = json!({"op": "test", "path": "/a"});
    let many = Value::Array(vec![test; OPERATIONS_MAX + 1]);
    assert_eq!(json_patched(&json!({}), &many), Err(PatchError::TooManyOperations(10_001)));
    let large = json!({"a": "x".repeat(COPY_SIZE_MAX / 2)});
    let copies = json!([
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "copy", "from": "/a", "path": "/c"},
        {"op": "copy", "from": "/a", "path": "/d"},
    ]);
    assert_eq!(json_patched(&large, &copies), Err(PatchError::Rejected));
}

#[test]
fn no_json_patch_nests_deeper_than_is_safe() {
    // Each operation doubles the depth.
    let mut operations = vec![json!({"op": "add", "path": "/a", "value": {"a": {}}})];
    let mut path = "/a".to_owned();
    for _ in 0..16 {
        path = format!("{path}{path}");
        operations.push(json!({"op": "copy", "from": "/a", "path": path}));
    }
    assert_eq!(json_patched(&json!({}), &operations.into()), Err(PatchError::Rejected));
    // Each adds one.
    let one = |depth: usize| json!({"op": "add", "path": "/a".repeat(depth), "value": {}});
    let many = |depth| Value::Array((1..=depth).map(one).collect());
    assert_eq!(json_patched(&json!({}), &many(5000)), Err(PatchError::Rejected));
    let patched = json_patched(&json!({}), &many(crate::decode::DEPTH_MAX - 1)).unwrap();
    assert_eq!(crate::decode::depth(&patched), crate::decode::DEPTH_MAX);
    // What is moved down and up again does not get deeper, however often.
    let (down, up) = (
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b/a", "path": "/a"}),
    );
    let moves = Value::Array([down, up].into_iter().cycle().take(2000).collect());
    let object = json!({"a": [[[]]], "b": {}});
    assert_eq!(json_patched(&object, &moves), Ok(object.clone()));
}

#[test]
fn a_merge_patch_nested_too_deep_is_refused() {
    let mut patch = json!(1);
    for _ in 0..DEPTH_MAX + 2 {
        patch = json!({"a": patch});
    }
    assert!(matches!(merge_patch(&mut json!({}), &patch), Err(PatchError::Malformed(_))));
}

#[test]
fn keyed_lists_merge_by_their_key_and_new_elements_come_first() {
    let object = json!({"containers": [{"name": "c", "image": "i", "tty": true}]});
    let patched = strategic(object.clone(), json!({"containers": [{"name": "d", "image": "x"}]}));
    assert_eq!(
        patched,
        Ok(json!({"containers": [
            {"name": "d", "image": "x"}, {"name": "c", "image": "i", "tty": true},
        ]}))
    );
    let patched = strategic(object.clone(), json!({"containers": [{"name": "c", "image": "j"}]}));
    assert_eq!(patched, Ok(json!({"containers": [{"name": "c", "image": "j", "tty": true}]})));
    let patched =
        strategic(object.clone(), json!({"containers": [{"name": "c", "$patch": "delete"}]}));
    assert_eq!(patched, Ok(json!({"containers": []})));
    let patched = strategic(
        object.clone(),
        json!({"containers": [{"$patch": "replace"}, {"name": "e", "image": "y"}]}),
    );
    assert_eq!(patched, Ok(json!({"containers": [{"name": "e", "image": "y"}]})));
    let patched = strategic(object, json!({"containers": [{"name": "c", "tty": null}]}));
    assert_eq!(patched, Ok(json!({"containers": [{"name": "c", "image": "i"}]})));
}

#[test]
fn an_element_without_its_key_is_refused_in_upstreams_words() {
    let error = strategic(json!({"containers": []}), json!({"containers": [{"image": "x"}]}));
    let text = "map: map[image:x] does not contain declared merge key: name";
    assert_eq!(error, Err(PatchError::Directive(text.to_owned())));
    assert_eq!(Status::from(PatchError::Directive(text.to_owned())).code, 500);
    let error = strategic(json!({"metadata": {}}), json!({"metadata": {"$patch": "zap"}}));
    let text = "unknown patch type: zap in map: map[$patch:zap]";
    assert_eq!(error, Err(PatchError::Directive(text.to_owned())));
}

#[test]
fn an_order_directive_arranges_the_list() {
    let object = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "s"}]});
    let patch = json!({
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "n"}],
        "containers": [{"name": "n", "image": "x"}],
    });
    assert_eq!(
        strategic(object.clone(), patch),
        Ok(json!({"containers": [
            {"name": "b"}, {"name": "a"}, {"name": "n", "image": "x"}, {"name": "s"},
        ]}))
    );
    let only = json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]});
    let names = |value: Value| -> Vec<String> {
        let list = value["containers"].as_array().cloned().unwrap_or_default();
        list.iter().map(|c| c["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names(strategic(object, only).expect("fits")), ["b", "a", "s"]);
}

#[test]
fn primitive_lists_are_sets_where_declared() {
    let object = json!({"finalizers": ["a/b", "c/d"], "args": ["x"]});
    let patched = strategic(object.clone(), json!({"finalizers": ["e/f"], "args": ["y"]}));
    assert_eq!(patched, Ok(json!({"finalizers": ["e/f", "a/b", "c/d"], "args": ["y"]})));
    let patched = strategic(object, json!({"$deleteFromPrimitiveList/finalizers": ["a/b"]}));
    assert_eq!(patched, Ok(json!({"finalizers": ["c/d"], "args": ["x"]})));
}

#[test]
fn retained_keys_drop_the_others() {
    let object = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
    let patch = json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}});
    assert_eq!(strategic(object.clone(), patch), Ok(json!({"strategy": {"type": "Recreate"}})));
    let stray = json!({"strategy": {"$retainKeys": ["type"], "other": 1}});
    assert!(matches!(strategic(object, stray), Err(PatchError::Directive(_))));
}

#[test]
fn maps_are_replaced_and_emptied_by_directive() {
    let object = json!({"data": {"a": "1", "b": "2"}});
    let replaced = strategic(object.clone(), json!({"data": {"$patch": "replace", "c": "3"}}));
    assert_eq!(replaced, Ok(json!({"data": {"c": "3"}})));
    let deleted = strategic(object, json!({"data": {"$patch": "delete"}}));
    assert_eq!(deleted, Ok(json!({"data": {}})));
    let new =
        strategic(json!({}), json!({"data": {"$patch": "merge", "a": null, "b": {"$patch": "x"}}}));
    assert_eq!(new, Ok(json!({"data": {"b": {}}})));
    let nothing = strategic(json!({}), json!({"data": {"$patch": "replace", "a": "1"}}));
    assert_eq!(nothing, Ok(json!({"data": {}})), "as kube-apiserver does");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            "[a-c]",
            Just("name".to_owned()),
            Just("containers".to_owned()),
            Just("finalizers".to_owned()),
            Just("$patch".to_owned()),
            Just("$retainKeys".to_owned()),
            Just("$setElementOrder/containers".to_owned()),
            Just("$deleteFromPrimitiveList/finalizers".to_owned()),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(object in any_json(), patch in any_json()) {
        let mut once = object;
        merge_patch(&mut once, &patch).expect("shallow");
        let mut twice = once.clone();
        merge_patch(&mut twice, &patch).expect("shallow");
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn an_empty_merge_patch_changes_no_map(object in any_json()) {
        prop_assume!(object.is_object());
        let mut patched = object.clone();
        merge_patch(&mut patched, &json!({})).expect("shallow");
        prop_assert_eq!(patched, object);
    }

    #[test]
    fn a_merge_patch_without_nulls_onto_nothing_is_itself(patch in any_json()) {
        prop_assume!(!has_null(&patch));
        let mut patched = Value::Null;
        merge_patch(&mut patched, &patch).expect("shallow");
        prop_assert_eq!(patched, patch);
    }

    #[test]
    fn no_strategic_patch_breaks_the_merge(object in any_json(), patch in any_json()) {
        let mut patched = object;
        let _ = strategic_merge_patch(&mut patched, &patch, &Pods);
    }

    #[test]
    fn an_empty_strategic_patch_changes_nothing(object in any_json()) {
        prop_assume!(object.is_object());
        let mut patched = object.clone();
        strategic_merge_patch(&mut patched, &json!({}), &Pods).expect("empty");
        prop_assert_eq!(patched, object);
    }

    #[test]
    fn no_operations_break_a_json_patch(
        object in any_json(),
        operations in prop::collection::vec(
            (
                "add|remove|replace|move|copy|test",
                "(/[a-c0-2-]){0,3}",
                "(/[a-c0-2-]){0,3}",
                any_json(),
            ),
            0..6,
        ),
    ) {
        let operations: Vec<Value> = operations.into_iter().map(|(op, path, from, value)| {
            json!({"op": op, "path": path, "from": from, "value": value})
        }).collect();
        let _ = json_patched(&object, &Value::Array(operations));
    }
}
