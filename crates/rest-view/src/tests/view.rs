//! Whole requests: verbs, errors, links, headers.

use http::Request;
use identity::TokenKey;
use identity::browser::CsrfToken;
use serde_json::{Value, json};

use super::world::{World, stored_widget};
use crate::Caller;
use crate::view::BODY_SIZE_MAX;

fn world() -> World {
    let world = World::new();
    let spec = json!({"displayName": "One", "depotName": "d-1", "color": "red", "size": "small"});
    world.widgets.put(stored_widget("d-1", "w-1", spec));
    world.depots.put(json!({"metadata": {"name": "d-1"}, "spec": {"displayName": "north"}}));
    world.depots.put(json!({"metadata": {"name": "front"}}));
    world
}

#[tokio::test]
async fn a_resource_carries_its_links_and_actions() {
    insta::assert_json_snapshot!(world().get("/v3/widgets/d-1:w-1").await.body);
}

#[tokio::test]
async fn back_references_become_links_below_a_sub_context() {
    let reply = world().get("/v3/depots/d-1").await;
    assert_eq!(reply.body["name"], "north");
    let widgets = "https://host.example/v3/depots/d-1/widgets";
    assert_eq!(reply.body["links"]["widgets"], widgets);
}

#[tokio::test]
async fn types_and_versions_are_found_in_any_case_and_number() {
    let world = world();
    let paths = ["/v3/WIDGETS/d-1:w-1", "/v3/widget/d-1%3Aw-1", "//v3//widgets//d-1:w-1/"];
    for path in paths {
        assert_eq!(world.get(path).await.body["id"], "d-1:w-1", "{path}");
    }
}

#[tokio::test]
async fn what_is_no_id_is_not_found() {
    let world = world();
    for path in [
        "/v3/widgets/w-1",
        "/v3/widgets/a:b:c",
        "/v3/widgets/d-1:..",
        "/v3/depots/d:x",
        "/v3/widgets/d-1%2F..:w",
    ] {
        let reply = world.get(path).await;
        assert_eq!((reply.status, reply.code()), (404, "NotFound"), "{path}");
        assert_eq!(reply.body["type"], "error");
        assert_eq!(reply.body["baseType"], "error");
    }
    let reply = world.get("/v3/nothings").await;
    assert_eq!(reply.body["message"], "failed to find schema nothings");
}

#[tokio::test]
async fn a_create_returns_201_with_fields_that_are_shown_once() {
    let world = world();
    let body = json!({"name": " Two ", "depotId": "d-1", "secret": "s", "pin": "1", "weight": "7"});
    let reply = world.call("POST", "/v3/widgets", body).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.body["name"], "Two");
    assert_eq!(reply.body["secret"], "s");
    assert_eq!(reply.body["creatorId"], "u-alice");
    assert_eq!(reply.body["weight"], 7);
    assert_eq!(reply.body["pin"], Value::Null);
    let id = reply.body["id"].as_str().unwrap();
    assert!(id.starts_with("d-1:w-"), "{id}");
    let again = world.get(&format!("/v3/widgets/{id}")).await;
    assert_eq!(again.body["secret"], Value::Null);
}

#[tokio::test]
async fn bad_input_names_the_field_and_the_rule() {
    let world = world();
    for (body, code, field) in [
        (json!({"depotId": "d-1"}), "MissingRequired", "name"),
        (json!({"name": "", "depotId": "d-1"}), "MissingRequired", "name"),
        (json!({"name": "x"}), "MissingRequired", "depotId"),
        (json!({"name": "x", "depotId": "d-1", "size": "huge"}), "InvalidOption", "size"),
        (json!({"name": "x", "depotId": "d-1", "weight": 101}), "MaxLimitExceeded", "weight"),
        (json!({"name": "x", "depotId": "d-1", "weight": -1}), "MinLimitExceeded", "weight"),
        (json!({"name": "x", "depotId": "d-1", "weight": "heavy"}), "InvalidFormat", "weight"),
        (json!({"name": "x", "depotId": "d-1", "tags": {"a": 1}}), "InvalidFormat", "tags"),
        (json!({"name": {}, "depotId": "d-1"}), "InvalidFormat", "name"),
    ] {
        let reply = world.call("POST", "/v3/widgets", body.clone()).await;
        assert_eq!((reply.status, reply.code()), (422, code), "{body}: {}", reply.body);
        assert_eq!(reply.body["fieldName"], field, "{body}");
    }
    let reply = world.call("POST", "/v3/depots", json!({"name": "No_Label"})).await;
    assert_eq!(reply.code(), "InvalidFormat");
    let reply = world.call("PUT", "/v3/widgets/d-1:w-1", json!({"name": null})).await;
    assert_eq!(reply.status, 200, "text may be null: {}", reply.body);
}

