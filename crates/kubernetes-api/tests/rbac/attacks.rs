//! Attempts to get more rights than a user has: one test for each way.

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::{RBAC, World, eventually};

const ROOT: (&str, &str) = ("authorization", "Bearer t-root");
const ANN: (&str, &str) = ("authorization", "Bearer t-ann");

/// Two Secrets in each of two namespaces; ann has these rights in `r1`, and holds them.
async fn world(rules: Value) -> World {
    let world = World::start().await;
    for namespace in ["r1", "r2"] {
        for name in ["x", "y"] {
            let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
            world.root(Method::POST, &secrets, json!({"metadata": {"name": name}})).await;
        }
    }
    world.grant("r1", "ann", rules).await;
    let review = json!({"spec": {"user": "ann", "resourceAttributes": {
        "namespace": "r1", "verb": "watch", "resource": "secrets", "name": "x",
    }}});
    eventually("the binding to hold", async || {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = world.root(Method::POST, path, review.clone()).await;
        let allowed = answer["status"]["allowed"] == true;
        if allowed { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    world
}

fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
}

fn watching_secrets() -> Value {
    json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]}])
}

#[tokio::test]
async fn all_rights_in_a_namespace_grant_none_on_cluster_scoped_objects() {
    let world = world(everything()).await;
    let cluster_wide = [
        ("/api/v1", "nodes", "any"),
        ("/api/v1", "namespaces", "r2"),
        ("/api/v1", "persistentvolumes", "any"),
        (RBAC, "clusterroles", "admin"),
        (RBAC, "clusterrolebindings", "cluster-admin"),
    ];
    let unknown = "the server could not find the requested resource";
    for (group, plural, name) in cluster_wide {
        let collection = format!("{group}/namespaces/r1/{plural}");
        let one = format!("{collection}/{name}");
        let body = json!({
            "metadata": {"name": "evil"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "view"},
        });
        let tries = [
            (Method::GET, collection.clone()),
            (Method::GET, format!("{collection}?watch=1&timeoutSeconds=1")),
            (Method::GET, format!("{group}/watch/namespaces/r1/{plural}?timeoutSeconds=1")),
            (Method::POST, collection.clone()),
            (Method::DELETE, collection.clone()),
            (Method::GET, one.clone()),
            (Method::PUT, one.clone()),
            (Method::PATCH, one.clone()),
            (Method::PATCH, format!("{one}/status")),
            (Method::DELETE, one.clone()),
        ];
        for (method, path) in tries {
            let answer = world.send(method.clone(), &path, &[ANN], body.clone()).await;
            let text = answer.body["message"].as_str().unwrap_or_default();
            assert_eq!((answer.code, text), (404, unknown), "{method} {path}");
        }
        let evil = format!("{group}/{plural}/evil");
        let evil = world.send(Method::GET, &evil, &[ROOT], Value::Null).await;
        assert_eq!(evil.code, 404, "{plural}");
    }
    let own = world.send(Method::GET, "/api/v1/namespaces/r1", &[ANN], Value::Null).await;
    assert_eq!((own.code, &own.body["metadata"]["name"]), (200, &json!("r1")));
}

#[tokio::test]
async fn a_watch_of_one_name_shows_that_name_alone() {
    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["x"],
        "verbs": ["watch", "list"],
    }]);
    let world = world(rules).await;
    let of_r1 = "namespaces/r1/secrets";
    let watches = [
        format!("/api/v1/watch/{of_r1}/x?timeoutSeconds=1"),
        format!("/api/v1/{of_r1}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=x"),
    ];
    for path in watches {
        let request = Request::get(&path).header(ANN.0, ANN.1);
        let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
        let response = world.server.handle(request).await;
        assert_eq!(response.status(), 200, "{path}");
        let events = response.into_body().collect().await.unwrap();
        let events = String::from_utf8(events.to_bytes().to_vec()).unwrap();
        assert!(
            events.contains("\"name\":\"x\"") && !events.contains("\"name\":\"y\""),
            "{events}"
        );
    }
    let refused = [
        format!("/api/v1/watch/{of_r1}/y"),
        format!("/api/v1/watch/{of_r1}"),
        "/api/v1/watch/secrets/x".to_owned(),
        format!("/api/v1/{of_r1}?fieldSelector=metadata.name!=y"),
        format!("/api/v1/{of_r1}?fieldSelector=metadata.namespace=r1"),
        format!("/api/v1/{of_r1}?fieldSelector=&fieldSelector=metadata.name=x"),
    ];
    for path in refused {
        let answer = world.send(Method::GET, &path, &[ANN], Value::Null).await;
        assert_eq!(answer.code, 403, "{path}");
    }
    let two = format!("/api/v1/{of_r1}?fieldSelector=metadata.name=x&fieldSelector=");
    let list = world.send(Method::GET, &two, &[ANN], Value::Null).await;
    let names = list.body["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["x"]);
}

