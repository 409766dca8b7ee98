//! Rules in CEL: the objects that they refuse, with field and text, and definitions that are
//! refused because of their rules.

use api_meta::status::Cause;
use serde_json::{Value, json};

use crate::Schema;

fn whole(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn with_rule(mut node: Value, rule: Value) -> Value {
    node["x-kubernetes-validations"] = json!([rule]);
    node
}

fn schema(root: &Value) -> Schema {
    assert_eq!(crate::check(root, "s"), []);
    Schema::compile(root).unwrap()
}

fn messages(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn create(root: &Value, object: &Value) -> Vec<String> {
    messages(&schema(root).validate(object, None))
}

fn update(root: &Value, object: &Value, old: &Value) -> Vec<String> {
    messages(&schema(root).validate(object, Some(old)))
}

fn refused(root: &Value) -> Vec<String> {
    messages(&crate::check(root, "s"))
}

#[test]
fn a_violation_names_field_value_and_message() {
    let replicas = json!({"type": "integer"});
    let spec = json!({"type": "object", "properties": {
        "replicas": with_rule(replicas, json!({"rule": "self <= 5", "message": "too many"})),
        "min": {"type": "integer"}, "max": {"type": "integer"}}});
    let root = whole(with_rule(spec, json!({"rule": "self.min <= self.max"})));
    let object = json!({"spec": {"replicas": 7, "min": 2, "max": 1}});
    assert_eq!(
        create(&root, &object),
        [
            "spec: Invalid value: failed rule: self.min <= self.max",
            "spec.replicas: Invalid value: 7: too many"
        ]
    );
    assert_eq!(create(&root, &json!({"spec": {"replicas": 5, "min": 1, "max": 1}})), [""; 0]);
}

#[test]
fn a_rule_that_fails_to_evaluate_says_so() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let root = whole(with_rule(spec, json!({"rule": "self.a == 'x'"})));
    assert_eq!(
        create(&root, &json!({"spec": {}})),
        ["spec: Invalid value: \"object\": no such key: a evaluating rule: self.a == 'x'"]
    );
}

#[test]
fn violations_have_the_reason_field_and_message_of_their_rule() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let rule = |reason: &str, path: &str| {
        json!({"rule": "self.a == 'x'", "reason": reason, "fieldPath": path,
            "messageExpression": "'got ' + self.a"})
    };
    let messages = |reason, path| {
        create(&whole(with_rule(spec.clone(), rule(reason, path))), &json!({"spec": {"a": "y"}}))
    };
    assert_eq!(messages("FieldValueForbidden", ".a"), ["spec.a: Forbidden: got y"]);
    assert_eq!(messages("FieldValueRequired", ".m['k.1']"), ["spec.m[k.1]: Required value: got y"]);
    assert_eq!(messages("FieldValueInvalid", "['a']"), ["spec.a: Invalid value: got y"]);
    assert_eq!(messages("FieldValueDuplicate", ".a"), ["spec.a: Duplicate value"]);
    let at = "s.properties[spec].x-kubernetes-validations[0]";
    assert_eq!(
        refused(&whole(with_rule(spec.clone(), rule("Other", ".b")))),
        [
            format!(
                "{at}.reason: Unsupported value: \"Other\": supported values: \
                 \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \
                 \"FieldValueRequired\""
            ),
            format!("{at}.fieldPath: Invalid value: \".b\": must be a valid path"),
        ]
    );
}

