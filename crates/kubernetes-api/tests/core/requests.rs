//! Requests that are refused, or have another response, because of their syntax.

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use storage::Storage;

use super::{World, config_map};

pub const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// Status and body of a request of an administrator; text when the body is no single JSON document.
pub async fn send_request(world: &World, method: Method, path: &str, accept: &str) -> (u16, Value) {
    let body = serde_json::to_string(&config_map("a", "1")).unwrap();
    let body = if method == Method::GET { String::new() } else { body };
    let mut request = Request::builder()
        .method(&method)
        .uri(path)
        .header("accept", accept)
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    request.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
    let response = world.server.handle(request).await;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    (status, serde_json::from_str(&text).unwrap_or_else(|_| text.into()))
}

#[tokio::test]
async fn collections_accept_only_creates_and_objects_only_changes() {
    let world = World::start().await;
    let object = format!("{COLLECTION}/a");
    for (method, path) in
        [(Method::POST, object.as_str()), (Method::PUT, COLLECTION), (Method::PATCH, COLLECTION)]
    {
        let (status, body) = send_request(&world, method, path, "application/json").await;
        assert_eq!((status, &body["reason"]), (405, &"MethodNotAllowed".into()), "{path}");
    }
    assert_eq!(send_request(&world, Method::GET, &object, "application/json").await.0, 404);
    assert_eq!(send_request(&world, Method::POST, COLLECTION, "application/json").await.0, 201);
}

#[tokio::test]
async fn a_timeout_is_a_duration_of_go_and_no_other_text() {
    let world = World::start().await;
    for timeout in ["10s", "1m30s", "0s", "-5s", "1.5h"] {
        let path = format!("{COLLECTION}?timeout={timeout}");
        assert_eq!(send_request(&world, Method::GET, &path, "*/*").await.0, 200, "{timeout}");
    }
    let (status, body) =
        send_request(&world, Method::GET, &format!("{COLLECTION}?timeout=abc"), "*/*").await;
    let message = "invalid timeout specified in the request URL - time: invalid duration \"abc\"";
    assert_eq!((status, &body["message"]), (400, &message.into()));
}

#[tokio::test]
async fn rows_speak_the_version_of_their_table() {
    let world = World::start().await;
    assert_eq!(send_request(&world, Method::POST, COLLECTION, "application/json").await.0, 201);
    for version in ["v1", "v1beta1"] {
        let accept = format!("application/json;as=Table;g=meta.k8s.io;v={version}");
        let (status, table) = send_request(&world, Method::GET, COLLECTION, &accept).await;
        let spoken = format!("meta.k8s.io/{version}");
        assert_eq!((status, &table["apiVersion"]), (200, &spoken.as_str().into()));
        assert_eq!(table["rows"][0]["object"]["apiVersion"], spoken);
    }
    let path = format!("{COLLECTION}?includeObject=Foo");
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(send_request(&world, Method::GET, &path, accept).await.0, 400);
}

#[tokio::test]
async fn options_that_no_watch_has_are_refused_by_all_their_faults() {
    let world = World::start().await;
    for (options, causes) in [
        ("continue=abc", 1),
        ("sendInitialEvents=true", 1),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 2),
    ] {
        let path = format!("{COLLECTION}?watch=1&timeoutSeconds=1&{options}");
        let (status, body) = send_request(&world, Method::GET, &path, "application/json").await;
        assert_eq!(status, 422, "{options}: {body}");
        assert_eq!(body["details"]["causes"].as_array().map(Vec::len), Some(causes), "{options}");
    }
}

#[tokio::test]
async fn bookmarks_follow_the_whole_store() {
    let world = World::start().await;
    assert_eq!(send_request(&world, Method::POST, COLLECTION, "application/json").await.0, 201);
    let (_, list) = send_request(&world, Method::GET, COLLECTION, "application/json").await;
    let began = list["metadata"]["resourceVersion"].as_str().unwrap();
    let elsewhere = COLLECTION.replace("default", "elsewhere");
    assert_eq!(send_request(&world, Method::POST, &elsewhere, "application/json").await.0, 201);
    let newest = world.storage.revision().await.unwrap().to_string();
    let options = "watch=1&allowWatchBookmarks=true&timeoutSeconds=3";
    let path = format!("{COLLECTION}?{options}&resourceVersion={began}");
    let (status, event) = send_request(&world, Method::GET, &path, "application/json").await;
    assert_eq!((status, &event["type"]), (200, &"BOOKMARK".into()), "{event}");
    assert_eq!(event["object"]["metadata"], serde_json::json!({"resourceVersion": newest}));
}