#[tokio::test]
async fn no_spelling_of_a_path_leads_into_another_namespace() {
    let world = world(everything()).await;
    let paths = [
        "/api/v1/namespaces/r2/secrets",
        "/api/v1//namespaces/r2/secrets",
        "//api/v1/namespaces/r2/secrets/",
        "/api/v1/namespaces/r1/../r2/secrets",
        "/api/v1/namespaces/r1/secrets/../../r2/secrets",
        "/api/v1/namespaces/r1%2F..%2Fr2/secrets",
        "/api/v1/namespaces/r1/secrets/..%2F..%2Fr2%2Fsecrets%2Fx",
        "/api/v1/namespaces/r1/secrets%2F..%2F..%2Fr2%2Fsecrets",
        "/api/v1/namespaces/r%32/secrets",
        "/api/v1/namespaces/%2e%2e/secrets",
        "/api/v1/namespaces/r2/secrets?namespace=r1",
        "/api/v1/secrets",
        "/api/v1/secrets/x",
        "/API/v1/namespaces/r2/secrets",
        "/api/v1/namespaces/r2%00/secrets",
        "/api/v1/namespaces/r2;a=b/secrets",
    ];
    for path in paths {
        let answer = world.send(Method::GET, path, &[ANN], Value::Null).await;
        assert!(matches!(answer.code, 403 | 404), "{path}: {} {}", answer.code, answer.body);
    }
    let inside = "/api/v1/namespaces/r1/secrets?fieldSelector=metadata.namespace=r2";
    let answer = world.send(Method::GET, inside, &[ANN], Value::Null).await;
    assert_eq!(answer.body["items"], json!([]));
    let body = json!({"metadata": {"name": "z", "namespace": "r2"}});
    let answer = world.send(Method::POST, "/api/v1/namespaces/r1/secrets", &[ANN], body).await;
    assert_eq!(answer.code, 400, "{}", answer.body);
}

#[tokio::test]
async fn credentials_count_only_in_their_header() {
    let world = world(watching_secrets()).await;
    let secrets = "/api/v1/namespaces/r2/secrets";
    for query in ["access_token=t-root", "token=t-root", "authorization=Bearer%20t-root"] {
        let answer = world.send(Method::GET, &format!("{secrets}?{query}"), &[], Value::Null).await;
        assert_eq!(answer.code, 403, "{query}");
    }
    let elsewhere = [
        ("cookie", "token=t-root; R_SESS=t-root"),
        ("proxy-authorization", "Bearer t-root"),
        ("x-forwarded-user", "root"),
        ("x-remote-user", "root"),
        ("x-remote-uid", "1"),
        ("x-remote-extra-scopes", "all"),
        ("x-forwarded-access-token", "t-root"),
        ("x-auth-token", "t-root"),
    ];
    for header in elsewhere {
        let answer = world.send(Method::GET, secrets, &[header], Value::Null).await;
        let text = answer.body["message"].as_str().unwrap();
        assert!(answer.code == 403 && text.contains("system:anonymous"), "{header:?}: {text}");
    }
    for value in ["Bearer", "Bearer ", "Basic cm9vdDp0LXJvb3Q=", "t-root", "Token t-root"] {
        let headers = [("authorization", value)];
        let answer = world.send(Method::GET, secrets, &headers, Value::Null).await;
        assert_eq!(answer.code, 403, "{value}");
    }
    for value in ["Bearer t-root,t-ann", "Bearer t-root t-ann", "Bearer t-roo", "Bearer t-root1"] {
        let headers = [("authorization", value)];
        let answer = world.send(Method::GET, secrets, &headers, Value::Null).await;
        assert_eq!(answer.code, 401, "{value}");
    }
    let tricks = [("x-http-method-override", "GET"), ("x-method-override", "GET"), ANN];
    let answer = world.send(Method::DELETE, &format!("{secrets}/x"), &tricks, Value::Null).await;
    assert_eq!(answer.code, 403);
    let lower = Method::from_bytes(b"get").unwrap();
    assert_eq!(world.send(lower, secrets, &[ANN], Value::Null).await.code, 403);
}

