//! Filters, sorting and pages.

use serde_json::json;

use super::world::{World, stored_widget};

async fn world_of_widgets() -> World {
    let world = World::new();
    for (depot, name, color, weight) in [
        ("d-1", "w-a", "red", 5),
        ("d-1", "w-b", "green", 40),
        ("d-1", "w-c", "red", 3),
        ("d-2", "w-d", "blue", 7),
    ] {
        let spec =
            json!({"displayName": name, "depotName": depot, "color": color, "weight": weight});
        world.widgets.put(stored_widget(depot, name, spec));
    }
    world
}

async fn ids(world: &World, query: &str) -> Vec<String> {
    let reply = world.get(&format!("/v3/widgets?{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.ids().into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn filters_select_and_unknown_names_are_ignored() {
    let world = world_of_widgets().await;
    for (query, expected) in [
        ("color=red", vec!["d-1:w-a", "d-1:w-c"]),
        ("color_eq=red", vec!["d-1:w-a", "d-1:w-c"]),
        ("color_ne=red", vec!["d-1:w-b", "d-2:w-d"]),
        ("color_in=green&color_in=blue", vec!["d-1:w-b", "d-2:w-d"]),
        ("color_notin=green&color_notin=blue", vec!["d-1:w-a", "d-1:w-c"]),
        // Only the first value counts.
        ("color_ne=red&color_ne=green", vec!["d-1:w-b", "d-2:w-d"]),
        ("depotId=d-2", vec!["d-2:w-d"]),
        ("namespaceId=d-2", vec!["d-2:w-d"]),
        ("enabled=false", vec![]),
        ("size=small&weight=40", vec!["d-1:w-b"]),
        ("removed_null=1&all=true&limit=-1", vec!["d-1:w-a", "d-1:w-b", "d-1:w-c", "d-2:w-d"]),
        ("secret=x&pin=1", vec!["d-1:w-a", "d-1:w-b", "d-1:w-c", "d-2:w-d"]),
    ] {
        assert_eq!(ids(&world, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn lists_sort_by_id_unless_asked() {
    let world = world_of_widgets().await;
    assert_eq!(ids(&world, "order=desc").await, ["d-2:w-d", "d-1:w-c", "d-1:w-b", "d-1:w-a"]);
    // Text order, as clients know it.
    assert_eq!(ids(&world, "sort=weight").await, ["d-1:w-c", "d-1:w-b", "d-1:w-a", "d-2:w-d"]);
    assert_eq!(ids(&world, "sort=tags").await, ["d-1:w-a", "d-1:w-b", "d-1:w-c", "d-2:w-d"]);
}

#[tokio::test]
async fn following_next_visits_every_resource_once() {
    let world = world_of_widgets().await;
    let mut url = "https://host.example/v3/widgets?limit=3".to_owned();
    let mut seen = Vec::new();
    loop {
        let reply = world.get(url.strip_prefix("https://host.example").unwrap()).await;
        assert_eq!(reply.body["pagination"]["total"], 4);
        assert_eq!(reply.body["pagination"]["limit"], 3);
        seen.extend(reply.ids().into_iter().map(str::to_owned));
        match reply.body["pagination"]["next"].as_str() {
            Some(next) => url = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["d-1:w-a", "d-1:w-b", "d-1:w-c", "d-2:w-d"]);
}

#[tokio::test]
async fn a_collection_has_the_wire_form_that_clients_parse() {
    let world = world_of_widgets().await;
    let mut reply = world.get("/v3/widgets?limit=2&sort=color&color_ne=blue").await;
    assert_eq!(reply.ids(), ["d-1:w-b", "d-1:w-a"]);
    reply.body["data"] = json!([]);
    insta::assert_json_snapshot!(reply.body);
}

#[tokio::test]
async fn a_list_below_a_resource_is_narrowed_to_it() {
    let world = world_of_widgets().await;
    assert_eq!(world.get("/v3/depots/d-2/widgets").await.ids(), ["d-2:w-d"]);
    assert_eq!(world.get("/v3/depot/d-2/widgets?color=red").await.ids(), Vec::<&str>::new());
}
