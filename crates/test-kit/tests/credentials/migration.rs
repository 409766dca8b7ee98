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

/// The status of a list or watch that is refused.
async fn refused(api: &KubeApi, path: &str) -> u16 {
    let request = Request::get(path).body(Vec::new()).unwrap();
    match api.admin().request_text(request).await {
        Err(kube::Error::Api(status)) => status.code,
        Ok(text) if text.contains(r#""code":410"#) => 410,
        other => panic!("{path}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_an_earlier_release_stored_are_read_from_no_object_and_no_history() {
    let api = KubeApi::start(Profile::Management).await;
    // Without admission, like an earlier version stored it.
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
    let loggings = "/apis/management.cattle.io/v3/namespaces/c-old/clusterloggings";
    let logging = json!({
        "apiVersion": "management.cattle.io/v3", "kind": "ClusterLogging", "metadata": {"name": "l"},
    });
    let mut logging = call(&api, "POST", loggings, &logging).await;
    let before = logging["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    logging["status"] = json!({"failedSpec": {"syslogConfig": {"token": "canary-status"}}});
    let logging = call(&api, "PUT", &format!("{loggings}/l/status"), &logging).await;
    assert_eq!(logging["status"]["failedSpec"]["syslogConfig"]["token"], "canary-status");
    let before_status = logging["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
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
    let logging = call(&api, "GET", &format!("{loggings}/l"), &Value::Null).await;
    assert!(!logging.to_string().contains("canary"), "{logging}");
    let failed = &logging["status"]["failedSpec"]["syslogConfig"]["token"];
    assert!(failed.as_str().unwrap().starts_with(PREFIX), "{logging}");
    for (kind, before) in [(notifiers, before), (loggings, before_status)] {
        let exact = format!("{kind}?resourceVersion={before}&resourceVersionMatch=Exact");
        assert_eq!(refused(&api, &exact).await, 410);
        let watch = format!("{kind}?watch=true&resourceVersion={before}&timeoutSeconds=1");
        assert_eq!(refused(&api, &watch).await, 410);
    }
    // A second migration changes nothing.
    server::credentials::migrate(&api.registry, &api.admin()).await.unwrap();
    for (name, version) in ["a", "b"].iter().zip(versions) {
        let object = call(&api, "GET", &format!("{notifiers}/{name}"), &Value::Null).await;
        assert_eq!(object["metadata"]["resourceVersion"], version);
    }
}
