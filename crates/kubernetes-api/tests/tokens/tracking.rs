//! Tokens in Secrets: the server records when they were last used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::json;

use super::World;
use super::wait::until;

const SECRET: &str = "/api/v1/namespaces/default/secrets/kept";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

#[tokio::test]
async fn the_day_of_the_last_use_of_a_secret_token_is_a_label_and_a_mark_ends_it() {
    let world = World::start(Vec::new()).await;
    let account = json!({"metadata": {"name": "robot"}});
    world.root(Method::POST, "/api/v1/namespaces/default/serviceaccounts", account).await;
    let secret = json!({
        "metadata": {
            "name": "kept",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
        "type": "kubernetes.io/service-account-token",
    });
    world.root(Method::POST, "/api/v1/namespaces/default/secrets", secret).await;
    let mut token = String::new();
    until("the token", async || {
        let secret = world.root(Method::GET, SECRET, json!(null)).await;
        let bytes = STANDARD.decode(secret["data"]["token"].as_str().unwrap_or_default()).unwrap();
        token = String::from_utf8(bytes).unwrap();
        !token.is_empty()
    })
    .await;
    let label = async |name: &str| {
        let secret = world.root(Method::GET, SECRET, json!(null)).await;
        secret["metadata"]["labels"][name].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(label(LAST_USED).await, "");

    let user = world.who(&token).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    until("the day of the use", async || !label(LAST_USED).await.is_empty()).await;
    let day = label(LAST_USED).await;
    let map = "/api/v1/namespaces/kube-system/configmaps/\
               kube-apiserver-legacy-service-account-token-tracking";
    let since = world.root(Method::GET, map, json!(null)).await["data"]["since"].clone();
    assert!(since.as_str().unwrap() <= day.as_str(), "{since} and {day}");
    assert_eq!(day.parse::<jiff::civil::Date>().unwrap().to_string(), day);

    let mark = async |since: serde_json::Value| {
        let labels = json!({"metadata": {"labels": {INVALID_SINCE: since}}});
        world.root(Method::PATCH, SECRET, labels).await;
    };
    mark(json!("2026-01-01")).await;
    assert!(world.who(&token).await.is_none());
    mark(json!(null)).await;
    assert!(world.who(&token).await.is_some());
}
