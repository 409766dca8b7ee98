//! The OpenAPI extensions of built-in types that `k8s-openapi` omits: how lists and maps merge,
//! defaults, and what is required on the wire.
//!
//! `kubectl apply` computes its patches from them, and field ownership follows them. The table is
//! what kube-apiserver publishes; `cargo test -p apiserver --test published` compares the two and
//! writes the next table.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

const TABLE: &str = include_str!("marks.txt");

/// By the name of the type: the marks of the type itself (with an empty property name) and of its
/// properties.
type Marks = BTreeMap<&'static str, Vec<(&'static str, &'static str)>>;

fn marks() -> &'static Marks {
    static MARKS: OnceLock<Marks> = OnceLock::new();
    MARKS.get_or_init(|| {
        let mut marks = Marks::new();
        let mut model = "";
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.trim_start().split_once(' ').unwrap_or((line.trim(), ""));
            if line.starts_with(' ') {
                marks.entry(model).or_default().push((name, rest));
            } else {
                model = name;
                if !rest.is_empty() {
                    marks.entry(model).or_default().push(("", rest));
                }
            }
        }
        marks
    })
}

/// Adds the marks of the type `name` to its definition, in place.
pub fn annotate(name: &str, definition: &mut Value) {
    definition.as_object_mut().expect("definitions are objects").remove("required");
    for (property, marks) in marks().get(name).into_iter().flatten() {
        let schema = match *property {
            "" => Some(&mut *definition),
            property => definition["properties"].get_mut(property),
        };
        if let Some(schema) = schema {
            add(schema, marks);
        }
    }
}

/// `list=map:port,protocol patch=merge:port default="TCP"`; the default is JSON, and comes last.
fn add(schema: &mut Value, marks: &str) {
    let (marks, default) = match marks.split_once("default=") {
        Some((marks, default)) => (marks, Some(default)),
        None => (marks, None),
    };
    for mark in marks.split_ascii_whitespace() {
        let (name, value) = mark.split_once('=').unwrap_or((mark, ""));
        let (kind, keys) = value.split_once(':').unwrap_or((value, ""));
        match name {
            "list" => schema["x-kubernetes-list-type"] = kind.into(),
            "map" => schema["x-kubernetes-map-type"] = kind.into(),
            "patch" => schema["x-kubernetes-patch-strategy"] = kind.into(),
            "required" => schema["required"] = value.split(',').collect(),
            _ => unreachable!("the table has no other marks: {mark}"),
        }
        match name {
            "list" if !keys.is_empty() => {
                let keys: Vec<&str> = keys.split(',').collect();
                schema["x-kubernetes-list-map-keys"] = json!(keys);
            }
            "patch" if !keys.is_empty() => schema["x-kubernetes-patch-merge-key"] = keys.into(),
            _ => {}
        }
    }
    if let Some(default) = default {
        schema["default"] = serde_json::from_str(default).expect("the table's defaults are JSON");
    }
}
