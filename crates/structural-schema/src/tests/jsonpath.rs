//! Paths as in printer columns.

use serde_json::{Value, json};

use crate::JsonPath;

fn first(path: &str) -> Option<Value> {
    let object = json!({
        "metadata": {"name": "n", "labels": {"a.b/c": "label"}},
        "spec": {"replicas": 3, "list": ["x", "y", "z"]},
        "status": {"conditions": [
            {"type": "Synced", "status": "False", "code": 7},
            {"type": "Ready", "status": "True"},
        ]},
    });
    JsonPath::parse(path).unwrap().first(&object).cloned()
}

#[test]
fn paths_of_printer_columns() {
    let cases = [
        (".spec.replicas", json!(3)),
        ("{.spec.replicas}", json!(3)),
        ("$.spec.replicas", json!(3)),
        ("spec.replicas", json!(3)),
        (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True")),
        (r#".status.conditions[?(@.type == 'Ready')].status"#, json!("True")),
        (r#".status.conditions[?(@.code>5)].type"#, json!("Synced")),
        (r#".status.conditions[?(@.code)].type"#, json!("Synced")),
        (r#".status.conditions[?(@.type!="Synced")].type"#, json!("Ready")),
        (".status.conditions[*].type", json!("Synced")),
        (".status.conditions[-1].type", json!("Ready")),
        (".status.conditions[-1:].type", Value::Null),
        (".spec.list[1]", json!("y")),
        (r".metadata.labels.a\.b/c", json!("label")),
        (".metadata.labels['a.b/c']", json!("label")),
        (r".metadata.labels['a\.b/c']", json!("label")),
        (".metadata.labels.*", json!("label")),
    ];
    for (path, expected) in cases {
        if expected.is_null() {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        } else {
            assert_eq!(first(path), Some(expected), "{path}");
        }
    }
    for absent in [".spec.none", ".spec.list[7]", ".spec.replicas.x", ".spec.list[?(@.a==1)]"] {
        assert_eq!(first(absent), None, "{absent}");
    }
}

#[test]
fn invalid_paths_are_refused() {
    for path in ["..spec", ".spec[", ".spec[x]", ".a[?(type==1)]", ".a[0]b", ".a[?(@.b==)]"] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

#[test]
fn plain_paths_return_their_fields() {
    let fields = |path| JsonPath::parse(path).unwrap().fields();
    assert_eq!(fields(".spec.a"), Some(vec!["spec".to_owned(), "a".to_owned()]));
    assert_eq!(fields(".spec.a[0]"), None);
}
