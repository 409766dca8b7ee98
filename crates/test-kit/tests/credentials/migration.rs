//! Objects of a version that stored credentials in them.

use api_management::credentials::PREFIX;
use http::Request;
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World};

async fn call(api: &KubeApi, method: &str, path: &str, body: &Value) -> Value {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    api.admin().request(request.body(body).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_stored_objects_are_moved_at_the_start_and_fields_keep_their_owners() {
    let api = KubeApi::start(Profile::Management).await;
    // No admission yet: what an earlier version stored.
    server::definitions::install(&api.admin(), &api_management::crds()).await.unwrap();
    let namespace = json!({"metadata": {"name": "c-old"}});
    call(&api, "POST", "/api/v1/namespaces", &namespace).await;
    let notifiers = "/apis/management.cattle.io/v3/namespaces/c-old/notifiers";
    let notifier = |name: &str, url: &str| {
        json!({
            "apiVersion": "management.cattle.io/v3", "kind": "Notifier",
            "metadata": {"name": name, "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration":
                    json!({"spec": {"webhookConfig": {"url": url}}}).to_string(),
            }},
            "spec": {"webhookConfig": {"url": url}},
        })
    };
    for (name, url) in [("a", "https://u:canary-a@h"), ("b", "https://canary-b")] {
        let path = format!("{notifiers}?fieldManager=someone");
        let made = call(&api, "POST", &path, &notifier(name, url)).await;
        assert_eq!(made["spec"]["webhookConfig"]["url"], url);
    }
    let world = World::over(api.clone()).await;
    let mut versions = Vec::new();
    for name in ["a", "b"] {
        let object = call(&api, "GET", &format!("{notifiers}/{name}"), &Value::Null).await;
        assert!(!object.to_string().contains("canary"), "{object}");
        let reference = object["spec"]["webhookConfig"]["url"].as_str().unwrap();
        assert!(reference.starts_with(PREFIX), "{object}");
        let managers = object["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(managers.len(), 1, "{object}");
        assert_eq!(managers[0]["manager"], "someone");
        let whole =
            world.context.credentials.with_values("Notifier", object.clone()).await.unwrap();
        assert!(whole["spec"]["webhookConfig"]["url"].as_str().unwrap().contains("canary"));
        versions.push(object["metadata"]["resourceVersion"].clone());
    }
    // Once more changes nothing.
    server::credentials::migrate(&api.registry).await;
    for (name, version) in ["a", "b"].iter().zip(versions) {
        let object = call(&api, "GET", &format!("{notifiers}/{name}"), &Value::Null).await;
        assert_eq!(object["metadata"]["resourceVersion"], version);
    }
}
