//! Lists and watches of compacted revisions.

use http::Method;
use kube::api::PostParams;
use serde_json::Value;
use storage::Storage;

use super::requests::{COLLECTION, send_request};
use super::{World, config_map};

/// A server whose storage has compacted the revision at which the first of two pages was read; and
/// that page. The cache of the server still has it.
async fn compacted() -> (World, Value) {
    let world = World::start().await;
    let create = async |name: &str| {
        world.api().create(&PostParams::default(), &config_map(name, "v")).await.unwrap();
    };
    for index in 0..4 {
        create(&format!("m{index}")).await;
    }
    let (status, page) =
        send_request(&world, Method::GET, &format!("{COLLECTION}?limit=2"), "*/*").await;
    assert_eq!(status, 200);
    create("m4").await;
    let newest = world.storage.revision().await.unwrap();
    world.storage.compact(newest).await.unwrap();
    (world, page)
}

/// The same, without the cache.
async fn forgetful() -> (World, Value) {
    let (world, page) = compacted().await;
    let World { storage, folder, .. } = world;
    (World::on(storage, folder).await, page)
}

#[tokio::test]
async fn a_list_of_a_compacted_revision_has_expired() {
    for (world, page) in [compacted().await, forgetful().await] {
        let version = page["metadata"]["resourceVersion"].as_str().unwrap();
        for options in ["&resourceVersionMatch=Exact", "&limit=2"] {
            let path = format!("{COLLECTION}?resourceVersion={version}{options}");
            let (status, body) = send_request(&world, Method::GET, &path, "*/*").await;
            assert_eq!((status, &body["reason"]), (410, &"Expired".into()), "{options}: {body}");
        }
    }
}

#[tokio::test]
async fn a_token_that_has_expired_comes_with_one_that_leads_on() {
    for (world, page) in [compacted().await, forgetful().await] {
        let next = |token: &Value| {
            let token = token.as_str().unwrap();
            format!("{COLLECTION}?limit=2&continue={token}")
        };
        let path = next(&page["metadata"]["continue"]);
        let (status, body) = send_request(&world, Method::GET, &path, "*/*").await;
        assert_eq!((status, &body["reason"]), (410, &"Expired".into()), "{body}");
        let path = next(&body["metadata"]["continue"]);
        let (status, body) = send_request(&world, Method::GET, &path, "*/*").await;
        let items = body["items"].as_array().unwrap();
        let names: Vec<&Value> = items.iter().map(|item| &item["metadata"]["name"]).collect();
        assert_eq!((status, names), (200, vec![&"m2".into(), &"m3".into()]), "{body}");
    }
}

#[tokio::test]
async fn a_watch_of_a_compacted_revision_is_one_error() {
    let (world, page) = forgetful().await;
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{COLLECTION}?watch=1&timeoutSeconds=5&resourceVersion={version}");
    // One event is one JSON document.
    let (status, event) = send_request(&world, Method::GET, &path, "*/*").await;
    assert_eq!((status, &event["type"]), (200, &"ERROR".into()), "{event}");
    let status = &event["object"];
    assert_eq!((&status["code"], &status["reason"]), (&410.into(), &"Expired".into()));
}
