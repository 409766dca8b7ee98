//! Deletion of namespaces.

use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::world::run;

/// The parts of the response that are compared, without each server's own values.
fn comparable(response: &TestResponse) -> Value {
    let mut body = response.json();
    if response.code != 200 {
        return json!([response.code, body["reason"], body["message"]]);
    }
    let metadata = body["metadata"].as_object_mut().unwrap();
    for own in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(own);
    }
    for entry in metadata.get_mut("managedFields").unwrap().as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("time");
        entry.as_object_mut().unwrap().remove("manager");
    }
    json!([response.code, body])
}

async fn finalized(side: &Side, bodies: &[Value]) -> Vec<Value> {
    let namespace = json!({
        "metadata": {
            "name": "ending",
            "labels": {"a": "1", "b": "2"},
            "annotations": {"note": "x"},
            "finalizers": ["example.com/meta"],
        },
        "spec": {"finalizers": ["example.com/hold"]},
    });
    side.post("/api/v1/namespaces", &namespace).await.success();
    let mut all = Vec::new();
    for body in bodies {
        all.push(comparable(&side.put("/api/v1/namespaces/ending/finalize", body).await));
        all.push(comparable(&side.get("/api/v1/namespaces/ending").await));
    }
    all
}

#[test]
fn finalize_replaces_all_but_the_status_like_kube_apiserver() {
    run(async |world| {
        let named = |mut body: Value| {
            body["metadata"]["name"] = "ending".into();
            body
        };
        let all = json!({"spec": {"finalizers": ["kubernetes", "example.com/two"]}});
        let bodies = [
            named(json!({"metadata": {"labels": {"a": "1"}}, "spec": all["spec"]})),
            named(all.clone()),
            named(json!({"metadata": {"annotations": {"note": "y"}}, "status": {"phase": "Gone"}})),
            named(json!({
                "metadata": {"labels": {"b": "bad value!"}},
                "spec": {"finalizers": ["kubernetes"]},
            })),
            named(json!({"metadata": {"resourceVersion": "1"}, "spec": all["spec"]})),
            named(json!({"spec": {"finalizers": ["Bad!"]}})),
            json!({"spec": all["spec"]}),
            json!({"metadata": {"name": "other"}, "spec": all["spec"]}),
            named(json!({"spec": {"finalizers": ["kubernetes"], "unknown": 1}})),
        ];
        let (real, drover) =
            tokio::join!(finalized(&world.real, &bodies), finalized(&world.drover, &bodies));
        for (at, (drover, real)) in drover.iter().zip(&real).enumerate() {
            assert_eq!(drover, real, "(drover, kube-apiserver) {}", bodies[at / 2]);
        }
    });
}
