//! Violations, one by one, with the texts of Kubernetes.

use api_meta::status::Cause;
use serde_json::{Value, json};

use super::{compiled, field};

fn messages(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

const NOT_CHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked \
    because the object was invalid; correct the existing errors to complete validation";

fn mistyped(field: &str, expected: &str, given: &str) -> String {
    format!(
        "{field}: Invalid value: \"{given}\": {field} in body must be of type {expected}: \"{given}\""
    )
}

fn out_of_range(field: &str) -> String {
    let text = "Checked value must be of type integer (default format) in";
    format!("<nil>: Invalid value: \"\": {text} {field}")
}

#[test]
fn violations_have_the_texts_of_kubernetes() {
    let object = json!({"spec": {
        "num": 50, "en": "Z", "lst": [{"k": "a"}, {"k": "a"}, {"v": "x"}], "st": ["a", "a"],
        "f": "str", "dt": "nope"}});
    let causes = compiled().validate(&object, None);
    let expected = [
        r#"spec.dt: Invalid value: "nope": spec.dt in body must be of type date-time: "nope""#,
        r#"spec.en: Unsupported value: "Z": supported values: "A", "B""#,
        r#"spec.f: Invalid value: "string": spec.f in body must be of type number: "string""#,
        "spec.lst[2].k: Required value",
        r#"spec.lst[1]: Duplicate value: {"k":"a"}"#,
        "spec.num: Invalid value: 50: spec.num in body should be less than or equal to 10",
        r#"spec.st[1]: Duplicate value: "a""#,
        "spec.req: Required value",
        NOT_CHECKED,
    ];
    assert_eq!(messages(&causes), expected);
    let reasons: Vec<&str> = causes.iter().map(|cause| cause.reason.as_str()).collect();
    let expected = [
        "FieldValueTypeInvalid",
        "FieldValueNotSupported",
        "FieldValueTypeInvalid",
        "FieldValueRequired",
        "FieldValueDuplicate",
        "FieldValueInvalid",
        "FieldValueDuplicate",
        "FieldValueRequired",
        "FieldValueInvalid",
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn single_violations_of_the_recorded_schema() {
    let req = mistyped("spec.req", "string", "integer");
    let num = mistyped("spec.num", "integer", "number");
    let ios = mistyped("spec.ios", "integer,string", "number");
    let range = out_of_range("spec.num");
    let cases = [
        (json!({"req": "ABCDEFGH"}), vec!["spec.req: Too long: may not be more than 5 bytes"]),
        (json!({"req": 5}), vec![&req]),
        (json!({"req": "a", "num": 5.5}), vec![&num, &range]),
        (json!({"req": "a", "ios": 1.5}), vec![&ios]),
        (
            json!({"req": "a", "emb": {"metadata": {"name": "q"}}}),
            vec!["spec.emb.apiVersion: Required value", "spec.emb.kind: Required value"],
        ),
    ];
    for (spec, mut expected) in cases {
        expected.push(NOT_CHECKED);
        assert_eq!(messages(&compiled().validate(&json!({"spec": spec}), None)), expected);
    }
    let valid = [
        json!({}),
        json!({"spec": {"req": "a", "num": 5.0, "min": 9007199254740993i64, "f": 1e21}}),
        json!({"spec": {"req": "a", "ios": "5%", "nul": null}}),
        json!({"spec": {"req": "a", "ios": 5, "emb": {"apiVersion": "v1", "kind": "K"}}}),
    ];
    for object in valid {
        assert_eq!(messages(&compiled().validate(&object, None)), [""; 0], "{object}");
    }
}

#[test]
fn integers_beyond_64_bits_are_refused() {
    let object: Value = serde_json::from_str(r#"{"spec":{"v":99999999999999999999}}"#).unwrap();
    let expected = [mistyped("spec.v", "integer", "number"), out_of_range("spec.v")];
    assert_eq!(messages(&field(json!({"type": "integer"})).validate(&object, None)), expected);
}

/// Validates one value of the field `spec.v` against one schema. The text is part of the message,
/// or empty for a valid value.
fn expect(cases: &[(Value, Value, &str)]) {
    for (schema, value, expected) in cases {
        let causes = field(schema.clone()).validate(&json!({"spec": {"v": value}}), None);
        let messages = messages(&causes).join("\n");
        assert!(messages.contains(expected), "{schema} {value}: {messages}");
        assert_eq!(causes.is_empty(), expected.is_empty(), "{schema} {value}: {messages}");
    }
}

#[test]
fn keywords_of_strings() {
    let pattern = |text: &str| json!({"type": "string", "pattern": text});
    expect(&[
        (
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            "spec.v in body should be at least 2 chars long",
        ),
        (json!({"type": "string", "maxLength": 1}), json!("é"), ""),
        (pattern("^[a-z]+$"), json!("A"), "spec.v in body should match '^[a-z]+$'"),
        (pattern("b"), json!("abc"), ""),
        (pattern(r"^\d+$"), json!("٣"), r"should match '^\d+$'"),
        (pattern("^{a}$"), json!("{a}"), ""),
        (pattern("^[[a]+$"), json!("[a"), ""),
        (pattern("^[]a]+$"), json!("]a"), ""),
        (pattern("^[[:alpha:]&&]+$"), json!("a&"), ""),
        (pattern(r"^a\/b\-c$"), json!("a/b-c"), ""),
        (pattern("^[a-z]{2,3}$"), json!("abcd"), "should match"),
        (json!({"type": "string"}), Value::Null, "spec.v in body must be of type string: \"null\""),
    ]);
}

#[test]
fn keywords_of_numbers() {
    let integer = |key: &str, value: Value| json!({"type": "integer", key: value});
    let mut above = integer("minimum", json!(1));
    above["exclusiveMinimum"] = true.into();
    let below = json!({"type": "number", "maximum": 1.5, "exclusiveMaximum": true});
    expect(&[
        (above, json!(1), "spec.v in body should be greater than 1"),
        (integer("minimum", json!(2)), json!(1), "should be greater than or equal to 2"),
        (below, json!(1.5), "spec.v in body should be less than 1.5"),
        (integer("multipleOf", json!(3)), json!(7), "should be a multiple of 3"),
        (
            integer("format", json!("int32")),
            json!(3_000_000_000u32),
            "Checked value must be of type integer with format int32 in spec.v",
        ),
        (
            integer("enum", json!([1, 2])),
            json!(3),
            "Unsupported value: 3: supported values: \"1\", \"2\"",
        ),
    ]);
}

#[test]
fn keywords_of_lists_and_objects() {
    let list = |key: &str| json!({"type": "array", key: 1, "items": {"type": "string"}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let mut filled = map.clone();
    filled["minProperties"] = 1.into();
    expect(&[
        (list("minItems"), json!([]), "spec.v in body should have at least 1 items"),
        (list("maxItems"), json!(["a", "b"]), "Too many: 2: must have at most 1 item"),
        (filled, json!({}), "Invalid value: 0: spec.v in body should have at least 1 properties"),
        (map, json!({"a": 1}), "spec.v.a in body must be of type string"),
    ]);
}

#[test]
fn combinations() {
    let either = |keyword: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            keyword: [{"required": ["a"]}, {"required": ["b"]}],
        })
    };
    let choice = [json!({"type": "integer"}), json!({"type": "string"})];
    expect(&[
        (
            either("oneOf"),
            json!({"a": "", "b": ""}),
            "\"spec.v\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ),
        (either("oneOf"), json!({}), "(oneOf). Found none valid"),
        (either("oneOf"), json!({"a": ""}), ""),
        (either("anyOf"), json!({}), "\"spec.v\" must validate at least one schema (anyOf)"),
        (
            json!({"type": "string", "not": {"enum": ["x"]}}),
            json!("x"),
            "\"spec.v\" must not validate the schema (not)",
        ),
        (
            json!({"type": "string", "allOf": [{"maxLength": 1}]}),
            json!("xx"),
            "must validate all the schemas (allOf). None validated",
        ),
        (json!({"x-kubernetes-int-or-string": true, "anyOf": choice}), json!(5), ""),
    ]);
}

#[test]
fn when_all_alternatives_fail_the_one_that_covers_most_is_reported() {
    let text = json!({"type": "string"});
    let schema = |alternatives: Value| {
        json!({
            "type": "object", "properties": {"a": text, "b": text, "c": text},
            "oneOf": alternatives,
        })
    };
    let short = json!({"properties": {"a": {"enum": ["q"]}, "b": {"maxLength": 1}}});
    let other = json!({"properties": {"a": {"not": {"enum": ["q"]}}}});
    expect(&[
        (
            schema(json!([{"required": ["a", "b"]}, {"required": ["c"]}])),
            json!({}),
            "spec.v.a: Required value\nspec.v.b: Required value",
        ),
        (
            schema(json!([other, short])),
            json!({"a": "q", "b": "xx"}),
            "spec.v.b: Too long: may not be more than 1 bytes",
        ),
    ]);
    let schema = json!({"type": "string", "allOf": [{"enum": ["q"]}, {"enum": ["q"]}]});
    let causes = field(schema).validate(&json!({"spec": {"v": "x"}}), None);
    let messages = messages(&causes);
    assert_eq!(messages.iter().filter(|text| text.contains("Unsupported value")).count(), 1);
}

#[test]
fn formats() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "date-time",
            &["2026-01-02T03:04:05Z", "2026-01-02t03:04:05.1+02:00"],
            &["2026-13-02T03:04:05Z", "x"],
        ),
        ("date", &["2026-02-28"], &["2026-02-30", "20260228"]),
        ("datetime", &["2026-01-02t03:04:05.1+02:00"], &["2026-01-02 03:04:05Z"]),
        ("duration", &["1h30m", "5s", "3 days"], &["1 year", "x"]),
        ("uuid", &["6f1ed002-ab54-4c1c-8f5e-3f0d7b7c2a11"], &["6f1ed002"]),
        (
            "uuid4",
            &["6f1ed002-ab54-4c1c-8f5e-3f0d7b7c2a11"],
            &["6f1ed002-ab54-1c1c-8f5e-3f0d7b7c2a11"],
        ),
        ("ipv4", &["10.0.0.1"], &["10.0.0.256", "::1"]),
        ("ipv6", &["::1"], &["10.0.0.1"]),
        ("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0/33", "10.0.0.0"]),
        ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00:5e"]),
        ("uri", &["https://example.com/a", "/a"], &["a b", ""]),
        ("email", &["a@example.com"], &["a@", "a"]),
        ("hostname", &["a.example.com"], &["-a", ""]),
        ("byte", &["YQ=="], &["YQ", "%%%%"]),
        ("hexcolor", &["#fff", "a1b2c3"], &["#ff"]),
        ("rgbcolor", &["rgb(1, 2, 255)"], &["rgb(1,2,256)"]),
        ("isbn10", &["0-306-40615-2"], &["0-306-40615-3"]),
        ("isbn13", &["978-0-306-40615-7"], &["978-0-306-40615-8"]),
        ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
        ("ssn", &["111-22-3333"], &["11-22-3333"]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
        ("k8s-short-name", &["a-b"], &["a.b", "A"]),
        ("k8s-long-name", &["a.b"], &["a..b"]),
        ("no-such-format", &["anything"], &[]),
    ];
    for (format, good, bad) in cases {
        let schema = field(json!({"type": "string", "format": format}));
        let valid = |text: &&&str| schema.validate(&json!({"spec": {"v": text}}), None).is_empty();
        assert_eq!(good.iter().find(|text| !valid(text)), None, "{format}");
        assert_eq!(bad.iter().find(valid), None, "{format}");
    }
}

#[test]
fn parts_that_an_update_does_not_change_are_tolerated() {
    let old = json!({"spec": {"req": "TOO LONG", "lst": [{"k": "a", "v": 1}, {"k": "b"}]}});
    let mut new = old.clone();
    new["spec"]["nn"] = json!("y");
    // The second item is new; the first retains its invalid value under its key.
    new["spec"]["lst"] = json!([{"k": "b"}, {"k": "a", "v": 1}]);
    assert_eq!(messages(&compiled().validate(&new, Some(&old))), [""; 0]);
    new["spec"]["req"] = json!("ALSO LONG");
    let causes = messages(&compiled().validate(&new, Some(&old)));
    assert_eq!(causes, ["spec.req: Too long: may not be more than 5 bytes", NOT_CHECKED]);
}
