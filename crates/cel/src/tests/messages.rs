//! Messages, which mutations produce.

use serde_json::{Value as Json, json};

use crate::limits::CALL_COST_MAX;
use crate::message::Vocabulary;
use crate::{Declared, Input, Program, Value};

fn compiled(source: &str, vocabulary: Vocabulary) -> Result<Program, String> {
    let inputs = [Input { name: "object", declared: Declared::dynamic().into(), optional: false }];
    Program::compile_with(source, &inputs, vocabulary).map_err(|error| error.to_string())
}

fn mutation(source: &str) -> Program {
    compiled(source, Vocabulary::Mutations).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// The result as JSON, with its cost.
fn made(source: &str) -> (Result<Json, String>, u64) {
    let object = json!({"spec": {"replicas": 3, "a": "x"}, "list": [1, 2]});
    let program = mutation(source);
    let (result, cost) = program.evaluate(&[Some(&object)], CALL_COST_MAX);
    let json = match result {
        Ok(Value::Message(message)) => message.to_object(),
        Ok(other) => other.to_json(),
        Err(error) => Err(error.to_string()),
    };
    (json, cost)
}

fn refusal(source: &str) -> String {
    let error = compiled(source, Vocabulary::Mutations).unwrap_err();
    let error = error.strip_prefix("compilation failed: ERROR: <input>:").unwrap();
    error.lines().next().unwrap().to_owned()
}

#[test]
fn objects_consist_of_their_fields() {
    for (source, expected) in [
        ("Object{}", json!({})),
        (
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
            json!({"spec": {"replicas": 4}}),
        ),
        (
            "Object{spec: Object.spec{template: Object.spec.template{containers: [\
            Object.spec.template.containers{name: 'a', args: ['-g']}]}}}",
            json!({"spec": {"template": {"containers": [{"name": "a", "args": ["-g"]}]}}}),
        ),
        (
            "Object{metadata: Object.metadata{labels: {'a.b/c': 'd'}}}",
            json!({"metadata": {"labels": {"a.b/c": "d"}}}),
        ),
        (
            "Object{?there: object.?spec.a, ?absent: object.?spec.b, list: object.list, half: 0.5}",
            json!({"there": "x", "list": [1, 2], "half": 0.5}),
        ),
        (
            "Object{`a-b`: 1.0, namespace: null, time: duration('90s'),}",
            json!({"a-b": 1, "namespace": null, "time": "90s"}),
        ),
        ("Object{a: Object.a{b: 1}, a: Object.a{c: 2}}", json!({"a": {"c": 2}})),
        ("Object{n: [1, 2, 3]}.n.sum()", json!(6)),
        ("Object{spec: Object.spec{n: 3}} == Object{spec: Object.spec{n: 1 + 2}}", json!(true)),
        ("has(Object{a: 1}.a) && !has(Object{a: 1}.b) && type(Object{}) == Object", json!(true)),
    ] {
        assert_eq!(made(source).0, Ok(expected), "{source}");
    }
}

#[test]
fn patches_are_lists_of_operations() {
    let source = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), \
                  value: Object.metadata.labels{x: 1}}] + (true ? [JSONPatch{op: 'remove', path: \
                  '/x'}] : [])";
    let expected = json!([
        {"op": "add", "path": "/metadata/labels/a~1b~0c", "value": {"x": 1}},
        {"op": "remove", "path": "/x"},
    ]);
    assert_eq!(mutation(source).result_type().to_string(), "list(JSONPatch)");
    assert_eq!(made(source).0, Ok(expected));
    let found = made("JSONPatch{op: dyn(1), path: ''}").0.unwrap_err();
    assert_eq!(found, "unexpected type int64 for JSONPatchType 'op' field");
}

#[test]
fn objects_cost_forty_and_the_costs_of_their_fields() {
    for (source, cost) in [
        ("Object{}", 40),
        ("Object{a: Object.a{b: 1}}", 80),
        ("Object{a: object.spec.a}", 43),
        ("[JSONPatch{op: 'remove', path: '/x'}]", 50),
    ] {
        assert_eq!(made(source).1, cost, "{source}");
        // Estimates do not count selections from a dynamic value.
        let selected = if source.contains("object.spec.a") { 2 } else { 0 };
        let estimate = mutation(source).estimate();
        assert_eq!((estimate.min, estimate.max), (cost - selected, cost - selected), "{source}");
    }
}

#[test]
fn parts_of_objects_are_named_by_their_paths() {
    let problem = |found: &str, expected: &str| {
        format!(
            "type mismatch: unexpected type name {found:?}, expected {expected:?}, which matches \
             field name path from root Object type"
        )
    };
    for (source, found, expected) in [
        ("Object{a: Object.b{}}", "Object.b", "Object.a"),
        ("Object{a: [Object.a.item{}]}", "Object.a.item", "Object.a"),
        ("Object{a: {'k': Object.k{}}}", "Object.k", "Object.a"),
        ("Object{a: Object.a{b: Object.a{}}}", "Object.a", "Object.a.b"),
    ] {
        assert_eq!(made(source).0, Err(problem(found, expected)), "{source}");
    }
}

#[test]
fn a_value_that_is_no_message_is_refused_at_its_position() {
    for (source, expected) in [
        ("Objects{}", "1:8: undeclared reference to 'Objects' (in container '')"),
        (
            "Nothing.at.all{a: 1}",
            "1:15: undeclared reference to 'Nothing.at.all' (in container '')",
        ),
        ("object{}", "1:7: 'dyn' is not a type"),
        ("int{}", "1:4: 'int' is not a message type"),
        (
            "JSONPatch{op: 1}",
            "1:13: expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        ("Object{?a: 1}", "1:12: expected type 'optional_type(int)' but found 'int'"),
        ("[Object.a{}, Object.b{}]", "1:22: expected type 'Object.a' but found 'Object.b'"),
        ("Object{a: nothing}", "1:11: undeclared reference to 'nothing' (in container '')"),
    ] {
        assert_eq!(refusal(source), expected, "{source}");
    }
    for source in ["Object{}", "JSONPatch{}", "Object.spec{} == null", "jsonpatch.escapeKey('')"] {
        assert!(compiled(source, Vocabulary::Rules).is_err(), "{source}");
    }
    for source in ["Object{a}", "Object{a: }", "Object{a: 1", "Object{1: 1}", "Object.{}"] {
        assert!(compiled(source, Vocabulary::Mutations).is_err(), "{source}");
    }
}

#[test]
fn values_that_share_their_parts_are_written_within_the_limit() {
    let mut source = "'x'".to_owned();
    for _ in 0..10 {
        source = format!("[{source}].map(x, [x, x, x, x, x, x, x, x, x, x])");
    }
    assert_eq!(made(&source).0, Err("the value is too large".to_owned()));
}
