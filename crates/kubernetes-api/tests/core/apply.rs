//! Apply configurations and field owners, on built-in kinds.

use std::sync::Arc;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::{ApiServer, Registry, UserInfo};
use http::{Method, Request};
use http_body_util::BodyExt;
use kubernetes_api::kinds;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use crate::{MastersOnly, Nobody};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct World {
    server: ApiServer,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry = Registry::start(storage, Arc::new(AdmissionChain::default())).await.unwrap();
        let mut resources = kinds::full_profile(&std::sync::Arc::default());
        kinds::add_scale(&registry, &mut resources);
        registry.install(resources).await.unwrap();
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(Nobody),
            authorizer: Arc::new(MastersOnly),
            git_version: "v1.36.3".to_owned(),
        });
        let world = Self { server, _folder: folder };
        let default = json!({"metadata": {"name": "default"}});
        assert_eq!(world.send(Method::POST, "/api/v1/namespaces", JSON, &default).await.0, 201);
        world
    }

    /// As the field manager `tool`.
    async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "tool/1.0 (linux)")
            .body(body.to_string())
            .unwrap();
        request.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
        let response = self.server.handle(request).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }

    async fn apply(&self, path: &str, query: &str, config: &Value) -> (u16, Value) {
        self.send(Method::PATCH, &format!("{path}?{query}"), APPLY, config).await
    }
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

/// For each owner its name, its operation, its subresource and its fields.
fn owners(object: &Value) -> Vec<(String, String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let (name, how) = (text(&entry["manager"]), text(&entry["operation"]));
            (name, how, text(&entry["subresource"]), entry["fieldsV1"].clone())
        })
        .collect()
}

fn owner(name: &str, how: &str, fields: Value) -> (String, String, String, Value) {
    (name.to_owned(), how.to_owned(), String::new(), fields)
}

#[tokio::test]
async fn applied_fields_are_created_changed_and_removed() {
    let world = World::start().await;
    let path = format!("{MAPS}/a");
    let (code, created) =
        world.apply(&path, "fieldManager=x", &map(json!({"a": "1", "b": "2"}))).await;
    assert_eq!((code, &created["data"]), (201, &json!({"a": "1", "b": "2"})));
    let fields = json!({"f:data": {"f:a": {}, "f:b": {}}});
    assert_eq!(owners(&created), [owner("x", "Apply", fields)]);

    let (code, same) =
        world.apply(&path, "fieldManager=x", &map(json!({"a": "1", "b": "2"}))).await;
    assert_eq!(code, 200);
    assert_eq!(same["metadata"], created["metadata"], "neither version nor times have changed");

    let (_, less) = world.apply(&path, "fieldManager=x", &map(json!({"a": "3"}))).await;
    assert_eq!(less["data"], json!({"a": "3"}));
}

#[tokio::test]
async fn fields_of_other_managers_conflict_or_are_shared_or_taken() {
    let world = World::start().await;
    let path = format!("{MAPS}/a");
    world.send(Method::POST, MAPS, JSON, &map(json!({"a": "1", "b": "1"}))).await;
    let (code, refused) =
        world.apply(&path, "fieldManager=x", &map(json!({"a": "2", "b": "2"}))).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        refused["message"],
        "Apply failed with 2 conflicts: conflicts with \"tool\" using v1:\n- .data.a\n- .data.b"
    );
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldManagerConflict");
    assert_eq!(cause["field"], ".data.a");
    assert!(cause["message"].as_str().unwrap().starts_with("conflict with \"tool\" using v1"));

    let (_, shared) = world.apply(&path, "fieldManager=x", &map(json!({"a": "1"}))).await;
    let all = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    let mine = json!({"f:data": {"f:a": {}}});
    assert_eq!(owners(&shared), [owner("x", "Apply", mine.clone()), owner("tool", "Update", all)]);

    let (code, taken) =
        world.apply(&path, "fieldManager=x&force=true", &map(json!({"a": "2"}))).await;
    assert_eq!((code, &taken["data"]), (200, &json!({"a": "2", "b": "1"})));
    let left = json!({"f:data": {".": {}, "f:b": {}}});
    assert_eq!(owners(&taken), [owner("x", "Apply", mine), owner("tool", "Update", left)]);
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_fits_its_path() {
    let world = World::start().await;
    let path = format!("{MAPS}/a");
    let refused = async |query: &str, config: Value| {
        let (code, status) = world.apply(&path, query, &config).await;
        (code, status["message"].as_str().unwrap().to_owned())
    };
    let (code, text) = refused("", map(json!({}))).await;
    assert_eq!(code, 422);
    assert!(text.contains("fieldManager: Required value: is required for apply patch"), "{text}");
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    assert_eq!(
        refused("fieldManager=x", other).await,
        (400, "invalid object type: /v1, Kind=Secret".to_owned())
    );
    let mut given = map(json!({}));
    given["metadata"]["managedFields"] = json!([]);
    let text = "metadata.managedFields must be nil";
    assert_eq!(refused("fieldManager=x", given).await, (400, text.to_owned()));
    let (code, text) = refused("fieldManager=x", map(json!({"a": 1}))).await;
    assert_eq!(code, 500);
    assert!(
        text.starts_with("failed to create typed patch object (/a; /v1, Kind=ConfigMap)"),
        "{text}"
    );
}

