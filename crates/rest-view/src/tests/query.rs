//! Filters, sorting and pages.

use futures::future::BoxFuture;
use serde_json::json;

use super::world::{World, stored_widget};
use crate::collection::listing::{ListRequest, Lists, Page, Scan};
use crate::collection::query::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use crate::{ApiError, Context};

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
async fn lists_sort_by_id_by_default() {
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
async fn pages_lead_to_the_first_the_next_the_one_before_and_the_last() {
    let world = world_of_widgets().await;
    let page = async |query: &str| {
        let reply = world.get(&format!("/v3/widgets?limit=1{query}")).await;
        let shown = reply.body["pagination"].clone();
        let marker = |name: &str| match shown[name].as_str() {
            Some(url) => {
                let query = url.strip_prefix("https://host.example/v3/widgets?limit=1").unwrap();
                query.strip_prefix("&marker=").unwrap_or(query).to_owned()
            }
            None => "-".to_owned(),
        };
        assert_eq!(shown["partial"], true);
        let links = ["first", "previous", "next", "last"].map(marker);
        (reply.ids().concat(), links.join(" "))
    };
    for (marker, found, links) in [
        ("", "d-1:w-a", " - d-1:w-b d-2:w-d"),
        ("&marker=d-1:w-b", "d-1:w-b", "  d-1:w-c d-2:w-d"),
        ("&marker=d-1:w-c", "d-1:w-c", " d-1:w-b d-2:w-d d-2:w-d"),
        ("&marker=d-2:w-d", "d-2:w-d", " d-1:w-c - -"),
        // Deleted meanwhile: the one after it.
        ("&marker=d-1:w-bb", "d-1:w-c", " d-1:w-b d-2:w-d d-2:w-d"),
    ] {
        assert_eq!(page(marker).await, (found.to_owned(), links.to_owned()), "{marker}");
    }
    let backwards = world.get("/v3/widgets?order=desc&limit=2&marker=d-1:w-cc").await;
    assert_eq!(backwards.ids(), ["d-1:w-c", "d-1:w-b"]);
    let beyond = world.get("/v3/widgets?marker=z").await;
    assert_eq!((beyond.status, beyond.ids().len()), (200, 0));
}

#[tokio::test]
async fn a_page_has_the_requested_size_within_limits() {
    let world = world_of_widgets().await;
    for (limit, expected) in [
        ("", PAGE_SIZE_DEFAULT),
        ("limit=2", 2),
        ("limit=-1", PAGE_SIZE_MAX),
        ("limit=10001", PAGE_SIZE_MAX),
        ("limit=99999999999999999999", PAGE_SIZE_DEFAULT),
        ("limit=0", PAGE_SIZE_DEFAULT),
        ("limit=-7", PAGE_SIZE_DEFAULT),
        ("limit=many", PAGE_SIZE_DEFAULT),
    ] {
        let reply = world.get(&format!("/v3/widgets?{limit}")).await;
        assert_eq!(reply.body["pagination"]["limit"], expected, "{limit}");
        assert_eq!(reply.body["pagination"]["total"], 4);
        assert_eq!(reply.body["pagination"].get("partial").is_some(), expected == 2);
    }
}

#[tokio::test]
async fn a_sort_can_be_reversed_by_its_link() {
    let world = world_of_widgets().await;
    let reply = world.get("/v3/widgets?sort=color&color_ne=green").await;
    assert_eq!(reply.ids(), ["d-2:w-d", "d-1:w-a", "d-1:w-c"]);
    let reverse = reply.body["sort"]["reverse"].as_str().unwrap();
    let reply = world.get(reverse.strip_prefix("https://host.example").unwrap()).await;
    assert_eq!(reply.ids(), ["d-1:w-c", "d-1:w-a", "d-2:w-d"]);
    assert_eq!(reply.body["sort"]["order"], "desc");
    let by_size = reply.body["sort"]["links"]["size"].as_str().unwrap();
    assert_eq!(by_size, "https://host.example/v3/widgets?color_ne=green&sort=size");
    assert_eq!(reply.body["sort"]["links"].get("weight"), None, "text and choices only");
}

#[tokio::test]
async fn a_field_that_is_not_set_counts_as_its_default() {
    let world = world_of_widgets().await;
    world.depots.put(json!({"metadata": {"name": "d-1"}, "spec": {"displayName": "north"}}));
    assert_eq!(ids(&world, "size=small&limit=1").await, ["d-1:w-a"]);
    assert_eq!(ids(&world, "size_ne=small").await, Vec::<String>::new());
    // The id as it is shown, not the name that it is made of.
    assert_eq!(ids(&world, "id=d-2:w-d").await, ["d-2:w-d"]);
    assert_eq!(world.get("/v3/depots?id=d-1&name=north").await.ids(), ["d-1"]);
}

#[tokio::test]
async fn lists_can_come_from_another_source() {
    struct Index;
    impl Lists for Index {
        fn page<'a>(
            &'a self,
            context: &'a Context<'a>,
            request: ListRequest<'a>,
        ) -> BoxFuture<'a, Result<Page, ApiError>> {
            Box::pin(async move {
                let mut page = Scan.page(context, request).await?;
                page.resources.truncate(1);
                page.total = 7;
                page.next = Some("d-9:w".to_owned());
                Ok(page)
            })
        }
    }
    let mut world = world_of_widgets().await;
    world.view = world.view.with_lists(Index);
    let reply = world.get("/v3/widgets?color=red").await;
    assert_eq!(reply.ids(), ["d-1:w-a"]);
    let next = "https://host.example/v3/widgets?color=red&marker=d-9:w";
    assert_eq!(reply.body["pagination"]["total"], 7);
    assert_eq!(reply.body["pagination"]["next"], next);
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