#[tokio::test]
async fn rights_on_an_object_are_none_on_its_subresources() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]},
        {"apiGroups": [""], "resources": ["serviceaccounts", "pods"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
    ]);
    let world = world(rules).await;
    let accounts = "/api/v1/namespaces/r1/serviceaccounts";
    world.root(Method::POST, accounts, json!({"metadata": {"name": "robot"}})).await;
    let tries = [
        (Method::POST, format!("{accounts}/robot/token"), "serviceaccounts/token"),
        (Method::PATCH, "/api/v1/namespaces/r1/pods/p/status".to_owned(), "pods/status"),
        (Method::POST, "/api/v1/namespaces/r1/pods/p/binding".to_owned(), "pods/binding"),
        (Method::POST, "/api/v1/namespaces/r1/pods/p/eviction".to_owned(), "pods/eviction"),
        (Method::POST, "/api/v1/namespaces/r1/pods/p/exec".to_owned(), "pods/exec"),
        (Method::GET, "/api/v1/namespaces/r1/pods/p/proxy/a/b".to_owned(), "pods/proxy"),
        (
            Method::PATCH,
            "/apis/apps/v1/namespaces/r1/deployments/d/scale".to_owned(),
            "deployments/scale",
        ),
    ];
    for (method, path, resource) in tries {
        let answer = world.send(method, &path, &[ANN], json!({})).await;
        let text = answer.body["message"].as_str().unwrap();
        assert!(answer.code == 403 && text.contains(resource), "{path}: {text}");
    }
}

#[tokio::test]
async fn no_type_of_write_grants_more_than_its_writer_has() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
         "verbs": ["get", "create", "update", "patch", "delete"]},
    ]);
    let world = world(rules).await;
    let roles = format!("{RBAC}/namespaces/r1/roles");
    let small = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]}]);
    let mine = json!({"metadata": {"name": "mine"}, "rules": small});
    let made = world.send(Method::POST, &roles, &[ANN], mine.clone()).await;
    assert_eq!(made.code, 201, "{}", made.body);
    let one = format!("{roles}/mine");
    let big = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let kind = |media: &'static str| ("content-type", media);
    let apply = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                       "metadata": {"name": "mine"}, "rules": big});
    let forced = format!("{one}?fieldManager=a&force=true");
    let fresh = format!("{roles}/other?fieldManager=a");
    let mut other = apply.clone();
    other["metadata"]["name"] = json!("other");
    let add = json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "*"}]);
    let tries = [
        (
            Method::PUT,
            &one,
            "application/json",
            json!({"metadata": {"name": "mine"}, "rules": big}),
        ),
        (Method::PATCH, &one, "application/strategic-merge-patch+json", json!({"rules": big})),
        (Method::PATCH, &one, "application/json-patch+json", add),
        (Method::PATCH, &forced, "application/apply-patch+yaml", apply),
        (Method::PATCH, &fresh, "application/apply-patch+yaml", other),
        (
            Method::PUT,
            &one,
            "application/json",
            json!({"metadata": {"name": "mine"}, "rules":
            [{"apiGroups": [""], "resources": ["secrets/*", "*/secrets"], "verbs": ["watch"]}]}),
        ),
    ];
    for (method, path, media, body) in tries {
        let answer = world.send(method.clone(), path, &[ANN, kind(media)], body).await;
        let text = answer.body["message"].as_str().unwrap_or_default();
        let refused = text.contains("is attempting to grant RBAC permissions not currently held");
        assert!(answer.code == 403 && refused, "{method} {media}: {}", answer.body);
    }
    let kept = world.root(Method::GET, &one, Value::Null).await;
    assert_eq!(kept["rules"], small);
}
