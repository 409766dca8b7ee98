//! The encoding of sets and of path elements.

use serde_json::{Value, json};

use super::set;
use crate::{DEPTH_MAX, DecodeError, FieldSet, Path, PathElement};

fn element(text: &str) -> PathElement {
    PathElement::decode(text).unwrap().unwrap()
}

#[test]
fn elements_sort_by_type_and_numbers_by_their_value() {
    let text = r#"{"f:a":{},"f:b":{".":{},"f:c":{}},"k:{\"port\":80}":{".":{},"f:x":{}},"k:{\"port\":443}":{},"v:9":{},"v:10":{},"v:\"a\"":{},"v:true":{},"i:2":{},"i:10":{}}"#;
    let read = FieldSet::from_json(text).unwrap();
    assert_eq!(read.to_json(), text);
    let mut shuffled: Vec<Path> = read.paths();
    shuffled.reverse();
    assert_eq!(shuffled.into_iter().collect::<FieldSet>().to_json(), text);
}

#[test]
fn keys_are_compact_and_sorted_and_escaped_as_go_escapes() {
    let key =
        PathElement::key([("protocol".to_owned(), json!("TCP")), ("port".to_owned(), json!(80))]);
    assert_eq!(key.encode(), r#"k:{"port":80,"protocol":"TCP"}"#);
    let value = PathElement::Value(json!("<a>&\"\\\n\u{1}é\u{2028}"));
    assert_eq!(value.encode(), "v:\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\u0001é\\u2028\"");
    assert_eq!(element(&value.encode()), value);
    assert_eq!(PathElement::field("a<b\"").encode(), "f:a<b\"");
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    let written = |value: Value| PathElement::Value(value).encode();
    for (value, text) in [
        (json!(1), "v:1"),
        (json!(-7), "v:-7"),
        (json!(1.0), "v:1"),
        (json!(0.5), "v:0.5"),
        (json!(1e20), "v:100000000000000000000"),
        (json!(1e21), "v:1e+21"),
        (json!(1.5e-7), "v:1.5e-7"),
        (json!(0.000_001), "v:0.000001"),
        (json!(i64::MAX), "v:9223372036854775807"),
    ] {
        assert_eq!(written(value), text);
    }
    assert_eq!(element("v:1"), element("v:1.0"));
}

#[test]
fn paths_have_the_text_that_clients_expect() {
    let path = Path(vec![
        PathElement::field("spec"),
        element(r#"k:{"name":"a \"b\"","port":80}"#),
        element("v:1500000.5"),
        element("v:true"),
        element("i:3"),
    ]);
    assert_eq!(path.to_string(), r#".spec[name="a \"b\"",port=80][=1.5000005e+06][=true][3]"#);
}

#[test]
fn unknown_elements_are_skipped_and_invalid_ones_named() {
    let read = set(&json!({"x:new": {"f:a": {}}, "f:a": null, "f:b": {"x:y": {}}}));
    assert_eq!(read.to_json(), r#"{"f:a":{},"f:b":{}}"#);
    assert!(set(&Value::Null).is_empty());
    assert!(set(&json!({})).is_empty());
    for broken in [json!([]), json!({"f": {}}), json!({"f:a": 1}), json!({"i:x": {}})] {
        assert!(FieldSet::from_value(&broken).is_err(), "{broken}");
    }
    let error = FieldSet::from_value(&json!({"k:[]": {}})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "path element \"k:[]\" is not valid: the keys are not a JSON object"
    );
}

#[test]
fn depth_is_limited() {
    let mut deep = json!({});
    for _ in 0..=DEPTH_MAX {
        deep = json!({"f:a": deep});
    }
    assert!(matches!(FieldSet::from_value(&deep), Err(DecodeError::TooDeep)));
}
