//! What a real kube-apiserver publishes about the types of built-in kinds, compared with the table
//! in the source.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;

use apiserver::schemas::{Builtin, builtins};
use serde_json::{Map, Value};
use testbed::RealCluster;

/// The table in the source.
const TABLE: &str = include_str!("../src/schemas/marks.txt");

type Models = Map<String, Value>;

fn get(cluster: &RealCluster, path: &str) -> Value {
    let output = cluster.kubectl().unwrap().args(["get", "--raw", path]).output().unwrap();
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// All models of the versions that `kinds` are in.
fn models(cluster: &RealCluster, kinds: &[Builtin]) -> Models {
    let paths = kinds.iter().map(|kind| match kind.gvk() {
        ("", version, _) => format!("/openapi/v3/api/{version}"),
        (group, version, _) => format!("/openapi/v3/apis/{group}/{version}"),
    });
    let paths: std::collections::BTreeSet<String> = paths.collect();
    let mut all = Models::new();
    for path in paths {
        let document = get(cluster, &path);
        all.extend(document["components"]["schemas"].as_object().unwrap().clone());
    }
    all
}

/// The models that `name` leads to, itself among them.
fn reachable_models(models: &Models, name: &str, into: &mut BTreeMap<String, Value>) {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    found.push(target.rsplit('/').next().unwrap().to_owned());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    if into.contains_key(name) {
        return;
    }
    let model = &models[name];
    into.insert(name.to_owned(), model.clone());
    let mut found = Vec::new();
    references(model, &mut found);
    found.iter().for_each(|name| reachable_models(models, name, into));
}

/// The marks of a type or property, in the format of the table.
fn marks(schema: &Value) -> String {
    let mut out = String::new();
    let text = |name: &str| schema[name].as_str();
    if let Some(kind) = text("x-kubernetes-list-type") {
        let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
        let keys = if keys.is_empty() { String::new() } else { format!(":{}", keys.join(",")) };
        write!(out, " list={kind}{keys}").unwrap();
    }
    if let Some(kind) = text("x-kubernetes-map-type") {
        write!(out, " map={kind}").unwrap();
    }
    if let Some(strategy) = text("x-kubernetes-patch-strategy") {
        let key = text("x-kubernetes-patch-merge-key").map(|key| format!(":{key}"));
        write!(out, " patch={strategy}{}", key.unwrap_or_default()).unwrap();
    }
    if let Some(required) = schema["required"].as_array() {
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        write!(out, " required={}", required.join(",")).unwrap();
    }
    if let Some(default) = schema.get("default") {
        write!(out, " default={default}").unwrap();
    }
    out
}

/// The table as the real server has it.
fn table(models: &BTreeMap<String, Value>) -> String {
    let mut out = String::from(
        "# The marks of built-in types: see `marks.rs`. Written by `cargo test -p apiserver --test \
         published`.\n",
    );
    for (name, model) in models {
        let mut lines = String::new();
        for (property, schema) in model["properties"].as_object().into_iter().flatten() {
            let marks = marks(schema);
            if !marks.is_empty() {
                writeln!(lines, " {property}{marks}").unwrap();
            }
        }
        let own = marks(model);
        if !own.is_empty() || !lines.is_empty() {
            writeln!(out, "{name}{own}").unwrap();
            out.push_str(&lines);
        }
    }
    out
}

#[test]
fn built_in_types_merge_as_kube_apiserver_publishes_them() {
    let cluster = RealCluster::start().unwrap();
    let models = models(&cluster, builtins());
    let mut used = BTreeMap::new();
    builtins().iter().for_each(|kind| reachable_models(&models, &kind.definition(), &mut used));
    let expected = table(&used);
    if expected != TABLE {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("marks.txt");
        std::fs::write(&path, expected).unwrap();
        panic!("src/schemas/marks.txt is not what the server publishes: see {}", path.display());
    }
    for kind in builtins() {
        let real = kind.merge_schema_from(models.clone()).unwrap();
        assert!(*kind.merge_schema() == real, "{:?} merges otherwise", kind.gvk());
    }
}
