//! Types inside one resource, and the links between types.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::world::{MemoryStore, World, stored_widget};
use crate::{
    Action, ActionRequest, ActionResponse, ApiError, Context, Descriptor, Field, Inside, Key, Link,
    ListScope, Store,
};

/// One shelf in every depot, from a store that reads in the depot itself.
struct Shelves;

fn shelf(context: &Context<'_>) -> Result<Value, ApiError> {
    let Some(Inside { kind, id }) = context.inside else { return Err(ApiError::no_such_id()) };
    assert_eq!(kind, "depot");
    Ok(json!({"metadata": {"name": "top"}, "spec": {"place": format!("in {id}")}}))
}

impl Store for Shelves {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move { Ok(vec![shelf(context)?]) })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { shelf(context) })
    }
}

fn sheet(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(async move {
        let color = request.object.unwrap()["spec"]["color"].as_str().unwrap_or_default();
        Ok(ActionResponse::Raw(http::Response::new(format!("color: {color}\n").into())))
    })
}

fn world() -> World {
    let world = World::new();
    for depot in ["d-1", "d-2"] {
        world.depots.put(json!({"metadata": {"name": depot}}));
    }
    let spec = json!({"depotName": "d-1", "color": "red", "size": "small"});
    world.widgets.put(stored_widget("d-1", "w-1", spec));
    let shelf = Descriptor::with_store("shelf", "shelves", Arc::new(Shelves))
        .version("/v3/depot")
        .spec([Field::string("place")])
        .action(Action::new("sort", sheet));
    world.view.register(shelf);
    let ticket = Descriptor::with_store("ticket", "bigTickets", Arc::<MemoryStore>::default())
        .spec([Field::reference("widgetId", "widget").create()]);
    world.view.register(ticket);
    let open = |stored: &Value, _: &crate::Caller| stored["spec"]["size"] == "small";
    let widget = super::world::widget().store(world.widgets.clone());
    world.view.register(widget.link(Link::new("dataSheet", sheet).available_when(open)));
    world
}

#[tokio::test]
async fn a_type_of_the_sub_context_is_served_for_the_resource_it_is_inside_of() {
    let world = world();
    for path in ["/v3/depots/d-2/shelves", "/v3/depot/d-2/SHELF"] {
        let reply = world.get(path).await;
        assert_eq!(reply.ids(), ["top"], "{path}");
        let shelf = &reply.body["data"][0];
        assert_eq!(shelf["place"], "in d-2");
        let own = "https://host.example/v3/depot/d-2/shelves/top";
        assert_eq!(shelf["links"]["self"], own);
        assert_eq!(shelf["actions"]["sort"], format!("{own}?action=sort"));
        let shown = world.get(own.strip_prefix("https://host.example").unwrap()).await;
        assert_eq!((shown.status, &shown.body), (200, shelf));
    }
    assert_eq!(world.get("/v3/shelves").await.status, 404);
    let depot = world.get("/v3/depots/d-1").await.body;
    assert_eq!(depot["links"]["shelves"], "https://host.example/v3/depots/d-1/shelves");
}

#[tokio::test]
async fn schemas_inside_a_resource_lead_to_collections_inside_it() {
    let world = world();
    for (path, collection) in [
        ("/v3/depots/d-1/schemas", "/v3/depots/d-1/shelves"),
        ("/v3/depots/schemas", "/v3/depot/shelves"),
    ] {
        let reply = world.get(path).await;
        assert_eq!(reply.ids(), ["shelf"], "{path}");
        let schema = &reply.body["data"][0];
        assert_eq!(schema["links"]["collection"], format!("https://host.example{collection}"));
        let version = json!({
            "group": "depot.example.io", "version": "v3", "path": "/v3/depot",
            "subContext": true, "filterField": "/v3/schemas/depot",
        });
        assert_eq!(schema["version"], version);
    }
    let one = world.get("/v3/depots/d-1/schemas/shelf").await;
    assert_eq!((one.status, &one.body["id"]), (200, &json!("shelf")));
}

#[tokio::test]
async fn an_unknown_type_below_a_resource_is_reported_as_a_missing_schema() {
    let world = world();
    for path in ["/v3/depots/d-1/nothings", "/v3/depots/d-1/nothings/x", "/v3/nothings"] {
        let reply = world.get(path).await;
        assert_eq!((reply.status, reply.code()), (404, "NotFound"), "{path}");
        assert_eq!(reply.body["message"], "failed to find schema nothings", "{path}");
    }
    // Known, but in no relation to depots.
    assert_eq!(world.get("/v3/depots/d-1/bigtickets").await.status, 404);
}

#[tokio::test]
async fn a_back_reference_of_an_ordinary_type_is_a_filter() {
    let widget = world().get("/v3/widgets/d-1:w-1").await.body;
    let expected = "https://host.example/v3/bigTickets?widgetId=d-1:w-1";
    assert_eq!(widget["links"]["bigTickets"], expected);
}

#[tokio::test]
async fn links_that_are_served_are_named_and_followed() {
    let world = world();
    let widget = world.get("/v3/widgets/d-1:w-1").await.body;
    let url = widget["links"]["dataSheet"].as_str().unwrap();
    assert_eq!(url, "https://host.example/v3/widgets/d-1:w-1/datasheet");
    for path in ["/v3/widgets/d-1:w-1/datasheet", "/v3/depots/d-1/widgets/d-1:w-1/datasheet"] {
        let reply = world.get(path).await;
        assert_eq!((reply.status, &reply.bytes[..]), (200, &b"color: red\n"[..]), "{path}");
    }
    for path in [
        "/v3/widgets/d-1:w-1/dataSheet",
        "/v3/widgets/d-1:w-1/yaml",
        "/v3/widgets/d-1:w-9/datasheet",
        "/v3/depots/d-2/widgets/d-1:w-1/datasheet",
    ] {
        assert_eq!(world.get(path).await.status, 404, "{path}");
    }
    let reply = world.call("POST", "/v3/widgets/d-1:w-1/datasheet", json!({})).await;
    assert_eq!((reply.status, reply.code()), (405, "MethodNotAllow"));
    world.widgets.put(stored_widget("d-1", "w-1", json!({"size": "large"})));
    let widget = world.get("/v3/widgets/d-1:w-1").await.body;
    assert_eq!(widget["links"].get("dataSheet"), None);
    assert_eq!(world.get("/v3/widgets/d-1:w-1/datasheet").await.status, 404);
}
