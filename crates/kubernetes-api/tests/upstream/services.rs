//! Values that are allocated to services, and their release.

use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::world::run;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PORT: i64 = 31_234;

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({"metadata": {"name": name}, "spec": {
        "type": "NodePort", "ports": [{"port": 80, "nodePort": PORT}],
    }});
    service["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    service
}

/// The code and message of a response.
fn summary(response: &TestResponse) -> Value {
    json!([response.code, response.json()["details"]["causes"]])
}

/// The responses of a server, step by step.
async fn steps(side: &Side) -> Vec<Value> {
    let path = |name: &str| format!("{SERVICES}/{name}");
    let mut all = Vec::new();
    let first = side.post(SERVICES, &service("given-a", &json!({}))).await.success();
    let address = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
    all.push(summary(&side.post(SERVICES, &service("given-b", &json!({}))).await));
    // A dry run allocates nothing.
    let dry = format!("{SERVICES}?dryRun=All");
    all.push(summary(&side.post(&dry, &service("given-b", &json!({}))).await));
    // A change releases it at once.
    let change = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": null}]}});
    let media = "strategic-merge-patch+json";
    all.push(summary(&side.patch(&path("given-a"), media, change.to_string()).await));
    all.push(summary(&side.post(SERVICES, &service("given-b", &json!({}))).await));
    // So does a deletion, for address and port.
    side.delete(&path("given-b")).await.success();
    side.delete(&path("given-a")).await.success();
    let again = json!({"clusterIP": address});
    all.push(summary(&side.post(SERVICES, &service("given-c", &again)).await));
    let health = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": PORT + 1,
        "ports": [{"port": 80}],
    });
    all.push(summary(&side.post(SERVICES, &service("given-d", &health)).await));
    let taken = json!({"ports": [{"port": 80, "nodePort": PORT + 1}]});
    all.push(summary(&side.post(SERVICES, &service("given-e", &taken)).await));
    side.delete(&path("given-d")).await.success();
    all.push(summary(&side.post(SERVICES, &service("given-e", &taken)).await));
    // One port over two protocols has one node port.
    let ports = json!({"ports": [
        {"name": "a", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 53, "protocol": "TCP"},
        {"name": "c", "port": 54, "protocol": "TCP"},
    ]});
    let shared = side.post(SERVICES, &service("given-f", &ports)).await.success();
    let numbers: Vec<i64> = shared["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["nodePort"].as_i64().unwrap())
        .collect();
    all.push(json!([numbers[0] == numbers[1], numbers[0] == numbers[2]]));
    all
}

#[test]
fn released_addresses_are_free_at_once_like_with_kube_apiserver() {
    run(async |world| {
        let real = steps(&world.real).await;
        assert_eq!(steps(&world.drover).await, real);
        assert!(
            real.iter().any(|summary| summary[0] == 422)
                && real.iter().any(|summary| summary[0] == 201)
        );
    });
}