#[test]
fn transition_rules_read_the_old_value() {
    let field = with_rule(
        json!({"type": "string", "maxLength": 9}),
        json!({"rule": "self == oldSelf", "message": "immutable"}),
    );
    let item = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string"}, "v": field.clone()}});
    let list = json!({"type": "array", "maxItems": 9, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": item});
    let root = whole(json!({"type": "object", "properties": {"f": field, "l": list}}));
    let old = json!({"spec": {"f": "a", "l": [{"k": "1", "v": "x"}, {"k": "2", "v": "y"}]}});
    assert_eq!(create(&root, &old), [""; 0]);
    let new = json!({"spec": {"f": "b", "l": [{"k": "2", "v": "z"}, {"k": "3", "v": "n"}]}});
    assert_eq!(
        update(&root, &new, &old),
        ["spec.f: Invalid value: \"b\": immutable", "spec.l[0].v: Invalid value: \"z\": immutable"]
    );
}

#[test]
fn transition_rules_need_lists_with_keys() {
    let item =
        with_rule(json!({"type": "string", "maxLength": 5}), json!({"rule": "self == oldSelf"}));
    for list_type in ["atomic", "set"] {
        let root = whole(json!({"type": "array", "maxItems": 5,
            "x-kubernetes-list-type": list_type, "items": item.clone()}));
        assert_eq!(
            refused(&root),
            ["s.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \
              \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the \
              schema within s.properties[spec]"]
        );
    }
}

#[test]
fn an_optional_old_value_is_available_on_create() {
    let rule = json!({"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true});
    let root = whole(with_rule(json!({"type": "string"}), rule));
    assert_eq!(create(&root, &json!({"spec": "first"})), [""; 0]);
    assert_eq!(create(&root, &json!({"spec": "other"})).len(), 1);
    assert_eq!(update(&root, &json!({"spec": "other"}), &json!({"spec": "first"})), [""; 0]);
    let unused = json!({"rule": "self == 'x'", "optionalOldSelf": true});
    assert_eq!(
        refused(&whole(with_rule(json!({"type": "string"}), unused))),
        [
            "s.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may \
          not be set if oldSelf is not used in rule"
        ]
    );
}

#[test]
fn unchanged_invalid_values_are_tolerated() {
    let a = with_rule(json!({"type": "string"}), json!({"rule": "self == 'good'"}));
    let list = json!({"type": "array", "maxItems": 3, "items": a.clone()});
    let root = whole(json!({"type": "object", "properties": {
        "a": a, "l": list, "other": {"type": "string"}}}));
    let old = json!({"spec": {"a": "bad", "l": ["bad"], "other": "1"}});
    let new = json!({"spec": {"a": "bad", "l": ["bad"], "other": "2"}});
    assert_eq!(update(&root, &new, &old), [""; 0]);
    let new = json!({"spec": {"a": "worse", "l": ["bad", "bad"], "other": "1"}});
    assert_eq!(update(&root, &new, &old).len(), 3);
}

#[test]
fn rules_are_evaluated_only_on_valid_objects() {
    let spec =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    let root = whole(with_rule(spec, json!({"rule": "self.a == 'x'"})));
    assert_eq!(
        create(&root, &json!({"spec": {}})),
        [
            "spec.a: Required value",
            "<nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation"
        ]
    );
}

#[test]
fn rules_can_read_the_name_of_whole_objects() {
    let root = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.metadata.name.startsWith('a') && self.kind == 'Foo'"}]});
    let object =
        |name: &str| json!({"kind": "Foo", "apiVersion": "g/v1", "metadata": {"name": name}});
    assert_eq!(create(&root, &object("abc")), [""; 0]);
    assert_eq!(create(&root, &object("b")).len(), 1);
}

#[test]
fn a_rule_that_may_cost_too_much_is_refused() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let rule = json!({"rule": "self.all(x, self.all(y, x == y))"});
    let at = "s.properties[spec].x-kubernetes-validations[0].rule";
    let texts = refused(&whole(with_rule(list.clone(), rule.clone())));
    assert_eq!(
        texts[0],
        format!(
            "{at}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try \
             simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, \
             maps, and strings are declared)"
        )
    );
    assert!(texts[1].contains("contributed to estimated rule cost total"), "{texts:?}");
    assert!(
        texts[2].starts_with("s: Forbidden: x-kubernetes-validations estimated rule cost total")
    );
    // A definition that is already served stays writable.
    let root = whole(with_rule(list, rule.clone()));
    assert_eq!(crate::check_update(&root, "s", Some(&root)), []);
    let small =
        json!({"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 9}});
    assert_eq!(refused(&whole(with_rule(small, rule))), [""; 0]);
}

#[test]
fn evaluation_of_a_rule_ends_at_its_cost_limit() {
    let list = json!({"type": "array", "maxItems": 200, "items": {"type": "integer"}});
    let rule =
        json!({"rule": "self.all(a, self.all(b, a + b >= 0))", "message": "nothing negative"});
    let mut root = whole(with_rule(list, rule));
    assert_eq!(refused(&root), [""; 0]);
    root["properties"]["spec"]["maxItems"] = 1_000.into();
    // Served since before costs were estimated.
    assert_eq!(crate::check_update(&root, "s", Some(&root)), []);
    let schema = Schema::compile(&root).unwrap();
    let numbers: Vec<u32> = (0..1_000).collect();
    assert_eq!(
        messages(&schema.validate(&json!({"spec": numbers}), None)),
        ["spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no \
          further validation rules will be run due to call cost exceeds limit for rule: nothing \
          negative"]
    );
}

#[test]
fn all_rules_of_an_object_share_a_cost_budget() {
    let item = with_rule(
        json!({"type": "array", "maxItems": 300, "items": {"type": "integer"}}),
        json!({"rule": "self.all(a, self.all(b, a + b >= 0))"}),
    );
    let root = whole(json!({"type": "array", "maxItems": 100, "items": item}));
    let schema = Schema::compile(&root).unwrap();
    let rows = vec![vec![1; 300]; 40];
    let causes = messages(&schema.validate(&json!({"spec": rows}), None));
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(causes[0].ends_with(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    ));
}

#[test]
fn a_rule_that_does_not_compile_is_refused_with_its_path() {
    let root = whole(with_rule(json!({"type": "string"}), json!({"rule": "self.foo"})));
    assert_eq!(
        refused(&root),
        ["s.properties[spec].x-kubernetes-validations[0].rule: Invalid value: \
          {\"Rule\":\"self.foo\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
          \"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: type 'string' does not \
          support field selection\n | self.foo\n | ....^"]
    );
    let root = whole(with_rule(json!({"type": "string"}), json!({"rule": "self"})));
    assert!(refused(&root)[0].ends_with("cel expression must evaluate to a bool"));
    let rule = json!({"rule": "true", "messageExpression": "1"});
    let root = whole(with_rule(json!({"type": "string"}), rule));
    assert!(refused(&root)[0].ends_with("messageExpression must evaluate to a string"));
}

/// Rules like those of gateways and other public definitions.
#[test]
fn realistic_rules_hold() {
    let path = json!({"type": "object", "properties": {
        "type": {"type": "string", "enum": ["Exact", "Prefix", "Regex"]},
        "value": {"type": "string", "maxLength": 1024}},
        "x-kubernetes-validations": [
            {"rule": "self.type in ['Exact', 'Prefix'] ? self.value.startsWith('/') : true",
                "message": "value must be an absolute path"},
            {"rule": "self.type == 'Regex' || !self.value.contains('//')",
                "message": "must not contain '//'"}]});
    let listener = json!({"type": "object", "required": ["name", "port", "protocol"], "properties": {
        "name": {"type": "string", "maxLength": 63},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "maxLength": 20},
        "hostname": {"type": "string", "maxLength": 253},
        "tls": {"type": "object", "properties": {"mode": {"type": "string", "maxLength": 20}}}}});
    let spec = json!({"type": "object", "properties": {
        "path": path,
        "listeners": {"type": "array", "maxItems": 16, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "items": listener,
            "x-kubernetes-validations": [
                {"rule": "self.all(l, l.protocol in ['HTTP', 'TCP'] ? !has(l.tls) : true)",
                    "message": "tls must not be specified for protocols ['HTTP', 'TCP']"},
                {"rule": "self.all(a, self.exists_one(b, a.port == b.port && (has(a.hostname) && \
                    has(b.hostname) ? a.hostname == b.hostname : !has(a.hostname) && \
                    !has(b.hostname))))",
                    "message": "port and hostname must be unique"}]}}});
    let root = whole(spec);
    let listener = |name: &str, port: u32| json!({"name": name, "port": port, "protocol": "HTTP"});
    let good = json!({"spec": {"path": {"type": "Exact", "value": "/a"},
        "listeners": [listener("a", 80), listener("b", 81)]}});
    assert_eq!(create(&root, &good), [""; 0]);
    let mut bad = json!({"spec": {"path": {"type": "Prefix", "value": "a//b"},
        "listeners": [listener("a", 80), listener("b", 80)]}});
    bad["spec"]["listeners"][0]["tls"] = json!({"mode": "Terminate"});
    assert_eq!(
        create(&root, &bad),
        [
            "spec.listeners: Invalid value: tls must not be specified for protocols ['HTTP', 'TCP']",
            "spec.listeners: Invalid value: port and hostname must be unique",
            "spec.path: Invalid value: value must be an absolute path",
            "spec.path: Invalid value: must not contain '//'",
        ]
    );
}
