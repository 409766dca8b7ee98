//! The reviews that webhooks receive: the same requests to both servers cause the same reviews.

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::side::{MAPS, Side, webhook};

const APPS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Every type of write.
fn writes() -> Vec<(&'static str, String, Value)> {
    let named = |name: &str, data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"team": "a"}}, "data": {"key": data}})
    };
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    });
    let patch = |value: Value| json!({"data": value});
    let with = |path: &str, rest: &str| format!("{path}{rest}");
    let namespaces = "/api/v1/namespaces";
    let scale = json!({"spec": {"replicas": 3}});
    let status = json!({"status": {"replicas": 1}});
    vec![
        ("POST", with(MAPS, "?fieldValidation=Strict"), named("a", "1")),
        ("POST", with(MAPS, "?dryRun=All"), named("dry", "1")),
        ("POST", MAPS.into(), json!({"metadata": {"generateName": "gen-", "labels": {"g": "1"}}})),
        ("PUT", with(MAPS, "/a"), named("a", "2")),
        ("PATCH", with(MAPS, "/a"), patch(json!({"more": "x"}))),
        // A write without changes is also reviewed.
        ("PATCH", with(MAPS, "/a"), patch(json!({"more": "x"}))),
        ("DELETE", with(MAPS, "/a?dryRun=All"), Value::Null),
        (
            "DELETE",
            with(MAPS, "/a"),
            json!({"kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": "Background", "gracePeriodSeconds": 0}),
        ),
        ("DELETE", with(MAPS, "?labelSelector=g"), Value::Null),
        ("POST", namespaces.into(), json!({"metadata": {"name": "asked"}})),
        ("PATCH", with(namespaces, "/asked"), json!({"metadata": {"labels": {"x": "y"}}})),
        ("POST", APPS.into(), deployment),
        ("PATCH", with(APPS, "/web/scale"), scale),
        ("PATCH", with(APPS, "/web/status"), status),
        ("DELETE", with(APPS, "/web"), Value::Null),
    ]
}

pub async fn compare(own: &Side, real: &Side, hooks: &HookServer) {
    let mut reviews = Vec::new();
    for side in [own, real] {
        for (kind, behaviour) in [("Mutating", "allow"), ("Validating", "annotate")] {
            let client = side.client(hooks, behaviour);
            let mut webhook = webhook("all.requests.example", client, "Fail");
            webhook["rules"] = json!([{"operations": ["*"], "apiGroups": ["", "apps"],
                "apiVersions": ["*"],
                "resources": ["configmaps", "namespaces", "namespaces/*", "deployments",
                    "deployments/*"]}]);
            side.configure(hooks, kind, "requests", vec![webhook]).await;
        }
        let mine = format!("/{}/", side.name);
        hooks.take(&mine);
        let mut received = Vec::new();
        for (method, path, body) in writes() {
            side.make(method, &path, body).await;
            let calls = hooks.take(&mine).into_iter();
            // Servers write objects themselves, too.
            let calls =
                calls.filter(|call| call.review["request"]["userInfo"]["username"] == "admin");
            let questions = calls.map(|call| {
                let path = call.path.rsplit('/').next().unwrap().to_owned();
                json!([path, call.query, plain(call.review)])
            });
            received.push((format!("{method} {path}"), of_last_tries(questions.collect())));
        }
        side.deconfigure("Mutating", "requests").await;
        side.deconfigure("Validating", "requests").await;
        reviews.push(received);
    }
    let mut differing = Vec::new();
    for ((write, found), (_, expected)) in reviews[0].iter().zip(&reviews[1]) {
        assert!(!expected.is_empty(), "{write}");
        if found != expected {
            differing.push(format!("{write}:\n  {}\n  {}", json!(found), json!(expected)));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Removes the reviews of failed attempts: a server that has read an older version of the object
/// tries again, and calls the webhook again.
fn of_last_tries(questions: Vec<Value>) -> Vec<Value> {
    let about = |question: &Value| {
        let request = &question[2]["request"];
        let fields = ["operation", "namespace", "name", "subResource"];
        (question[0].clone(), fields.map(|field| request[field].clone()))
    };
    let is_last = |(index, question): &(usize, &Value)| {
        !questions[index + 1..].iter().any(|later| about(later) == about(question))
    };
    questions.iter().enumerate().filter(is_last).map(|(_, question)| question.clone()).collect()
}

/// Removes generated values and the user.
fn plain(mut review: Value) -> Value {
    let request = review["request"].as_object_mut().unwrap();
    assert!(request["userInfo"]["groups"].as_array().unwrap().contains(&"system:masters".into()));
    request.retain(|field, _| field != "uid" && field != "userInfo");
    for object in ["object", "oldObject"] {
        let Some(object) = request[object].as_object_mut() else { continue };
        let metadata = object["metadata"].as_object_mut().unwrap();
        // Only their presence is compared; new objects get them after mutation.
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            if metadata.get(field).is_some_and(|value| !value.is_null()) {
                metadata[field] = "given".into();
            } else {
                metadata.remove(field);
            }
        }
        metadata.remove("managedFields");
        if metadata.get("generateName").is_some() && metadata.contains_key("name") {
            metadata["name"] = "generated".into();
        }
    }
    if request["object"]["metadata"]["generateName"].is_string()
        || request["oldObject"]["metadata"]["generateName"].is_string()
    {
        request.entry("name").and_modify(|name| *name = "generated".into());
    }
    review
}
