//! The lifecycle of one object's credentials.

use api_management::credentials::PREFIX;
use api_management::{ClusterRegistrationToken, keys};
use http::Request;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually};
use tunnel::AgentKey;

use super::setup::{CLUSTER_A, CLUSTER_B, Setup, TestUser};

const NOTIFIERS: &str = "/apis/management.cattle.io/v3/namespaces/c-aaaaa/notifiers";

/// Status and body of a request to the Kubernetes API.
async fn request(
    world: &World,
    method: &str,
    path: &str,
    kind: &str,
    body: &Value,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    match world.admin().request::<Value>(request.body(body).unwrap()).await {
        Ok(response) => (200, response),
        Err(kube::Error::Api(status)) => (status.code, json!({ "message": status.message })),
        Err(error) => panic!("{error}"),
    }
}

async fn must(world: &World, method: &str, path: &str, kind: &str, body: &Value) -> Value {
    let (code, response) = request(world, method, path, kind, body).await;
    assert_eq!(code, 200, "{method} {path}: {response}");
    response
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn notifier(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "management.cattle.io/v3", "kind": "Notifier",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// The values that are stored for an object, as texts.
async fn values(world: &World, uid: &str) -> Vec<String> {
    let secrets: Api<Secret> = Api::namespaced(world.admin(), keys::CREDENTIALS_NS);
    let found = secrets.get_opt(&format!("credentials-{uid}")).await.unwrap();
    let data = found.and_then(|secret| secret.data).unwrap_or_default();
    let mut values: Vec<String> =
        data.into_values().map(|value| String::from_utf8(value.0).unwrap()).collect();
    values.sort();
    values
}

async fn come_to(world: &World, uid: &str, expected: &[&str]) {
    eventually(&format!("the values {expected:?}"), async || {
        let values = values(world, uid).await;
        if values == expected { Ok(()) } else { Err(values) }
    })
    .await;
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_go_to_a_secret_of_the_object_and_with_it() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let spec = json!({
        "slackConfig": {"url": "https://hooks/1"},
        "smtpConfig": {"host": "h", "password": "p"},
    });
    let made = must(world, "POST", NOTIFIERS, JSON, &notifier("n", spec)).await;
    let reference = made["spec"]["slackConfig"]["url"].as_str().unwrap();
    assert!(reference.starts_with(PREFIX), "{made}");
    come_to(world, uid(&made), &["https://hooks/1", "p"]).await;
    let path = format!("{NOTIFIERS}/n");
    // Repeating the write changes nothing; neither does writing back a response.
    let same = json!({"spec": {"slackConfig": {"url": "https://hooks/1"}}});
    let again = must(world, "PATCH", &path, MERGE, &same).await;
    assert_eq!(again["metadata"], made["metadata"]);
    let again = must(world, "PUT", &path, JSON, &made).await;
    assert_eq!(again["metadata"], made["metadata"]);
    // Another value replaces it, and the old one is deleted.
    let other = json!({"spec": {"slackConfig": {"url": "https://hooks/2"}}});
    let changed = must(world, "PATCH", &path, MERGE, &other).await;
    assert_ne!(changed["spec"]["slackConfig"]["url"], reference);
    assert_eq!(changed["spec"]["smtpConfig"], made["spec"]["smtpConfig"]);
    come_to(world, uid(&made), &["https://hooks/2", "p"]).await;
    let less = json!({"spec": {"slackConfig": null}});
    must(world, "PATCH", &path, MERGE, &less).await;
    come_to(world, uid(&made), &["p"]).await;
    must(world, "DELETE", &path, JSON, &Value::Null).await;
    come_to(world, uid(&made), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_of_a_deleted_ones_name_gets_none_of_its_credentials() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let spec = json!({"slackConfig": {"url": "a"}, "smtpConfig": {"password": "p"}});
    let mut object = notifier("n", spec);
    object["metadata"]["finalizers"] = json!(["example.org/later"]);
    let old = must(world, "POST", NOTIFIERS, JSON, &object).await;
    let path = format!("{NOTIFIERS}/n");
    must(world, "DELETE", &path, JSON, &Value::Null).await;
    come_to(world, uid(&old), &["a", "p"]).await;
    let released = json!({"metadata": {"finalizers": null}});
    must(world, "PATCH", &path, MERGE, &released).await;
    come_to(world, uid(&old), &[]).await;
    // Neither by the references nor by the uid of the old object.
    let mut again = notifier("n", old["spec"].clone());
    again["metadata"]["uid"] = old["metadata"]["uid"].clone();
    assert_eq!(request(world, "POST", NOTIFIERS, JSON, &again).await.0, 422);
    let new = must(world, "POST", NOTIFIERS, JSON, &notifier("n", json!({}))).await;
    let taken = json!({ "spec": old["spec"].clone() });
    assert_eq!(request(world, "PATCH", &path, MERGE, &taken).await.0, 422);
    assert_eq!(must(world, "GET", &path, JSON, &Value::Null).await["spec"], json!({}));
    come_to(world, uid(&new), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_stores_no_value_and_leaves_the_old_one_in_force() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let with = |url: &str| notifier("n", json!({"slackConfig": {"url": url}}));
    let secrets: Api<Secret> = Api::namespaced(world.admin(), keys::CREDENTIALS_NS);
    let dry = must(world, "POST", &format!("{NOTIFIERS}?dryRun=All"), JSON, &with("a")).await;
    assert!(dry["spec"]["slackConfig"]["url"].as_str().unwrap().starts_with(PREFIX));
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 0);
    let made = must(world, "POST", NOTIFIERS, JSON, &with("a")).await;
    assert_eq!(request(world, "POST", NOTIFIERS, JSON, &with("b")).await.0, 409);
    let path = format!("{NOTIFIERS}/n");
    let mut late = with("c");
    late["metadata"]["resourceVersion"] = "1".into();
    assert_eq!(request(world, "PUT", &path, JSON, &late).await.0, 409);
    let change = json!({"spec": {"slackConfig": {"url": "d"}}});
    must(world, "PATCH", &format!("{path}?dryRun=All"), MERGE, &change).await;
    come_to(world, uid(&made), &["a"]).await;
    eventually("one Secret", async || {
        let names: Vec<String> = secrets
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        if names == [format!("credentials-{}", uid(&made))] { Ok(()) } else { Err(names) }
    })
    .await;
    assert_eq!(must(world, "GET", &path, JSON, &Value::Null).await, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_reference_is_valid_in_its_own_object_only() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let spec = json!({"slackConfig": {"url": "a"}, "smtpConfig": {"password": "p"}});
    let made = must(world, "POST", NOTIFIERS, JSON, &notifier("n", spec)).await;
    let mut copy = notifier("m", made["spec"].clone());
    let (code, response) = request(world, "POST", NOTIFIERS, JSON, &copy).await;
    assert_eq!(code, 422, "{response}");
    assert!(
        response["message"].as_str().unwrap().contains("send the credential itself"),
        "{response}"
    );
    let other = must(world, "POST", NOTIFIERS, JSON, &notifier("m", json!({}))).await;
    copy["metadata"]["resourceVersion"] = other["metadata"]["resourceVersion"].clone();
    assert_eq!(request(world, "PUT", &format!("{NOTIFIERS}/m"), JSON, &copy).await.0, 422);
    let password = &made["spec"]["smtpConfig"]["password"];
    let moved = json!({"spec": {"webhookConfig": {"url": password}}});
    assert_eq!(request(world, "PATCH", &format!("{NOTIFIERS}/n"), MERGE, &moved).await.0, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn appliers_share_a_value_and_conflict_over_another() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let apply = async |manager: &str, url: &str| {
        let path = format!("{NOTIFIERS}/n?fieldManager={manager}");
        let body = notifier("n", json!({"slackConfig": {"url": url}}));
        request(world, "PATCH", &path, APPLY, &body).await
    };
    let (code, made) = apply("one", "a").await;
    assert_eq!(code, 200, "{made}");
    assert!(!made.to_string().contains("\"a\""), "{made}");
    let (_, again) = apply("one", "a").await;
    assert_eq!(again["metadata"], made["metadata"]);
    let (code, shared) = apply("two", "a").await;
    assert_eq!(code, 200, "{shared}");
    assert_eq!(shared["metadata"]["managedFields"].as_array().unwrap().len(), 2);
    let (code, refused) = apply("two", "b").await;
    assert_eq!(code, 409, "{refused}");
    come_to(world, uid(&made), &["a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_who_may_update_an_object_read_its_credentials_back_but_no_password() {
    let setup = Setup::start(|view, _| view).await;
    let body = json!({
        "name": "n", "clusterId": CLUSTER_A, "slackConfig": {"url": "https://hooks/1"},
        "smtpConfig": {"host": "h", "port": 25, "sender": "s", "defaultRecipient": "r",
            "password": "hidden"},
    });
    let (status, made) = setup.request(TestUser::Owner, "POST", "/v3/notifiers", &body).await;
    assert_eq!((status, &made["slackConfig"]["url"]), (201, &json!("https://hooks/1")), "{made}");
    let path = format!("/v3/notifiers/{}", made["id"].as_str().unwrap());
    for who in [TestUser::Admin, TestUser::Owner] {
        let (_, shown) = setup.get(who, &path).await;
        assert_eq!(shown["slackConfig"]["url"], "https://hooks/1");
        assert!(!shown.to_string().contains("hidden"), "{shown}");
        // A client sends back the response: nothing changes, the password included.
        let (status, again) = setup.request(who, "PUT", &path, &shown).await;
        assert_eq!((status, &again), (200, &shown));
    }
    come_to(&setup.world, made["uuid"].as_str().unwrap(), &["hidden", "https://hooks/1"]).await;
    let (status, shown) = setup.get(TestUser::Member, &path).await;
    assert_eq!((status, &shown["slackConfig"]), (200, &json!({})), "{shown}");
    assert!(!shown.to_string().contains(PREFIX), "{shown}");
    let changed = json!({"smtpConfig": {"password": "other"}});
    setup.must(200, "PUT", &path, &changed).await;
    come_to(&setup.world, made["uuid"].as_str().unwrap(), &["https://hooks/1", "other"]).await;
    // Rights in one cluster are not valid in another.
    let body = json!({"name": "b", "clusterId": CLUSTER_B, "webhookConfig": {"url": "https://b"}});
    let made = setup.must(201, "POST", "/v3/notifiers", &body).await;
    let (_, list) = setup.get(TestUser::Owner, "/v3/notifiers").await;
    assert!(!list.to_string().contains(made["id"].as_str().unwrap()), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_an_interrupted_server_are_removed_at_the_next_start() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let spec = json!({"slackConfig": {"url": "a"}});
    let made = must(world, "POST", NOTIFIERS, JSON, &notifier("n", spec)).await;
    come_to(world, uid(&made), &["a"]).await;
    let secrets = format!("/api/v1/namespaces/{}/secrets", keys::CREDENTIALS_NS);
    let own = format!("{secrets}/credentials-{}", uid(&made));
    must(world, "PATCH", &own, MERGE, &json!({"data": {"c-left": "eA=="}})).await;
    let left = json!({"metadata": {"name": "credentials-gone", "annotations": {
        "drover.io/credentials-of": "notifiers/c-aaaaa/gone"}}});
    must(world, "POST", &secrets, JSON, &left).await;
    let _again = World::over(setup.world.api.clone()).await;
    come_to(world, uid(&made), &["a"]).await;
    eventually("the end of the other Secret", async || {
        let path = format!("{secrets}/credentials-gone");
        match request(world, "GET", &path, JSON, &Value::Null).await.0 {
            404 => Ok(()),
            code => Err(code),
        }
    })
    .await;
}

/// The public response of `/v3/import/…`.
async fn manifest(world: &World, secret: &str) -> (u16, String) {
    let routes = world.features.iter().flat_map(|feature| &feature.routes);
    let route = routes.into_iter().find(|route| route.prefix == "/v3/import/").unwrap();
    let path = format!("/v3/import/{secret}_{CLUSTER_A}.yaml");
    let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
    let request = feature_kit::Request::new(parts, bytes::Bytes::new(), None);
    let response = route.handler.handle(request).await;
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    (response.status().as_u16(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_of_a_used_manifest_never_shows_the_password_of_the_agents_proxy() {
    let setup = Setup::start(|view, _| view).await;
    let world = &setup.world;
    let variables = json!([{"name": "HTTPS_PROXY", "value": "http://u:canary@proxy"}]);
    let path = format!("/v3/clusters/{CLUSTER_A}");
    let changed = json!({ "agentEnvVars": variables.clone() });
    let shown = setup.must(200, "PUT", &path, &changed).await;
    assert_eq!(shown["agentEnvVars"], variables);
    let token = world.token(CLUSTER_A).await.status.token;
    let text = eventually("the environment in the manifest", async || {
        let (status, text) = manifest(world, &token).await;
        let is_there = status == 200 && text.contains("http://u:canary@proxy");
        if is_there { Ok(text) } else { Err((status, text)) }
    })
    .await;
    assert!(!text.contains(PREFIX), "{text}");
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = AgentKey::generate().unwrap();
    world.connect(&key, Some(&token), downstream.admin()).await.unwrap();
    let text = eventually("the end of the manifest", async || {
        let (status, text) = manifest(world, &token).await;
        if status == 410 { Ok(text) } else { Err((status, text)) }
    })
    .await;
    assert!(!text.contains("canary") && text.contains("kubectl create -f -"), "{text}");
    // Another token's manifest shows it again.
    let body = json!({ "clusterId": CLUSTER_A });
    setup.must(201, "POST", "/v3/clusterRegistrationTokens", &body).await;
    let tokens: Api<ClusterRegistrationToken> = Api::namespaced(world.admin(), CLUSTER_A);
    eventually("the manifest of another token", async || {
        for other in tokens.list(&ListParams::default()).await.unwrap() {
            let secret = &other.status.token;
            if !secret.is_empty() && *secret != token && manifest(world, secret).await.0 == 200 {
                return Ok(());
            }
        }
        Err("none")
    })
    .await;
}
