//! The pages of one snapshot.

use http::Method;
use kube::api::{DeleteParams, PostParams};
use serde_json::Value;

use super::requests::{COLLECTION, send_request};
use super::{World, config_map};

/// The contents of a page without its own token: items with their versions, the snapshot, the
/// remaining count.
type PageContents = (Vec<(Value, Value)>, Value, Value);

async fn page(world: &World, query: &str) -> (PageContents, Option<String>) {
    let path = format!("{COLLECTION}?limit=3{query}");
    let (status, body) = send_request(world, Method::GET, &path, "*/*").await;
    assert_eq!(status, 200, "{body}");
    let contents = |item: &Value| {
        (item["metadata"]["name"].clone(), item["metadata"]["resourceVersion"].clone())
    };
    let metadata = &body["metadata"];
    let items = body["items"].as_array().unwrap().iter().map(contents).collect();
    let token = metadata["continue"].as_str().filter(|token| !token.is_empty());
    let contents =
        (items, metadata["resourceVersion"].clone(), metadata["remainingItemCount"].clone());
    (contents, token.map(str::to_owned))
}

async fn pages_from(world: &World, mut token: Option<String>) -> Vec<PageContents> {
    let mut pages = Vec::new();
    while let Some(start) = token {
        let (contents, next) = page(world, &format!("&continue={start}")).await;
        pages.push(contents);
        token = next;
    }
    pages
}

#[tokio::test]
async fn a_snapshot_has_the_same_pages_from_memory_and_from_storage() {
    let world = World::start().await;
    let api = world.api();
    let create = async |name: &str| {
        api.create(&PostParams::default(), &config_map(name, "v")).await.unwrap();
    };
    for index in 0..12 {
        create(&format!("m{index:02}")).await;
    }
    let (first, token) = page(&world, "").await;
    assert_eq!((first.0.len(), &first.2), (3, &9.into()));
    let before = pages_from(&world, token.clone()).await;
    let left: Vec<&Value> = before.iter().map(|(_, _, left)| left).collect();
    assert_eq!(left, [&Value::from(6), &3.into(), &Value::Null]);

    // Changed, deleted, created, recreated, created and deleted again; at both ends and on a
    // border.
    for name in ["m03", "m05", "m06", "m11"] {
        let mut object = api.get(name).await.unwrap();
        object.data = None;
        api.replace(name, &PostParams::default(), &object).await.unwrap();
    }
    for name in ["m04", "m05", "m08", "m09", "m11"] {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["m02a", "m08", "m08a", "m12"] {
        create(name).await;
    }
    api.delete("m08a", &DeleteParams::default()).await.unwrap();

    assert_eq!(pages_from(&world, token.clone()).await, before);
    // Its cache begins now.
    let World { storage, folder, .. } = world;
    let world = World::on(storage, folder).await;
    assert_eq!(pages_from(&world, token).await, before);
}

#[tokio::test]
async fn a_token_of_another_list_makes_no_page_that_is_not_there() {
    let world = World::start().await;
    for index in 0..8 {
        let name = format!("m{index}");
        world.api().create(&PostParams::default(), &config_map(&name, "v")).await.unwrap();
    }
    let (_, body) = send_request(&world, Method::GET, "/api/v1/configmaps?limit=3", "*/*").await;
    let token = body["metadata"]["continue"].as_str().unwrap();
    for (limit, items) in [("", 0), ("&limit=1", 0)] {
        let path = format!("/api/v1/namespaces/other/configmaps?continue={token}{limit}");
        let (status, body) = send_request(&world, Method::GET, &path, "*/*").await;
        assert_eq!((status, body["items"].as_array().unwrap().len()), (200, items), "{body}");
        assert_eq!(body["metadata"]["remainingItemCount"], Value::Null, "{body}");
        assert_eq!(body["metadata"]["continue"], Value::Null, "{body}");
    }
}

#[tokio::test]
async fn each_namespace_counts_its_own() {
    let world = World::start().await;
    let other = world.api_in("other");
    for index in 0..5 {
        let name = format!("m{index}");
        world.api().create(&PostParams::default(), &config_map(&name, "v")).await.unwrap();
        let mut object = config_map(&name, "v");
        object.metadata.namespace = Some("other".to_owned());
        other.create(&PostParams::default(), &object).await.unwrap();
    }
    other.delete("m0", &DeleteParams::default()).await.unwrap();
    let left = async |path: &str| {
        let (_, body) = send_request(&world, Method::GET, path, "*/*").await;
        body["metadata"]["remainingItemCount"].clone()
    };
    assert_eq!(left(&format!("{COLLECTION}?limit=2")).await, 3);
    assert_eq!(left("/api/v1/namespaces/other/configmaps?limit=2").await, 2);
    assert_eq!(left("/api/v1/configmaps?limit=2").await, 7);
    assert_eq!(left("/api/v1/namespaces/none/configmaps?limit=2").await, Value::Null);
    // Continues in another list, where as many items remain after it.
    let (_, body) =
        send_request(&world, Method::GET, &format!("{COLLECTION}?limit=2"), "*/*").await;
    let token = body["metadata"]["continue"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/other/configmaps?limit=1&continue={token}");
    assert_eq!(left(&path).await, 2);
}
