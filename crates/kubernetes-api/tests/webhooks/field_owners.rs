//! Field owners in several versions of a custom resource. The webhook renames `spec.count` and the
//! items below it between versions; another definition has no webhook.

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::side::{Side, TestResponse};
use super::wait;

pub type Outcomes = Vec<(String, TestResponse)>;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The last two become unserved, and are then removed.
const VERSIONS: [&str; 4] = ["v1", "v1beta1", "v1alpha2", "v1alpha1"];
/// The webhook refuses to convert objects with this `spec.note`.
const REFUSED: &str = "refuse";

/// The names of the count and of the items in a version.
fn names(version: &str) -> [&'static str; 2] {
    match version {
        "v1" => ["count", "items"],
        "v1beta1" => ["replicas", "pieces"],
        _ => ["number", "elements"],
    }
}

/// The response of the webhook.
pub fn respond(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let refused = objects.iter().any(|object| object["spec"]["note"] == REFUSED);
    let converted: Vec<Value> = objects.iter().map(|object| converted(object, desired)).collect();
    let result = match refused {
        true => json!({"status": "Failure", "message": "rather not"}),
        false => json!({"status": "Success"}),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": result, "convertedObjects": converted},
    })
}

fn converted(object: &Value, desired: &str) -> Value {
    let mut converted = object.clone();
    let version = |api_version: &str| names(api_version.rsplit('/').next().unwrap());
    let before = version(object["apiVersion"].as_str().unwrap());
    converted["apiVersion"] = desired.into();
    if let Some(spec) = converted["spec"].as_object_mut() {
        for (before, after) in before.into_iter().zip(version(desired)) {
            if let Some(value) = spec.remove(before) {
                spec.insert(after.to_owned(), value);
            }
        }
    }
    converted
}

fn version(name: &str) -> Value {
    let [count, items] = names(name);
    let mut spec = json!({"note": {"type": "string"}, "other": {"type": "string"}});
    spec[count] = json!({"type": "integer"});
    spec[items] = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "size": {"type": "integer"}}}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec}}});
    json!({"name": name, "served": true, "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema}})
}

fn definition(plural: &str, kind: &str, versions: &[&str], conversion: Value) -> Value {
    let versions: Vec<Value> = versions.iter().map(|name| version(name)).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.owned.example")},
        "spec": {
            "group": "owned.example", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
            "versions": versions, "conversion": conversion,
        },
    })
}

/// Sends requests about the objects of one definition, and records the responses.
struct Talk<'a> {
    side: &'a Side,
    plural: &'static str,
    kind: &'static str,
    name: &'static str,
    out: Outcomes,
}

impl Talk<'_> {
    fn path(&self, version: &str) -> String {
        format!("/apis/owned.example/{version}/{}", self.plural)
    }

    fn object(&self, version: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("owned.example/{version}"), "kind": self.kind,
            "metadata": {"name": self.name}, "spec": spec})
    }

    async fn send(
        &mut self,
        what: &str,
        (method, media): (&str, &str),
        path: String,
        body: Value,
    ) -> Value {
        let headers = [("content-type", media)];
        let mut response = self.side.send_with(method, &path, body, &headers).await;
        plain(&mut response.body);
        let comparable = response.body.clone();
        self.out.push((format!("{} {}: {what}", self.plural, self.name), response));
        comparable
    }

    async fn apply(&mut self, what: &str, by: &str, version: &str, spec: Value) -> Value {
        let path = format!("{}/{}?fieldManager={by}", self.path(version), self.name);
        let body = self.object(version, spec);
        self.send(what, ("PATCH", "application/apply-patch+yaml"), path, body).await
    }

    async fn patch(&mut self, what: &str, by: &str, version: &str, spec: Value) -> Value {
        let path = format!("{}/{}?fieldManager={by}", self.path(version), self.name);
        let body = json!({"spec": spec});
        self.send(what, ("PATCH", "application/merge-patch+json"), path, body).await
    }

    /// Replaces the object in the version v1beta1.
    async fn replace(&mut self, by: &str, spec: Value) {
        let path = format!("{}/{}", self.path("v1beta1"), self.name);
        let before = self.side.make("GET", &path, Value::Null).await;
        let mut body = self.object("v1beta1", spec);
        body["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        let path = format!("{path}?fieldManager={by}");
        self.send("replaced", ("PUT", "application/json"), path, body).await;
    }

    async fn read(&mut self, what: &str, version: &str) -> Value {
        let path = format!("{}/{}", self.path(version), self.name);
        self.send(what, ("GET", "application/json"), path, Value::Null).await
    }

    async fn define(&self, versions: &[&str], conversion: Value) {
        let definition = definition(self.plural, self.kind, versions, conversion);
        self.side.make("POST", DEFINITIONS, definition).await;
        for version in versions {
            self.until(version, 200).await;
        }
    }

    async fn until(&self, version: &str, code: u16) {
        wait::until("the versions are as defined", async || {
            self.side.send("GET", &self.path(version), Value::Null).await.code == code
        })
        .await;
    }

    /// Changes the versions of the definition.
    async fn redefine(&self, versions: Vec<Value>) {
        let path = format!("{DEFINITIONS}/{}.owned.example", self.plural);
        self.side.make("PATCH", &path, json!({"spec": {"versions": versions}})).await;
    }
}

