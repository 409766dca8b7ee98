//! Invalid owners: in another namespace, or namespaced for a cluster-scoped object.

use serde_json::{Value, json};

use super::side::Side;
use super::wait::until;
use super::world::run;

/// Creates an owner in one namespace, and objects in others that name it. Returns the events.
async fn collect_events(side: &Side) -> Vec<Value> {
    for name in ["owners-here", "owners-there"] {
        let namespace = json!({"metadata": {"name": name}});
        side.post("/api/v1/namespaces", &namespace).await.success();
    }
    let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    let owner = json!({"metadata": {"name": "owner"}});
    let owner = side.post(&maps("owners-there"), &owner).await.success();
    let reference = json!([{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }]);
    let child = json!({"metadata": {"name": "child", "ownerReferences": reference}});
    let child = side.post(&maps("owners-here"), &child).await.success();
    let role = json!({"metadata": {"name": "owned-role", "ownerReferences": reference}});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = side.post(roles, &role).await.success();
    let uids = [&owner, &child, &role].map(|object| object["metadata"]["uid"].as_str().unwrap());
    let mut events = Vec::new();
    for (namespace, name) in [("owners-here", "child"), ("default", "owned-role")] {
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}"
        );
        let mut event = until("an event tells of the owner", async || {
            side.get(&path).await.success()["items"].as_array()?.first().cloned()
        })
        .await;
        let event_name = event["metadata"]["name"].as_str().unwrap().to_owned();
        let (prefix, number) = event_name.split_once('.').unwrap();
        let is_number = number.bytes().all(|byte| byte.is_ascii_hexdigit());
        for own in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "name"] {
            event["metadata"].as_object_mut().unwrap().remove(own);
        }
        for own in ["firstTimestamp", "lastTimestamp"] {
            assert!(event[own].is_string(), "{event}");
            event.as_object_mut().unwrap().remove(own);
        }
        let mut text = json!([prefix, is_number, event]).to_string();
        for (uid, word) in uids.iter().zip(["OWNER", "CHILD", "ROLE"]) {
            text = text.replace(uid, word);
        }
        events.push(serde_json::from_str(&text).unwrap());
    }
    // An object whose owner can only be in another namespace is collected; the other owner cannot
    // be resolved.
    let path = format!("{}/child", maps("owners-here"));
    until("the child is collected", async || side.get(&path).await.code == 404).await;
    side.get(&format!("{roles}/owned-role")).await.success();
    events
}

#[test]
fn an_owner_in_another_namespace_is_reported_by_the_event_of_kubernetes() {
    run(async |world| {
        let (real, drover) =
            tokio::join!(collect_events(&world.real), collect_events(&world.drover));
        assert_eq!(drover, real, "(drover, kube-controller-manager)");
    });
}
