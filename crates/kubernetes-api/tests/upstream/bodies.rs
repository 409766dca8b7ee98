//! Bodies with unknown fields, duplicate keys, or a version that is not allowed.

use http::Method;
use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::wait::until;
use super::world::{loose_definition, run};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LOOSE: &str = "/apis/bodies.example.org/v1/namespaces/default/looses";

/// Paths and documents with unknown fields and duplicate keys.
const DOCUMENTS: &[(&str, &str)] = &[
    (
        MAPS,
        r#"{"metadata": {"name": "b"}, "data": {"k": "1"}, "zoo": 1, "data": {"k": "2"}, "ant": 1}"#,
    ),
    (MAPS, r#"{"zoo": 1, "metadata": {"name": "b", "name": "b"}, "ant": 2}"#),
    (MAPS, r#"{"metadata": {"name": "b"}, "data": {"k": "1", "k": "2"}, "zoo": {"x": 1, "x": 2}}"#),
    (MAPS, r#"{"zoo": 1, "zoo": 2, "metadata": {"name": "b", "labels": {"a": "1", "a": "2"}}}"#),
    (
        MAPS,
        r#"{"metadata": {"name": "b", "zoo": {"b": 1}, "ant": [{"x": 1}]}, "data": {"k": "1"}}"#,
    ),
    (
        PODS,
        r#"{"metadata": {"name": "b"},
            "spec": {"zoo": 1, "containers": [{"name": "c", "image": "i", "imag": "i"}]},
            "spec": {"automountServiceAccountToken": false, "containers": [
                {"image": "i", "image": "i", "name": "c", "nam": "c", "env": [{"x": 1, "name": "e"}]}
            ]}}"#,
    ),
    (
        LOOSE,
        r#"{"apiVersion": "bodies.example.org/v1", "kind": "Loose", "zoo": 1,
            "metadata": {"name": "b", "ant": 1}, "spec": {"a": {"x": 1, "x": 2}, "a": 1}}"#,
    ),
];

fn outcome(response: &TestResponse) -> Value {
    let warnings = response.headers.get_all("warning").iter();
    let warnings: Vec<&str> = warnings.map(|text| text.to_str().unwrap()).collect();
    json!([response.code, response.json()["message"], warnings])
}

#[test]
fn problems_of_a_body_are_reported_in_its_order_like_kube_apiserver_does() {
    run(async |world| {
        let definition = loose_definition("bodies.example.org", "Loose");
        for side in world.sides() {
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            side.post(definitions, &definition).await.success();
            until("the kind is served", async || side.get(LOOSE).await.code == 200).await;
        }
        for (path, document) in DOCUMENTS {
            for (validation, code) in [("Strict", 400), ("Warn", 201), ("Ignore", 201)] {
                let path = format!("{path}?dryRun=All&fieldValidation={validation}");
                let headers = [("content-type", "application/json")];
                let send = async |side: &Side| {
                    outcome(&side.send(Method::POST, &path, &headers, *document).await)
                };
                let (real, drover) = (send(&world.real).await, send(&world.drover).await);
                assert_eq!(drover, real, "{validation} {document}");
                assert_eq!(real[0], code, "{real}");
            }
        }
    });
}

/// Code and reason of a create, the message of an error, and the name of the object.
fn created(response: &TestResponse) -> Value {
    let body = response.json();
    let is_refused = response.code >= 400;
    let message = if is_refused { body["message"].clone() } else { Value::Null };
    json!([response.code, body["reason"], message, body["metadata"]["name"]])
}

#[test]
fn a_version_in_a_create_is_rejected_where_kube_apiserver_rejects_it() {
    run(async |world| {
        for (name, version) in [("versioned", "5"), ("-", "5"), ("odd", "x"), ("none", "0")] {
            for query in ["?dryRun=All", ""] {
                let map = json!({"metadata": {"name": name, "resourceVersion": version}});
                let path = format!("{MAPS}{query}");
                let real = created(&world.real.post(&path, &map).await);
                let drover = created(&world.drover.post(&path, &map).await);
                assert_eq!(drover, real, "(drover, kube-apiserver) {name} {version} {query}");
            }
        }
        let map = json!({"metadata": {"name": "versioned", "resourceVersion": "5"}});
        assert_eq!(world.real.post(&format!("{MAPS}?dryRun=All"), &map).await.code, 201);
        assert_eq!(world.real.post(MAPS, &map).await.code, 500);
        assert_eq!(world.drover.get(&format!("{MAPS}/versioned")).await.code, 404);
    });
}