/// Removes generated values. Sorts entries, whose order ignores seconds, and causes, which have no
/// order in kube-apiserver.
fn plain(object: &mut Value) {
    if let Some(causes) = object.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_cached_key(|cause| cause["field"].to_string());
    }
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.retain(|field, _| {
        !["uid", "creationTimestamp", "resourceVersion"].contains(&field.as_str())
    });
    let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) else {
        return;
    };
    for entry in entries.iter_mut() {
        entry.as_object_mut().unwrap().remove("time");
    }
    entries.sort_by_cached_key(|entry| {
        ["manager", "operation", "apiVersion"].map(|name| entry[name].to_string())
    });
}

/// Objects and owners through all their changes.
pub async fn run(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = renamed(side, hooks).await;
    out.extend(by_name(side).await);
    out
}

async fn renamed(side: &Side, hooks: &HookServer) -> Outcomes {
    let name = "one";
    let mut talk = Talk { side, plural: "parts", kind: "Part", name, out: Outcomes::new() };
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": side.client(hooks, "rename")}});
    talk.define(&VERSIONS, conversion).await;
    let whole = json!({"replicas": 2, "note": "a", "pieces": [{"name": "x", "size": 1},
        {"name": "y", "size": 2}]});
    talk.apply("created", "first", "v1beta1", whole).await;
    talk.apply("conflict", "second", "v1", json!({"count": 3})).await;
    talk.apply("shared", "second", "v1", json!({"count": 2})).await;
    talk.apply("conflict in two versions", "third", "v1alpha1", json!({"number": 3})).await;
    let item = json!({"items": [{"name": "x", "size": 7}]});
    talk.apply("conflict about an item", "second", "v1", item).await;
    // Fields that it no longer states are removed, under any name; those that others state stay.
    let less = json!({"note": "a", "items": [{"name": "y", "size": 2}]});
    talk.apply("another version of its own", "first", "v1", less).await;
    talk.read("in the new version", "v1beta1").await;
    talk.patch("updated", "fourth", "v1beta1", json!({"replicas": 5})).await;
    talk.apply("conflict with an update", "second", "v1", json!({"count": 2})).await;
    talk.apply("taken by force", "second&force=true", "v1", json!({"count": 2})).await;
    talk.patch("updated in a third", "fifth", "v1alpha1", json!({"number": 6})).await;
    talk.patch("updated in a fourth", "sixth", "v1alpha2", json!({"other": "b"})).await;
    talk.replace("seventh", json!({"replicas": 6, "note": "c", "pieces": []})).await;
    talk.apply("nothing stated any more", "second", "v1", json!({})).await;
    refused(&mut talk).await;
    fewer(&mut talk).await;
    talk.out
}

/// The webhook refuses to convert the objects for the comparison.
async fn refused(talk: &mut Talk<'_>) {
    talk.name = "two";
    talk.apply("created", "first", "v1beta1", json!({"replicas": 2})).await;
    talk.apply("not converted", "second", "v1", json!({"note": REFUSED, "count": 2})).await;
    talk.patch("not tracked", "third", "v1", json!({"note": REFUSED})).await;
    talk.apply("not converted either", "second", "v1", json!({"other": "d"})).await;
    talk.patch("updated", "third", "v1", json!({"note": "e"})).await;
    talk.apply("converted again", "second", "v1", json!({"count": 2})).await;
}

/// Versions become unserved, and are then removed.
async fn fewer(talk: &mut Talk<'_>) {
    for name in ["unserved", "gone", "gone-updated"] {
        talk.name = name;
        let [third, fourth] = ["v1alpha1", "v1alpha2"];
        talk.apply("created", "first", "v1", json!({"note": "a"})).await;
        talk.patch("updated in a third", "third", third, json!({"number": 7})).await;
        talk.patch("updated in a fourth", "fourth", fourth, json!({"other": "f"})).await;
    }
    let mut versions: Vec<Value> = VERSIONS.map(version).to_vec();
    versions[2]["served"] = false.into();
    talk.redefine(versions.clone()).await;
    talk.until("v1alpha2", 404).await;
    talk.name = "unserved";
    talk.apply("conflict", "second", "v1", json!({"other": "g", "count": 8})).await;
    talk.apply("shared", "second", "v1", json!({"other": "f"})).await;
    talk.patch("updated", "fifth", "v1", json!({"count": 9})).await;
    versions.truncate(3);
    talk.redefine(versions).await;
    talk.until("v1alpha1", 404).await;
    talk.name = "gone";
    talk.read("as it was", "v1").await;
    talk.apply("applied", "second", "v1", json!({"note": "a"})).await;
    talk.name = "gone-updated";
    talk.patch("updated", "second", "v1", json!({"note": "b"})).await;
    talk.apply("applied after that", "second", "v1", json!({"note": "b"})).await;
}

