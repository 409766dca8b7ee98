//! Attempts to bypass authorization with definitions and non-resource paths.

use http::Method;
use serde_json::{Value, json};

use super::World;
use super::wait::until;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROOT: (&str, &str) = ("authorization", "Bearer t-root");
const ANN: (&str, &str) = ("authorization", "Bearer t-ann");

#[tokio::test]
async fn cluster_wide_custom_resources_are_not_reached_through_a_namespace() {
    let world = World::start(Vec::new()).await;
    let definition = json!({
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.root(Method::POST, definitions, definition).await;
    let lamp = json!({"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "a"}});
    until("the definition is served", async || {
        let lamps = "/apis/example.com/v1/lamps";
        world.send(Method::POST, lamps, &[ROOT], lamp.clone()).await.code == 201
    })
    .await;
    for path in ["lamps", "lamps/a"] {
        let path = format!("/apis/example.com/v1/namespaces/r1/{path}");
        let response = world.send(Method::GET, &path, &[ROOT], Value::Null).await;
        assert_eq!((response.code, response.body), (404, Value::Null), "{path}");
    }
}

#[tokio::test]
async fn only_these_paths_serve_anonymous_requests() {
    let world = World::start(Vec::new()).await;
    world.running.server.set_ready(true);
    for path in ["/healthz", "/livez", "/readyz", "/version", "/version/"] {
        let response = world.send(Method::GET, path, &[], Value::Null).await;
        assert_eq!(response.code, 200, "{path}");
    }
    let closed = "/ /api /apis /apis/apps /openapi/v2 /openapi/v3 /healthz/ /healthz/ping \
                  /readyz/ping /livez/ping /metrics /logs /debug/pprof/ /configz /statusz /flagz \
                  /openid/v1/jwks /.well-known/openid-configuration /api/v1/namespaces \
                  //healthz /healthz/../metrics /version/../metrics /readyz%2f..%2fmetrics";
    for path in closed.split_whitespace() {
        let response = world.send(Method::GET, path, &[], Value::Null).await;
        assert_eq!(response.code, 403, "{path}");
    }
}

#[tokio::test]
async fn a_definition_does_not_take_the_place_of_a_built_in_kind() {
    let world = World::start(Vec::new()).await;
    let definition = json!({
        "metadata": {
            "name": "clusterroles.rbac.authorization.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, an attack"},
        },
        "spec": {
            "group": "rbac.authorization.k8s.io", "scope": "Cluster",
            "names": {"plural": "clusterroles", "kind": "ClusterRole"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object",
                 "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let tried = world.send(Method::POST, definitions, &[ROOT], definition).await;
    assert_eq!(tried.code, 201, "{}", tried.body);
    let definition = format!("{definitions}/clusterroles.rbac.authorization.k8s.io");
    until("the definition is validated", async || {
        let definition = world.root(Method::GET, &definition, Value::Null).await;
        definition["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty())
    })
    .await;
    let role = format!("{RBAC}/clusterroles/cluster-admin");
    let admin = world.root(Method::GET, &role, Value::Null).await;
    assert_eq!(admin["rules"][0]["verbs"], json!(["*"]));
    // Its own checks still apply.
    let bad = json!({"metadata": {"name": "bad"}, "rules": [{"verbs": []}]});
    let response = world.send(Method::POST, &format!("{RBAC}/clusterroles"), &[ROOT], bad).await;
    assert_eq!(response.code, 422, "{}", response.body);
    // Its deletion deletes nothing else.
    world.root(Method::DELETE, &definition, Value::Null).await;
    until("the definition is deleted", async || {
        world.send(Method::GET, &definition, &[ROOT], Value::Null).await.code == 404
    })
    .await;
    world.root(Method::GET, &role, Value::Null).await;
}

#[tokio::test]
async fn the_keys_of_account_tokens_are_shown_to_accounts_and_verify_them() {
    let world = World::start(Vec::new()).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    world.root(Method::POST, accounts, json!({"metadata": {"name": "robot"}})).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"});
    let issued = world.root(Method::POST, &format!("{accounts}/robot/token"), request).await;
    let token = issued["status"]["token"].as_str().unwrap();
    let bearer = format!("Bearer {token}");
    let robot = ("authorization", bearer.as_str());

    let get = async |path: &str, headers: &[(&str, &str)]| {
        world.send_as(Method::GET, path, headers, Value::Null).await
    };
    let configuration = "/.well-known/openid-configuration";
    let keys = "/openid/v1/jwks";
    for path in [configuration, keys] {
        assert_eq!(get(path, &[ANN]).await.code, 403, "{path}");
    }
    let found = get(configuration, &[robot, ("accept", "application/json")]).await;
    assert_eq!(
        (found.code, &found.headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert_eq!(found.headers["cache-control"], "public, max-age=3600");
    let issuer = "https://kubernetes.default.svc.cluster.local";
    assert_eq!(found.body["issuer"], issuer);
    assert_eq!(found.body["jwks_uri"], format!("{issuer}{keys}"));
    let refused = get(keys, &[robot, ("accept", "application/json")]).await;
    let text = "406: Not Acceptable\n\nAvailable representations: application/jwk-set+json";
    assert_eq!((refused.code, refused.body["message"].as_str()), (406, Some(text)));
    let set = get(keys, &[robot]).await;
    assert_eq!(
        (set.code, &set.headers["content-type"]),
        (200, &"application/jwk-set+json".parse().unwrap())
    );
    assert_eq!(get(keys, &[robot, ("accept", "application/jwk-set+json")]).await.code, 200);

    let id = |text: &str| {
        use base64::Engine as _;
        let head = text.split('.').next().unwrap();
        let head = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(head).unwrap();
        serde_json::from_slice::<Value>(&head).unwrap()["kid"].clone()
    };
    let published = &set.body["keys"][0];
    assert_eq!((&published["kid"], &published["kty"]), (&id(token), &json!("EC")));
    assert_eq!(published.get("d"), None, "the private part is not there");
}
