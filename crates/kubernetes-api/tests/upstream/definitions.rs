//! Definitions that are being deleted and wait for an object.

use http::Method;
use serde_json::{Value, json};

use super::side::Side;
use super::wait::until;
use super::world::run;

const GROUP: &str = "/apis/ending.example.org/v1";
const THINGS: &str = "/apis/ending.example.org/v1/namespaces/default/things";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.ending.example.org";

/// A definition whose deletion waits for an object with a finalizer.
async fn furnish(side: &Side) {
    let definition = json!({
        "metadata": {"name": "things.ending.example.org"},
        "spec": {
            "group": "ending.example.org",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {"replicas": {"type": "integer"}},
                        },
                        "status": {
                            "type": "object",
                            "properties": {"replicas": {"type": "integer"}},
                        },
                    },
                }},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
            }],
        },
    });
    side.post(DEFINITIONS, &definition).await.success();
    let thing = json!({
        "apiVersion": "ending.example.org/v1",
        "kind": "Thing",
        "metadata": {"name": "held", "finalizers": ["example.com/hold"]},
        "spec": {"replicas": 1},
    });
    until("the kind is served", async || side.post(THINGS, &thing).await.code == 201).await;
    side.delete(DEFINITION).await.success();
    until("the objects are being deleted", async || {
        let thing = side.get(&format!("{THINGS}/held")).await.json();
        thing["metadata"]["deletionTimestamp"].as_str().map(drop)
    })
    .await;
    until("writes end", async || {
        let response = side.post(THINGS, &thing).await;
        response.code == 403
    })
    .await;
}

#[expect(clippy::too_many_lines, reason = "one story")]
async fn collect_responses(side: &Side) -> Vec<Value> {
    let held = format!("{THINGS}/held");
    let thing = json!({
        "apiVersion": "ending.example.org/v1",
        "kind": "Thing",
        "metadata": {"name": "held"},
        "spec": {"replicas": 2},
    })
    .to_string();
    let status = json!({"status": {"replicas": 1}}).to_string();
    let patch = r#"{"metadata": {"labels": {"a": "b"}}}"#.to_owned();
    let scale = r#"{"spec": {"replicas": 3}}"#.to_owned();
    let apply = thing.clone();
    let (status_path, scale_path) = (format!("{held}/status"), format!("{held}/scale"));
    let (json, merge, yaml) = ("json", "merge-patch+json", "apply-patch+yaml");
    let requests = [
        (Method::GET, held.clone(), json, ""),
        (Method::GET, THINGS.to_owned(), json, ""),
        (Method::GET, format!("{GROUP}/things"), json, ""),
        (Method::GET, format!("{THINGS}?watch=1&timeoutSeconds=1"), json, ""),
        (Method::GET, status_path.clone(), json, ""),
        (Method::GET, scale_path.clone(), json, ""),
        (Method::POST, THINGS.to_owned(), json, &thing),
        (Method::POST, format!("{THINGS}?dryRun=All"), json, &thing),
        (Method::PUT, held.clone(), json, &thing),
        (Method::PUT, format!("{THINGS}/new"), json, &thing),
        (Method::PATCH, held.clone(), merge, &patch),
        (Method::PATCH, format!("{held}?fieldManager=m"), yaml, &apply),
        (Method::PATCH, format!("{THINGS}/nothing"), merge, &patch),
        (Method::PATCH, status_path.clone(), merge, &status),
        (Method::PATCH, scale_path.clone(), merge, &scale),
        (Method::PUT, status_path, json, &thing),
        (Method::DELETE, format!("{held}?dryRun=All"), json, ""),
        (Method::DELETE, held.clone(), json, ""),
        (Method::DELETE, format!("{THINGS}/nothing"), json, ""),
        (Method::DELETE, THINGS.to_owned(), json, ""),
    ];
    let mut responses = Vec::new();
    for (method, path, media, body) in requests {
        let media = format!("application/{media}");
        let headers: &[(&str, &str)] = match body {
            "" => &[],
            _ => &[("content-type", &media)],
        };
        let response = side.send(method.clone(), &path, headers, body.to_owned()).await;
        let body = response.json();
        responses.push(json!([
            method.as_str(),
            path,
            response.code,
            body["reason"],
            body["message"]
        ]));
    }
    let discovery = side.get(GROUP).await.success();
    for resource in discovery["resources"].as_array().unwrap() {
        responses.push(json!([resource["name"], resource["verbs"]]));
    }
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = side.send(Method::GET, "/apis", &[("accept", aggregated)], "").await.success();
    let groups = groups["items"].as_array().unwrap().iter();
    let own = groups.filter(|group| group["metadata"]["name"] == "ending.example.org");
    for group in own {
        for resource in group["versions"][0]["resources"].as_array().unwrap() {
            let parts = resource["subresources"].as_array().into_iter().flatten();
            let parts: Vec<_> =
                parts.map(|part| json!([part["subresource"], part["verbs"]])).collect();
            responses.push(json!([resource["resource"], resource["verbs"], parts]));
        }
    }
    let definition = side.get(DEFINITION).await.success();
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    for condition in conditions {
        responses.push(json!([
            condition["type"],
            condition["status"],
            condition["reason"],
            condition["message"],
        ]));
    }
    responses
}

#[test]
fn a_definition_that_is_being_deleted_allows_what_kube_apiserver_allows() {
    run(async |world| {
        tokio::join!(furnish(&world.real), furnish(&world.drover));
        let (real, drover) =
            tokio::join!(collect_responses(&world.real), collect_responses(&world.drover));
        for (drover, real) in drover.iter().zip(&real) {
            assert_eq!(drover, real, "(drover, kube-apiserver)");
        }
        assert_eq!(drover.len(), real.len(), "{drover:#?} {real:#?}");
        for side in world.sides() {
            let free = r#"[{"op": "remove", "path": "/metadata/finalizers"}]"#;
            let path = format!("{THINGS}/held");
            side.patch(&path, "json-patch+json", free).await.success();
            until("the definition is deleted", async || side.get(DEFINITION).await.code == 404)
                .await;
        }
    });
}