/// Versions that differ in more than their name, without a webhook.
async fn by_name(side: &Side) -> Outcomes {
    let name = "one";
    let mut talk = Talk { side, plural: "plains", kind: "Plain", name, out: Outcomes::new() };
    talk.define(&["v1", "v1beta1"], json!({"strategy": "None"})).await;
    talk.apply("created", "first", "v1beta1", json!({"note": "a"})).await;
    talk.apply("conflict", "second", "v1", json!({"note": "b"})).await;
    talk.apply("shared", "second", "v1", json!({"note": "a"})).await;
    talk.patch("updated", "third", "v1beta1", json!({"other": "c"})).await;
    talk.apply("another version of its own", "first", "v1", json!({"other": "c"})).await;
    talk.apply("unknown in another version", "fourth", "v1", json!({"count": 1})).await;
    talk.patch("unknown in another version, updated", "fifth", "v1", json!({"count": 2})).await;
    talk.apply("applied after that", "first", "v1", json!({"other": "d"})).await;
    talk.read("in the end", "v1").await;
    talk.out
}

/// Cases in which the real server loses all owners, or refuses all further applies, and this one
/// continues.
const OWN_WAY: [&str; 7] = [
    "parts two: not tracked",
    "parts two: not converted either",
    "parts two: updated",
    "parts two: converted again",
    "parts gone: applied",
    "parts gone-updated: updated",
    "parts gone-updated: applied after that",
];

/// Compares the responses and owners of both servers, except where this one differs by design.
pub fn compare(own: &Outcomes, real: &Outcomes) {
    assert_eq!(own.len(), real.len());
    let comparable =
        |response: &TestResponse| json!([response.code, response.body, response.warnings]);
    let pairs = own
        .iter()
        .zip(real)
        .map(|((case, own), (_, real))| (case, comparable(own), comparable(real)));
    let differing: Vec<String> = pairs
        .filter(|(case, own, real)| (own != real) != OWN_WAY.contains(&case.as_str()))
        .map(|(case, own, real)| format!("{case}:\n  {own}\n  {real}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let of = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        &found.unwrap_or_else(|| panic!("no {case}")).1
    };
    let owners = |case: &str| -> Vec<String> {
        let response = of(case);
        assert_eq!(response.code, 200, "{case}: {}", response.body);
        let entries = response.body["metadata"]["managedFields"].as_array().into_iter().flatten();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
        let comparable = entries.map(|entry| {
            let version = text(entry, "apiVersion").replace("owned.example/", "");
            format!("{} {version} {}", text(entry, "manager"), entry["fieldsV1"]["f:spec"])
        });
        comparable.collect()
    };
    let conflict = of("parts one: conflict");
    assert_eq!(
        conflict.message(),
        "Apply failed with 1 conflict: conflict with \"first\": .spec.replicas"
    );
    let less = &of("parts one: another version of its own").body["spec"];
    assert_eq!(*less, json!({"note": "a", "count": 2, "items": [{"name": "y", "size": 2}]}));
    assert_eq!(owners("parts one: taken by force")[1..], ["second v1 {\"f:count\":{}}".to_owned()]);
    let refused = of("parts two: not converted");
    assert_eq!(
        (refused.code, refused.message()),
        (
            500,
            "failed to convert new object: conversion webhook for owned.example/v1, Kind=Part \
             failed: rather not"
        )
    );
    // A webhook that fails for a while removes no owners.
    let first = "first v1beta1 {\"f:replicas\":{}}";
    assert_eq!(owners("parts two: not tracked"), [first]);
    assert_eq!(owners("parts two: converted again"), [first, "second v1 {\"f:count\":{}}"]);
    // An owner in a removed version is dropped, and no other owner is affected.
    assert_eq!(
        owners("parts gone: applied"),
        [
            "first v1 {\"f:note\":{}}",
            "fourth v1alpha2 {\"f:other\":{}}",
            "second v1 {\"f:note\":{}}"
        ]
    );
    let unfit = of("plains one: unknown in another version");
    let text = "failed to convert new object: .spec.count: field not declared in schema";
    assert_eq!((unfit.code, unfit.message()), (500, text));
}
