//! What the verbs do to stored objects, and the form of what refuses them.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use serde_json::{Value, json};

use super::world::{MemoryStore, World, depot, stored_widget};
use crate::{
    Action, ActionRequest, ActionResponse, ApiError, ApiVersion, Caller, Descriptor, KubeResource,
    RestView,
};

const PATH: &str = "/v3/widgets/d-1:w-1";

fn world() -> World {
    let world = World::new();
    let spec = json!({"displayName": "One", "depotName": "d-1", "color": "red", "tags": ["x"]});
    world.widgets.put(stored_widget("d-1", "w-1", spec));
    world
}

#[tokio::test]
async fn a_put_merges_and_replaces_only_on_request() {
    let world = world();
    let reply = world.call("PUT", PATH, json!({"color": "blue"})).await;
    let found = (reply.status, &reply.body["color"], &reply.body["tags"]);
    assert_eq!(found, (200, &json!("blue"), &json!(["x"])));
    let reply = world.call("PUT", &format!("{PATH}?_replace=true"), json!({"name": "Two"})).await;
    let found = ["name", "color", "tags", "depotId", "count"].map(|name| &reply.body[name]);
    assert_eq!(found, [&json!("Two"), &Value::Null, &Value::Null, &json!("d-1"), &json!(2)]);
    assert_eq!(reply.body["labels"], json!({"region": "north"}), "they are not part of it");
}

#[tokio::test]
async fn labels_stay_when_none_are_sent_and_go_when_left_out() {
    let world = world();
    let labels = async |body: Value| world.call("PUT", PATH, body).await.body["labels"].clone();
    assert_eq!(labels(json!({"color": "blue"})).await, json!({"region": "north"}));
    assert_eq!(labels(json!({"labels": {"zone": "a"}})).await, json!({"zone": "a"}));
    assert_eq!(labels(json!({"labels": {}})).await, json!({}));
}

#[tokio::test]
async fn the_query_may_name_the_method() {
    for (method, query) in [
        ("POST", "action=remove"),
        ("POST", "_method=DELETE"),
        ("GET", "_method=delete"),
        ("PUT", "_method=DELETE"),
    ] {
        let world = world();
        let reply = world.call(method, &format!("{PATH}?{query}"), json!({})).await;
        assert_eq!((reply.status, reply.bytes.len()), (204, 0), "{method} {query}");
        assert_eq!(world.widgets.stored("d-1", "w-1"), None);
    }
    let reply =
        world().call("POST", &format!("{PATH}?_method=PUT"), json!({"color": "blue"})).await;
    assert_eq!((reply.status, &reply.body["color"]), (200, &json!("blue")));
    let reply =
        world().call("POST", &format!("{PATH}?_method=GET"), json!({"color": "blue"})).await;
    assert_eq!((reply.status, &reply.body["color"]), (200, &json!("red")));
}

/// Requests that the view sends to delete a depot.
async fn deletes(query: &str) -> Vec<(Method, String, Value)> {
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let record = seen.clone();
    let api = tower::service_fn(move |request: Request<kube::client::Body>| {
        let record = record.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let sent = serde_json::from_slice(&body).unwrap_or_default();
            record.lock().unwrap().push((parts.method.clone(), parts.uri.path().to_owned(), sent));
            let status = json!({"kind": "Status", "reason": "NotFound", "code": 404});
            let (code, answer) =
                if parts.method == Method::GET { (404, status) } else { (200, json!({})) };
            let answer = kube::client::Body::from(answer.to_string().into_bytes());
            let answer = Response::builder().status(code).body(answer).unwrap();
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer)
        }
    });
    let view = RestView::new([ApiVersion::new("example.io", "v3", "/v3")], [depot()]);
    let request = Request::delete(format!("/v3/depots/d-1{query}")).body("".into()).unwrap();
    let client = kube::Client::new(api, "default");
    let reply = view.handle(request, &Caller::user("u-alice"), &client).await;
    assert_eq!(reply.status(), 204);
    seen.lock().unwrap().clone()
}

#[tokio::test]
async fn a_delete_propagates_in_the_background_by_default() {
    let sent = deletes("").await;
    let (method, path, options) = &sent[0];
    assert_eq!((method, path.as_str()), (&Method::DELETE, "/apis/example.io/v1/depots/d-1"));
    let expected = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
    });
    assert_eq!(options, &expected);
    let sent = deletes("?propagationPolicy=Foreground&gracePeriodSeconds=0").await;
    let options = (&sent[0].2["propagationPolicy"], &sent[0].2["gracePeriodSeconds"]);
    assert_eq!(options, (&json!("Foreground"), &json!(0)));
    let sent = deletes("?gracePeriodSeconds=soon").await;
    assert_eq!(sent[0].2.get("gracePeriodSeconds"), None);
}