#[tokio::test]
async fn hostile_bodies_are_refused_with_a_reason() {
    let world = world();
    let deep = "[".repeat(10_000);
    for (body, status, code) in [
        ("{", 422, "InvalidBodyContent"),
        ("[1]", 422, "InvalidBodyContent"),
        (deep.as_str(), 422, "InvalidBodyContent"),
        (" ".repeat(BODY_SIZE_MAX + 1).as_str(), 413, "RequestEntityTooLarge"),
    ] {
        let request = Request::builder().method("POST").uri("/v3/widgets");
        let reply = world.send(request, body).await;
        assert_eq!((reply.status, reply.code()), (status, code));
        assert!(!reply.body["message"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_update_outlives_conflicts_up_to_a_limit() {
    let world = world();
    *world.widgets.conflicts.lock().unwrap() = 4;
    let reply = world.call("PUT", "/v3/widgets/d-1:w-1", json!({"color": "blue"})).await;
    assert_eq!((reply.status, &reply.body["color"]), (200, &json!("blue")));
    assert_eq!(reply.body["name"], "One");
    *world.widgets.conflicts.lock().unwrap() = 5;
    let reply = world.call("PUT", "/v3/widgets/d-1:w-1", json!({"color": "grey"})).await;
    assert_eq!((reply.status, reply.code()), (409, "Conflict"));
}

#[tokio::test]
async fn a_delete_shows_an_object_that_is_still_terminating_and_is_empty_once_deleted() {
    let world = world();
    let mut held = stored_widget("d-1", "w-2", json!({"displayName": "Held"}));
    held["metadata"]["finalizers"] = json!(["example.io/hold"]);
    world.widgets.put(held);
    let reply = world.call("DELETE", "/v3/widgets/d-1:w-2", Value::Null).await;
    assert_eq!((reply.status, &reply.body["state"]), (200, &json!("removing")));
    let reply = world.call("DELETE", "/v3/widgets/d-1:w-1", Value::Null).await;
    assert_eq!((reply.status, reply.bytes.len()), (204, 0));
    let reply = world.call("POST", "/v3/widgets/d-1:w-1?action=remove", Value::Null).await;
    assert_eq!(reply.status, 404);
    let reply = world.call("POST", "/v3/depots/d-1?_method=delete", Value::Null).await;
    assert_eq!(reply.status, 204);
}

#[tokio::test]
async fn actions_run_when_offered_and_are_refused_by_name_otherwise() {
    let world = world();
    let at = |action: &str| format!("/v3/widgets/d-1:w-1?action={action}");
    let reply = world.call("POST", &at("paint"), json!({"color": "gold"})).await;
    assert_eq!((reply.status, &reply.body["color"]), (200, &json!("gold")));
    let reply = world.call("POST", &at("paint"), json!({})).await;
    assert_eq!((reply.status, reply.code()), (422, "MissingRequired"));
    let reply = world.call("POST", &at("explode"), json!({})).await;
    assert_eq!((reply.status, reply.code()), (422, "InvalidAction"));
    let reply = world.call("POST", "/v3/widgets/d-1:w-9?action=paint", json!({})).await;
    assert_eq!(reply.status, 404);
    assert_eq!(world.call("POST", "/v3/widgets?action=audit", Value::Null).await.status, 204);

    world.widgets.put(stored_widget("d-1", "w-1", json!({"size": "large"})));
    assert_eq!(world.get("/v3/widgets/d-1:w-1").await.body["actions"], json!({}));
    let reply = world.call("POST", &at("paint"), json!({"color": "gold"})).await;
    assert_eq!((reply.status, reply.code()), (404, "ActionNotAvailable"));
}

#[tokio::test]
async fn nobody_reaches_only_what_is_public() {
    let mut world = world();
    world.caller = Caller::anonymous();
    for path in ["/v3", "/v3/schemas", "/v3/widgets", "/v3/depots/d-1", "/v3/depots"] {
        let reply = world.get(path).await;
        let expected = json!({
            "type": "error", "status": "401", "message": "Unauthorized 401: must authenticate",
        });
        assert_eq!((reply.status, &reply.body), (401, &expected), "{path}");
    }
    assert_eq!(world.get("/v3/depots/front").await.status, 200);
    assert_eq!(world.call("DELETE", "/v3/depots/front", Value::Null).await.status, 401);
    assert_eq!(world.get("/v3/depots/front?_method=DELETE").await.status, 401);
    let reply = world.call("POST", "/v3-public/doors?action=greet", json!({"to": "you"})).await;
    assert_eq!(reply.body, json!({"type": "greeting", "baseType": "greeting", "to": "you"}));
}

#[tokio::test]
async fn a_token_bound_to_a_sub_context_reaches_nothing_outside_it() {
    let mut world = world();
    world.widgets.put(stored_widget("d-2", "w-2", json!({"depotName": "d-2"})));
    world.caller = Caller { token_cluster: Some("d-1".to_owned()), ..Caller::user("u-alice") };
    for path in [
        "/v3",
        "/v3/schemas",
        "/v3/depots",
        "/v3/depots/d-2",
        "/v3/depots/d-2/widgets",
        "/v3/widgets",
        "/v3/widgets/d-1:w-1",
        "/v3/depots/schemas",
    ] {
        assert_eq!(world.get(path).await.status, 401, "{path}");
    }
    for path in [
        "/v3/depots/d-1",
        "/v3/depots/d-1/schemas",
        "/v3/depot/d-1/widgets",
        "/v3/depots/d-1/widgets/d-1:w-1",
    ] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
    // Another's resource is not reached through one's own path, nor made there.
    for method in ["GET", "PUT", "DELETE"] {
        let reply = world.call(method, "/v3/depots/d-1/widgets/d-2:w-2", json!({})).await;
        assert_eq!(reply.status, 404, "{method}");
    }
    let body = json!({"name": "x", "depotId": "d-2"});
    let reply = world.call("POST", "/v3/depots/d-1/widgets", body).await;
    assert_eq!((reply.status, &reply.body["depotId"]), (201, &json!("d-1")), "{}", reply.body);
}

#[tokio::test]
async fn methods_that_a_path_does_not_have_are_405_in_the_words_clients_know() {
    let world = world();
    for (method, path) in [
        ("PATCH", "/v3/widgets/d-1:w-1"),
        ("HEAD", "/v3/widgets"),
        ("PUT", "/v3/widgets"),
        ("POST", "/v3/widgets/d-1:w-1"),
        ("POST", "/v3/schemas"),
        ("POST", "/v3-public/doors"),
    ] {
        let reply = world.call(method, path, json!({})).await;
        assert_eq!((reply.status, reply.code()), (405, "MethodNotAllow"), "{method} {path}");
    }
    assert_eq!(world.get("/v3/subscribe").await.status, 501);
}

#[tokio::test]
async fn links_follow_the_way_the_request_came() {
    let world = world();
    for (headers, base) in [
        (vec![("host", "a.example")], "https://a.example"),
        (vec![("host", "a.example:8443"), ("x-forwarded-proto", "http")], "http://a.example:8443"),
        (
            vec![("host", "a"), ("x-forwarded-host", "b.example, c"), ("x-forwarded-proto", "wss")],
            "https://b.example",
        ),
        (
            vec![("host", "a"), ("x-api-host", "d.example"), ("x-api-url-prefix", "/p")],
            "https://d.example/p",
        ),
        (vec![("host", "a"), ("x-forwarded-host", "evil/\"<x>")], "https://a"),
    ] {
        let mut request = Request::builder().uri("/v3/widgets/d-1:w-1");
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let reply = world.send(request, "").await;
        let expected = format!("{base}/v3/widgets/d-1:w-1");
        assert_eq!(reply.body["links"]["self"], expected, "{headers:?}");
    }
}

#[tokio::test]
async fn a_page_must_repeat_the_value_of_its_login_to_change_anything() {
    let mut world = world();
    let (key, other) = ("token-a:one", "token-a:two");
    let csrf = |key: &str| CsrfToken::of(&TokenKey::parse(key).unwrap());
    world.caller = Caller { csrf: Some(csrf(key)), ..Caller::user("u-alice") };
    let request = |method: &str, path: &str| Request::builder().method(method).uri(path);
    let reply = world.send(request("GET", "/v3/widgets"), "").await;
    let cookies: Vec<_> =
        reply.headers.get_all("set-cookie").iter().map(|c| c.to_str().unwrap()).collect();
    let pairs: Vec<_> = cookies.iter().map(|cookie| cookie.split_once(';').unwrap().0).collect();
    let [host_only, plain] = pairs.as_slice() else { panic!("{cookies:?}") };
    let value = plain.strip_prefix("CSRF=").unwrap();
    assert_eq!(host_only.strip_prefix("__Host-CSRF="), Some(value));
    let both = format!("{host_only}; {plain}");
    let known = world.send(request("GET", "/v3/widgets").header("cookie", &both), "").await;
    assert!(known.headers.get("set-cookie").is_none());

    let of_other = csrf(other).missing_cookies(&http::HeaderMap::new());
    let of_other = of_other[1].to_str().unwrap().split_once(';').unwrap().0;
    let other_value = of_other.strip_prefix("CSRF=").unwrap();
    let path = "/v3/widgets/d-1:w-1";
    for refused in [
        request("DELETE", path),
        request("DELETE", path).header("cookie", &both),
        // What another page of the same site can do: set a cookie of its own, and repeat that.
        request("DELETE", path).header("cookie", "CSRF=evil").header("x-api-csrf", "evil"),
        request("DELETE", &format!("{path}?CSRF={value}")).header("cookie", &both),
        request("DELETE", path).header("cookie", of_other).header("x-api-csrf", other_value),
        request("GET", "/v3/widgets/d-1:w-1?_method=DELETE").header("cookie", &both),
        request("DELETE", path).header("cookie", "CSRF=").header("x-api-csrf", ""),
    ] {
        let reply = world.send(refused, "").await;
        assert_eq!((reply.status, reply.code()), (422, "InvalidCSRFToken"));
    }
    let accepted = request("DELETE", path).header("x-api-csrf", value);
    assert_eq!(world.send(accepted, "").await.status, 204);
}

#[tokio::test]
async fn a_program_with_a_token_of_its_own_repeats_nothing() {
    let world = world();
    let reply = Request::builder().method("DELETE").uri("/v3/widgets/d-1:w-1");
    let reply = world.send(reply.header("user-agent", "Mozilla/5.0"), "").await;
    assert_eq!(reply.status, 204);
    assert!(reply.headers.get("set-cookie").is_none());
}

#[tokio::test]
async fn request_and_response_bodies_can_be_yaml() {
    let world = world();
    let request = Request::builder()
        .method("POST")
        .uri("/v3/widgets?_format=yaml")
        .header("content-type", "application/yaml");
    let reply = world.send(request, "name: Two\ndepotId: &d d-1\ntags: [a, no]\ncolor: *d\n").await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.headers["content-type"], "application/yaml");
    let shown: Value = serde_saphyr::from_slice(&reply.bytes).unwrap();
    assert_eq!((&shown["tags"], &shown["color"]), (&json!(["a", "no"]), &json!("d-1")));
}

#[tokio::test]
async fn the_root_links_every_collection() {
    let reply = world().get("/v3").await;
    assert_eq!(reply.headers["x-api-schemas"], "https://host.example/v3/schemas");
    assert_eq!(reply.headers["expires"], "Wed 24 Feb 1982 18:42:00 GMT");
    insta::assert_json_snapshot!(reply.body);
}
