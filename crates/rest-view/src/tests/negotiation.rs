//! Formats of responses: JSON, YAML, the redirect to the web interface, resources for editing and
//! export.

use http::Request;
use serde_json::{Value, json};

use super::world::{Reply, World, stored_widget};

const PATH: &str = "/v3/widgets/d-1:w-1";
/// The headers that Firefox sends when a user opens a page.
const OPENED: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn world() -> World {
    let world = World::new();
    let spec = json!({
        "displayName": "One", "depotName": "d-1", "color": "red", "size": "large",
        "enabled": false, "dimensions": {"height": 3},
    });
    world.widgets.put(stored_widget("d-1", "w-1", spec));
    world
}

async fn sent(method: &str, query: &str, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::builder().method(method).uri(format!("{PATH}{query}"));
    request = request.header("host", "host.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world().send(request, "").await
}

#[tokio::test]
async fn the_format_of_a_response_follows_the_query_and_then_the_headers() {
    let browser = ("user-agent", "Mozilla/5.0 (X11)");
    let yaml = ("accept", "text/plain, application/yaml");
    for (query, headers, expected) in [
        ("", vec![], "application/json"),
        ("", vec![("accept", "application/json")], "application/json"),
        ("", vec![yaml], "application/yaml"),
        ("?_format=JSON", vec![yaml], "application/json"),
        ("?_format=yaml", vec![], "application/yaml"),
        ("?_format=xml", vec![yaml], "application/yaml"),
        ("?_format=xml", vec![("accept", "text/html")], "application/json"),
        ("", vec![browser, ("accept", "*/*")], "application/json"),
        ("", vec![browser, ("accept", "application/json")], "application/json"),
        ("?_format=json", vec![browser, ("accept", OPENED)], "application/json"),
    ] {
        let reply = sent("GET", query, &headers).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], expected, "{query} {headers:?}");
    }
}

#[tokio::test]
async fn every_response_links_its_schemas_and_is_already_expired() {
    for (method, query, status) in [
        ("GET", "", 200),
        ("GET", "x", 404),
        ("PATCH", "", 405),
        ("PUT", "?_method=POST", 405),
        ("POST", "?action=explode", 422),
        ("DELETE", "", 204),
    ] {
        let reply = sent(method, query, &[]).await;
        assert_eq!(reply.status, status, "{method} {query}");
        assert_eq!(reply.headers["x-api-schemas"], "https://host.example/v3/schemas");
        assert_eq!(reply.headers["expires"], "Wed 24 Feb 1982 18:42:00 GMT");
        assert_eq!(reply.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn who_opens_the_api_in_a_browser_is_sent_to_the_interface() {
    let browser = [("user-agent", "Mozilla/5.0"), ("accept", OPENED)];
    for (query, headers) in [("", &browser[..]), ("?_format=html", &[])] {
        let reply = sent("GET", query, headers).await;
        assert_eq!((reply.status, reply.bytes.len()), (302, 0), "{query}");
        assert_eq!(reply.headers["location"], "https://host.example/");
        assert_eq!(reply.headers["cache-control"], "no-store");
    }
    // A change is never redirected.
    let reply = sent("DELETE", "?_format=html", &[]).await;
    assert_eq!(reply.status, 204);
    let reply = sent("GET", "?_format=html&_method=DELETE", &[]).await;
    assert_eq!(reply.status, 204);
}

#[tokio::test]
async fn a_request_for_action_links_gets_them_instead_of_actions() {
    let path = "/v3/widgets/d-1:w-2";
    let world = world();
    world.widgets.put(stored_widget("d-1", "w-2", json!({"size": "small"})));
    let request = Request::builder().uri(path).header("host", "h").header("x-api-action-links", "");
    let reply = world.send(request, "").await;
    assert_eq!(reply.body["actionLinks"]["paint"], format!("https://h{path}?action=paint"));
    assert_eq!(reply.body.get("actions"), None);
    assert!(world.get(path).await.body["actions"]["paint"].is_string());
}

#[tokio::test]
async fn an_export_is_what_makes_the_resource_again() {
    let world = world();
    let exported = world.get(&format!("{PATH}?_export=true")).await.body;
    let expected = json!({
        "name": "One", "depotId": "d-1", "color": "red", "size": "large", "enabled": false,
        "dimensions": {"height": 3}, "note": "hello", "annotations": {"plain": "1"},
        "labels": {"region": "north"},
    });
    assert_eq!(exported, expected);
    let made = world.call("POST", "/v3/widgets", exported.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.body["id"].as_str().unwrap();
    let mut again = world.get(&format!("/v3/widgets/{id}?_export=true")).await.body;
    again["labels"].as_object_mut().unwrap().remove("cattle.io/creator");
    assert_eq!(again, exported);
    let list = world.get("/v3/widgets?_export=true&color=red&limit=1").await.body;
    assert_eq!((&list["data"][0]["color"], &list["data"][0]["id"]), (&json!("red"), &Value::Null));
}

#[tokio::test]
async fn an_edit_shows_what_may_be_changed_and_hints_at_the_rest() {
    let world = world();
    let edited = world.get(&format!("{PATH}?_edit=true")).await.body;
    assert_eq!((&edited["id"], &edited["color"]), (&json!("d-1:w-1"), &json!("red")));
    for gone in ["created", "createdTS", "count", "depotId", "creatorId", "state", "secret"] {
        assert_eq!(edited.get(gone), None, "{gone}");
    }
    assert_eq!(edited["zzz#()(array[string])tags"], json!([]));
    assert_eq!(edited["zzz#()(int)weight"], 0);
    assert_eq!(edited["zzz#()(password)pin"], "");

    let request = Request::builder().uri(format!("{PATH}?_edit=true&_format=yaml"));
    let text = String::from_utf8(world.send(request, "").await.bytes.to_vec()).unwrap();
    for line in ["color: red", "# tags: []", "# weight: 0"] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
    }
    // What is shown can be sent back, comments and all.
    let request = Request::builder().method("PUT").uri(PATH);
    let request = request.header("content-type", "application/yaml");
    let reply = world.send(request, &text.replace("color: red", "color: blue")).await;
    assert_eq!((reply.status, &reply.body["color"]), (200, &json!("blue")), "{}", reply.body);
    assert_eq!(reply.body["enabled"], false);
}