#[tokio::test]
async fn a_new_object_is_named_after_the_letters_of_its_type() {
    for (id, prefix) in [
        ("cluster", "c-"),
        ("project", "p-"),
        ("node", "n-"),
        ("nodePool", "np-"),
        ("user", "u-"),
        ("clusterRoleTemplateBinding", "crtb-"),
        ("projectRoleTemplateBinding", "prtb-"),
        ("nodeTemplate", "nt-"),
        ("cloudCredential", "cc-"),
        ("multiClusterApp", "mca-"),
        ("globalRoleBinding", "grb-"),
        ("globalRole", "gr-"),
        ("roleTemplate", "rt-"),
        ("clusterTemplate", "ct-"),
        ("clusterTemplateRevision", "ctr-"),
        ("notifier", "n-"),
    ] {
        let kind = Descriptor::with_store(id, "things", Arc::<MemoryStore>::default());
        assert_eq!(kind.name_prefix, prefix, "{id}");
    }
    let world = world();
    let made = world.call("POST", "/v3/widgets", json!({"name": "x", "depotId": "a:d-1"})).await;
    let (namespace, name) = made.body["id"].as_str().unwrap().split_once(':').unwrap();
    assert!(namespace == "d-1" && name.starts_with("w-"), "{namespace} {name}");
    let stored = world.widgets.stored(namespace, name).unwrap();
    assert_eq!(stored["metadata"]["annotations"]["field.cattle.io/creatorId"], "u-alice");
    assert_eq!(stored["metadata"]["labels"]["cattle.io/creator"], "norman");
    assert_eq!(made.body["namespaceId"], Value::Null);
}

#[tokio::test]
async fn a_namespaced_type_needs_its_namespace_and_retains_it() {
    let (world, store) = (world(), Arc::<MemoryStore>::default());
    let resource = KubeResource::new("example.io", "v1", "tools", "Tool", true);
    world.view.register(Descriptor::new("tool", "tools", resource).store(store.clone()));
    let reply = world.call("POST", "/v3/tools", json!({"name": "saw"})).await;
    assert_eq!(
        (reply.code(), &reply.body["fieldName"]),
        ("MissingRequired", &json!("namespaceId"))
    );
    let body = json!({"name": "saw", "namespaceId": "shed"});
    let reply = world.call("POST", "/v3/tools", body).await;
    assert_eq!((reply.status, &reply.body["id"]), (201, &json!("shed:saw")));
    let body = json!({"namespaceId": "barn", "labels": {"a": "b"}});
    let reply = world.call("PUT", "/v3/tools/shed:saw", body).await;
    assert_eq!((reply.status, &reply.body["namespaceId"]), (200, &json!("shed")));
    assert!(store.stored("shed", "saw").is_some() && store.stored("barn", "saw").is_none());
    let fields = world.get("/v3/schemas/depot").await.body["resourceFields"].clone();
    assert_eq!(fields.get("namespaceId"), None, "{fields}");
}

#[test]
fn errors_have_the_form_that_clients_switch_on() {
    for (error, status, code) in [
        (ApiError::unauthorized("x"), 401, "Unauthorized"),
        (ApiError::permission_denied("x"), 403, "PermissionDenied"),
        (ApiError::no_such_id(), 404, "NotFound"),
        (ApiError::action_not_available("x"), 404, "ActionNotAvailable"),
        (ApiError::method_not_allowed("PATCH"), 405, "MethodNotAllow"),
        (ApiError::too_large(1), 413, "RequestEntityTooLarge"),
        (ApiError::invalid_action("x"), 422, "InvalidAction"),
        (ApiError::invalid_body("x"), 422, "InvalidBodyContent"),
        (ApiError::server_error("x"), 500, "ServerError"),
        (ApiError::new(503, "ClusterUnavailable", "x"), 503, "ClusterUnavailable"),
        // What is no status of an error.
        (ApiError::new(200, "Odd", "x"), 500, "Odd"),
    ] {
        let message = error.message.clone();
        let expected = json!({
            "type": "error", "baseType": "error", "code": code, "status": status,
            "message": message,
        });
        assert_eq!((error.status_code().as_u16(), error.to_json()), (status, expected));
    }
    let of_field = ApiError::invalid_field("NotUnique", "name", "taken").to_json();
    assert_eq!((&of_field["status"], &of_field["fieldName"]), (&json!(422), &json!("name")));
    let nobody = json!({
        "type": "error", "status": "401", "message": "Unauthorized 401: must authenticate",
    });
    assert_eq!(ApiError::unauthenticated().to_json(), nobody);
}

#[tokio::test]
async fn a_type_can_take_any_id_and_an_action_can_return_many() {
    let world = world();
    let store = Arc::<MemoryStore>::default();
    for name in ["far://b/1", "far://a:2"] {
        store.put(json!({"metadata": {"name": name}}));
    }
    let stars = Descriptor::with_store("star", "stars", store).any_id();
    world.view.register(stars.collection_action(Action::new("find", find_two)));

    let reply = world.get("/v3/stars/far:%2F%2Fb%2F1").await;
    assert_eq!((reply.status, &reply.body["id"]), (200, &json!("far://b/1")));
    let own = reply.body["links"]["self"].as_str().unwrap();
    assert!(own.ends_with("/v3/stars/far:%2F%2Fb%2F1"), "{own}");
    assert_eq!(world.get("/v3/stars/far:%2F%2Fa:2").await.status, 200);
    assert_eq!(world.get("/v3/stars/far:%2F%2Fc").await.status, 404);
    let reply = world.call("POST", "/v3/stars?action=find", json!({})).await;
    assert_eq!((reply.status, reply.ids()), (200, vec!["far://b/1", "x"]));
    assert_eq!(reply.body["pagination"]["total"], 2);
    let kind = (&reply.body["type"], &reply.body["resourceType"]);
    assert_eq!(kind, (&json!("collection"), &json!("star")));
}

fn find_two(_: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    let found = ["far://b/1", "x"].map(|name| json!({"metadata": {"name": name}}));
    Box::pin(async move { Ok(ActionResponse::Objects(found.to_vec())) })
}