#[tokio::test]
async fn undecodable_bodies_are_refused_before_names_and_versions_are_checked() {
    let world = World::start().await;
    let path = "/api/v1/namespaces/default/limitranges/a";
    let mut config = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "other", "resourceVersion": "1"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1e3m"}}]},
    });
    let (code, refused) = world.apply(path, "fieldManager=m", &config).await;
    assert_eq!(code, 500);
    assert_eq!(
        refused["message"],
        "failed to convert new object (/other; /v1, Kind=LimitRange) to proper version: unable to \
         convert unstructured object to /v1, Kind=LimitRange: quantities must match the regular \
         expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    config["spec"]["limits"][0]["max"]["cpu"] = "1".into();
    assert_eq!(world.apply(path, "fieldManager=m", &config).await.0, 400);
}

#[tokio::test]
async fn updates_take_what_they_change_and_a_body_can_begin_anew() {
    let world = World::start().await;
    let path = format!("{MAPS}/a");
    world.apply(&path, "fieldManager=x", &map(json!({"a": "1", "b": "1"}))).await;
    let patch = json!({"data": {"a": "2"}});
    let (_, patched) =
        world.send(Method::PATCH, &format!("{path}?fieldManager=y"), MERGE, &patch).await;
    let (x, y) = (json!({"f:data": {"f:b": {}}}), json!({"f:data": {"f:a": {}}}));
    assert_eq!(owners(&patched), [owner("x", "Apply", x), owner("y", "Update", y)]);

    let mut anew = patched.clone();
    anew["metadata"]["managedFields"] = json!([{}]);
    let (code, anew) = world.send(Method::PUT, &path, JSON, &anew).await;
    assert_eq!((code, owners(&anew)), (200, vec![]));
    let (_, applied) = world.apply(&path, "fieldManager=x", &map(json!({"a": "2"}))).await;
    assert_eq!(owners(&applied)[1].0, "before-first-apply");
}

#[tokio::test]
async fn status_and_scale_have_owners_of_their_own() {
    let world = World::start().await;
    let path = format!("{DEPLOYMENTS}/a");
    let pod = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
        "status": {"replicas": 7}});
    let (code, created) = world.apply(&path, "fieldManager=x", &deployment).await;
    assert_eq!(code, 201, "{created}");
    let fields = &owners(&created)[0].3;
    assert!(fields.get("f:status").is_none() && fields["f:spec"].get("f:replicas").is_some());
    let container = &fields["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(container, &json!({".": {}, "f:image": {}, "f:name": {}}));

    let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"replicas": 9}, "status": {"unavailableReplicas": 1}});
    let (code, returned) = world.apply(&format!("{path}/status"), "fieldManager=y", &status).await;
    assert_eq!((code, &returned["spec"]["replicas"]), (200, &json!(1)), "{returned}");
    let y = owners(&returned).into_iter().find(|owner| owner.0 == "y").unwrap();
    assert_eq!((y.2.as_str(), y.3), ("status", json!({"f:status": {"f:unavailableReplicas": {}}})));

    let scale = json!({"spec": {"replicas": 3}});
    let (code, _) = world.send(Method::PATCH, &format!("{path}/scale"), MERGE, &scale).await;
    assert_eq!(code, 200);
    let (_, scaled) = world.send(Method::GET, &path, JSON, &Value::Null).await;
    let tool = owners(&scaled).into_iter().find(|owner| owner.0 == "tool").unwrap();
    assert_eq!((tool.2.as_str(), tool.3), ("scale", json!({"f:spec": {"f:replicas": {}}})));
    let (code, refused) = world.apply(&path, "fieldManager=x", &deployment).await;
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"tool\" with subresource \"scale\" using \
         apps/v1: .spec.replicas"
    );
}
