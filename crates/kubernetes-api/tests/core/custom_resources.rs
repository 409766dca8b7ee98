//! Custom resources from their definition to their deletion, through a real client.

use std::sync::Arc;
use std::time::Duration;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::{ApiServer, Registry, UserInfo};
use futures::TryStreamExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kubernetes_api::custom::DefinitionController;
use kubernetes_api::custom::controller::conform::check;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use crate::{MastersOnly, Nobody, reason};

/// All components are local; a longer wait is a failure.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct World {
    pub server: ApiServer,
    storage: Arc<EmbeddedStorage>,
    _controller: DefinitionController,
    folder: Arc<tempfile::TempDir>,
}

impl World {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        Self::over(storage, Arc::new(folder)).await
    }

    /// A server that has just started with existing data.
    async fn over(storage: Arc<EmbeddedStorage>, folder: Arc<tempfile::TempDir>) -> Self {
        let registry =
            Registry::start(storage.clone(), Arc::new(AdmissionChain::default())).await.unwrap();
        let controller = DefinitionController::start(&registry).await.unwrap();
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(Nobody),
            authorizer: Arc::new(MastersOnly),
            git_version: "v1.36.3".to_owned(),
        });
        Self { server, storage, _controller: controller, folder }
    }

    fn client(&self) -> kube::Client {
        let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
        kube::Client::new(self.server.as_user(admin), "default")
    }

    pub fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client())
    }

    pub fn foos(&self) -> Api<DynamicObject> {
        self.foos_in("v1")
    }

    fn foos_in(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("ex.org", version, "Foo");
        Api::all_with(self.client(), &ApiResource::from_gvk_with_plural(&kind, "foos"))
    }

    /// Creates the definition and waits like a client.
    pub async fn define(&self, definition: &Value) {
        let crd = serde_json::from_value(definition.clone()).unwrap();
        let name = definition["metadata"]["name"].as_str().unwrap();
        self.definitions().create(&PostParams::default(), &crd).await.unwrap();
        self.established(name).await;
    }

    async fn established(&self, name: &str) {
        let wait = await_condition(self.definitions(), name, conditions::is_crd_established());
        tokio::time::timeout(PATIENCE, wait).await.expect("established in time").unwrap();
    }

    async fn gone(&self, name: &str) {
        let uid = self.definitions().get(name).await.map(|crd| crd.metadata.uid.unwrap());
        let Ok(uid) = uid else { return };
        let wait = await_condition(self.definitions(), name, conditions::is_deleted(&uid));
        tokio::time::timeout(PATIENCE, wait).await.expect("deleted in time").unwrap();
    }

    async fn raw(&self, request: http::request::Builder, body: Value) -> Response<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
        let (parts, body) = self.server.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));
        Response::from_parts(parts, value)
    }

    async fn get(&self, path: &str) -> Response<Value> {
        self.raw(Request::get(path), Value::Null).await
    }
}

pub fn definition() -> Value {
    let spec = json!({"type": "object", "required": ["req"], "properties": {
        "req": {"type": "string", "maxLength": 5},
        "num": {"type": "integer", "default": 3},
        "replicas": {"type": "integer"},
    }});
    let status = json!({"type": "object", "properties": {
        "x": {"type": "string"}, "replicas": {"type": "integer"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.org"},
        "spec": {
            "group": "ex.org", "scope": "Cluster",
            "names": {"plural": "foos", "kind": "Foo", "shortNames": ["fo"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": spec, "status": status}}},
                    "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas"}},
                    "additionalPrinterColumns":
                        [{"name": "Req", "type": "string", "jsonPath": ".spec.req"}],
                    "selectableFields": [{"jsonPath": ".spec.req"}],
                },
                {
                    "name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
            ],
        },
    })
}

pub fn foo(name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "ex.org/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

#[tokio::test]
async fn instances_are_defaulted_pruned_validated_and_have_a_status_of_their_own() {
    let world = World::start().await;
    world.define(&definition()).await;
    let foos = world.foos();
    let post = PostParams::default();
    let created = foos.create(&post, &foo("a", json!({"req": "abc", "odd": 1}))).await.unwrap();
    assert_eq!(created.data["spec"], json!({"req": "abc", "num": 3}));
    assert_eq!(created.metadata.generation, Some(1));

    let refused = foos.create(&post, &foo("b", json!({"req": "toolong"}))).await.unwrap_err();
    let text = "spec.req: Too long: may not be more than 5 bytes";
    assert!(refused.to_string().contains(text), "{refused}");
    assert_eq!(reason(refused), (422, "Invalid".to_owned()));

    let patch = Patch::Merge(json!({"status": {"x": "yes", "odd": 1}, "spec": {"req": "zzz"}}));
    let params = PatchParams::default();
    let patched = foos.patch_status("a", &params, &patch).await.unwrap();
    assert_eq!(patched.data["status"], json!({"x": "yes"}));
    assert_eq!(patched.data["spec"]["req"], "abc");
    assert_eq!(patched.metadata.generation, Some(1));
    let patched =
        foos.patch("a", &params, &Patch::Merge(json!({"spec": {"num": 4}}))).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    assert_eq!(patched.data["status"], json!({"x": "yes"}));
}

#[tokio::test]
async fn a_status_that_fits_no_schema_is_not_stored_and_takes_the_owners_of_fields_away() {
    let world = World::start().await;
    world.define(&definition()).await;
    let foos = world.foos();
    let created =
        foos.create(&PostParams::default(), &foo("a", json!({"req": "abc"}))).await.unwrap();
    assert!(created.metadata.managed_fields.is_some());
    let patch = Patch::Merge(json!({"spec": {"num": 4}, "status": []}));
    let patched = foos.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data, json!({"spec": {"req": "abc", "num": 4}}));
    assert_eq!(patched.metadata.managed_fields, None);
}

#[tokio::test]
async fn strict_clients_get_errors_about_unknown_fields_and_others_warnings() {
    let world = World::start().await;
    world.define(&definition()).await;
    let body = json!({"apiVersion": "ex.org/v1", "kind": "Foo",
        "metadata": {"name": "a", "bogus": 1}, "spec": {"req": "abc", "zip": 1}});
    let post = |query: &str| {
        let path = format!("/apis/ex.org/v1/foos?dryRun=All{query}");
        Request::post(path).header("content-type", "application/json")
    };
    let strict = world.raw(post("&fieldValidation=Strict"), body.clone()).await;
    assert_eq!(strict.status(), 400);
    assert_eq!(
        strict.body()["message"],
        "Foo in version \"v1\" cannot be handled as a Foo: strict decoding error: unknown field \
         \"metadata.bogus\", unknown field \"spec.zip\""
    );
    let warned = world.raw(post(""), body).await;
    assert_eq!(warned.status(), 201);
    let warnings: Vec<&str> =
        warned.headers().get_all("warning").iter().map(|w| w.to_str().unwrap()).collect();
    let expected = [
        "299 - \"unknown field \\\"metadata.bogus\\\"\"",
        "299 - \"unknown field \\\"spec.zip\\\"\"",
    ];
    assert_eq!(warnings, expected);
}

#[tokio::test]
async fn nulls_count_as_absent_but_in_what_is_applied() {
    let world = World::start().await;
    world.define(&definition()).await;
    let body = json!({"apiVersion": "ex.org/v1", "kind": "Foo", "metadata": {"name": "a"},
        "spec": {"req": "a", "num": null, "replicas": null}});
    let apply = async || {
        let patch = Request::patch("/apis/ex.org/v1/foos/a?fieldManager=m&force=true")
            .header("content-type", "application/apply-patch+yaml");
        world.raw(patch, body.clone()).await
    };
    let refused = async || {
        let refused = apply().await;
        assert_eq!(refused.status(), 422);
        assert_eq!(
            refused.body()["message"],
            "Foo.ex.org \"a\" is invalid: spec.replicas: Invalid value: \"null\": spec.replicas in \
             body must be of type integer: \"null\""
        );
    };
    refused().await;
    let created = world.raw(Request::post("/apis/ex.org/v1/foos"), body.clone()).await;
    assert_eq!(created.status(), 201);
    assert_eq!(created.body()["spec"], json!({"req": "a", "num": 3}));
    refused().await;
}

#[tokio::test]
async fn tables_selectors_scale_and_other_versions_work() {
    let world = World::start().await;
    world.define(&definition()).await;
    let foos = world.foos();
    let post = PostParams::default();
    foos.create(&post, &foo("a", json!({"req": "abc"}))).await.unwrap();
    foos.create(&post, &foo("b", json!({"req": "xyz"}))).await.unwrap();
    let table = Request::get("/apis/ex.org/v1/foos")
        .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = world.raw(table, Value::Null).await;
    let names: Vec<&Value> = table.body()["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(names, ["Name", "Req"]);
    assert_eq!(table.body()["rows"][0]["cells"], json!(["a", "abc"]));

    let selected = world.get("/apis/ex.org/v1/foos?fieldSelector=spec.req%3Dxyz").await;
    assert_eq!(selected.body()["items"].as_array().unwrap().len(), 1);
    assert_eq!(selected.body()["items"][0]["metadata"]["name"], "b");

    let scale = world.get("/apis/ex.org/v1/foos/a/scale").await;
    assert_eq!(scale.status(), 500);
    let patch = Request::patch("/apis/ex.org/v1/foos/a/scale")
        .header("content-type", "application/merge-patch+json");
    let scaled = world.raw(patch, json!({"spec": {"replicas": 4}})).await;
    assert_eq!(scaled.body()["spec"], json!({"replicas": 4}));
    assert_eq!(foos.get("a").await.unwrap().data["spec"]["replicas"], 4);

    let beta = world.get("/apis/ex.org/v1beta1/foos/a").await;
    assert_eq!(beta.body()["apiVersion"], "ex.org/v1beta1");
    let warning = "299 - \"ex.org/v1beta1 Foo is deprecated; use ex.org/v1 Foo\"";
    assert_eq!(beta.headers()["warning"], warning);
}

#[tokio::test]
async fn each_version_has_selectable_fields_of_its_own() {
    let world = World::start().await;
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"req": text, "nd": text}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = |name: &str, fields: &[&str]| {
        let fields: Vec<Value> = fields.iter().map(|path| json!({"jsonPath": path})).collect();
        json!({"name": name, "served": true, "storage": name == "v1", "schema": schema,
            "selectableFields": fields})
    };
    let mut crd = definition();
    crd["spec"]["versions"] =
        json!([version("v1", &[".spec.req"]), version("v1beta1", &[".spec.nd", ".spec.req"])]);
    world.define(&crd).await;
    for (name, req, nd) in [("a", "x", "y"), ("b", "y", "x")] {
        let made = foo(name, json!({"req": req, "nd": nd}));
        world.foos().create(&PostParams::default(), &made).await.unwrap();
    }
    let select = async |version: &str, selector: &str| {
        world.get(&format!("/apis/ex.org/{version}/foos?fieldSelector={selector}")).await
    };
    for (version, selector, expected_names) in [
        ("v1", "spec.req%3Dx", "a"),
        ("v1beta1", "spec.req%3Dx", "a"),
        ("v1beta1", "spec.nd%3Dx", "b"),
        ("v1beta1", "spec.nd%3Dy,spec.req%3Dx", "a"),
    ] {
        let list = select(version, selector).await;
        let items = list.body()["items"].as_array().unwrap().clone();
        let names: Vec<&Value> = items.iter().map(|item| &item["metadata"]["name"]).collect();
        assert_eq!(names, [expected_names], "{version} {selector}");
    }
    let refused = select("v1", "spec.nd%3Dx").await;
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.body()["message"], "field label not supported: spec.nd");
}

#[tokio::test]
async fn a_kind_is_in_discovery_and_schemas_as_soon_as_it_is_established() {
    let world = World::start().await;
    assert_eq!(world.get("/apis/ex.org").await.status(), 404);
    world.define(&definition()).await;
    let group = world.get("/apis/ex.org").await;
    assert_eq!(group.body()["preferredVersion"]["version"], "v1");
    let names = world.get("/apis/ex.org/v1").await;
    let names: Vec<&Value> =
        names.body()["resources"].as_array().unwrap().iter().map(|r| &r["name"]).collect();
    assert_eq!(names, ["foos", "foos/status", "foos/scale"]);
    let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = format!("{media},application/json");
    let discovery_request = || Request::get("/apis").header("accept", &accept);
    let aggregated = world.raw(discovery_request(), Value::Null).await;
    assert_eq!(aggregated.headers()["content-type"], media);
    let groups = aggregated.body()["items"].as_array().unwrap();
    assert!(groups.iter().any(|group| group["metadata"]["name"] == "ex.org"));
    let etag = aggregated.headers()["etag"].to_str().unwrap().to_owned();
    let unchanged = world.raw(discovery_request().header("if-none-match", etag), Value::Null).await;
    assert_eq!(unchanged.status(), 304);

    let index = world.get("/openapi/v3").await;
    let url = index.body()["paths"]["apis/ex.org/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = world.get(url).await;
    assert_eq!(document.headers()["cache-control"], "public, immutable");
    let schema = &document.body()["components"]["schemas"]["org.ex.v1.Foo"]["properties"];
    assert_eq!(schema["spec"]["properties"]["num"]["default"], 3);
    let wrong = world.get("/openapi/v3/apis/ex.org/v1?hash=ABC").await;
    assert_eq!(
        (wrong.status().as_u16(), wrong.headers()["location"].to_str().unwrap()),
        (301, url)
    );
    let plain = world.get("/openapi/v3/apis/ex.org/v1").await;
    assert_eq!(plain.headers()["cache-control"], "no-cache, private");
    assert_eq!(plain.body(), document.body());
    assert_eq!(world.get("/openapi/v3/apis/nosuch/v1").await.status(), 404);
    let yaml = Request::get("/openapi/v3/api").header("accept", "application/yaml");
    assert_eq!(world.raw(yaml, Value::Null).await.status(), 406);
    let v2 = world.get("/openapi/v2").await;
    assert!(v2.body()["definitions"]["org.ex.v1.Foo"].is_object());
}

#[tokio::test]
async fn deleting_a_definition_removes_its_instances_and_waits_for_their_finalizers() {
    let world = World::start().await;
    world.define(&definition()).await;
    let foos = world.foos();
    let post = PostParams::default();
    let mut held = foo("held", json!({"req": "a"}));
    held.metadata.finalizers = Some(vec!["ex.org/hold".to_owned()]);
    foos.create(&post, &held).await.unwrap();
    foos.create(&post, &foo("free", json!({"req": "a"}))).await.unwrap();
    let version = foos.list(&Default::default()).await.unwrap().metadata.resource_version.unwrap();
    let watch = foos.watch(&WatchParams::default(), &version).await.unwrap();
    let delete = DeleteParams::default();
    let marked = world.definitions().delete("foos.ex.org", &delete).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.finalizers.unwrap(), ["customresourcecleanup.apiextensions.k8s.io"]);
    let free =
        await_condition(foos.clone(), "free", |object: Option<&DynamicObject>| object.is_none());
    tokio::time::timeout(PATIENCE, free).await.expect("removed in time").unwrap();
    let marked = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.metadata.deletion_timestamp.is_some())
    };
    let held = await_condition(foos.clone(), "held", marked);
    tokio::time::timeout(PATIENCE, held).await.expect("marked in time").unwrap();
    let refused = foos.create(&post, &foo("new", json!({"req": "a"}))).await.unwrap_err();
    let text = "create not allowed while custom resource definition is terminating";
    assert!(refused.to_string().contains(text), "{refused}");
    assert_eq!(reason(refused), (403, "Forbidden".to_owned()));

    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    foos.patch("held", &PatchParams::default(), &release).await.unwrap();
    world.gone("foos.ex.org").await;
    // A watch receives the deletion of the last object, then ends.
    let events = watch.try_collect::<Vec<_>>();
    let events = tokio::time::timeout(PATIENCE, events).await.expect("ended in time").unwrap();
    let gone = |event: &&WatchEvent<DynamicObject>| matches!(event, WatchEvent::Deleted(_));
    assert_eq!(events.iter().filter(gone).count(), 2);
    // The same name again at once: no old objects.
    world.define(&definition()).await;
    assert_eq!(foos.list(&Default::default()).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn a_changed_schema_holds_for_old_objects_without_a_restart() {
    let world = World::start().await;
    world.define(&definition()).await;
    let foos = world.foos();
    foos.create(&PostParams::default(), &foo("a", json!({"req": "abcde"}))).await.unwrap();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let patch = json!([
        {"op": "add", "path": format!("{path}/added"),
            "value": {"type": "string", "default": "later"}},
        {"op": "replace", "path": format!("{path}/req/maxLength"), "value": 3},
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    let params = PatchParams::default();
    world.definitions().patch("foos.ex.org", &params, &patch).await.unwrap();
    let defaulted = tokio::time::timeout(PATIENCE, async {
        while foos.get("a").await.unwrap().data["spec"]["added"] != "later" {
            tokio::task::yield_now().await;
        }
    });
    defaulted.await.expect("the new schema holds in time");
    // An object that has become invalid may stay, but not change.
    foos.patch("a", &params, &Patch::Merge(json!({"spec": {"num": 4}}))).await.unwrap();
    let change = Patch::Merge(json!({"spec": {"req": "abcdf"}}));
    let refused = foos.patch("a", &params, &change).await.unwrap_err();
    assert_eq!(reason(refused), (422, "Invalid".to_owned()));
}

#[tokio::test]
async fn a_watch_ends_when_the_schema_of_its_definition_changes() {
    let world = World::start().await;
    world.define(&definition()).await;
    let mut watch =
        Request::get("/apis/ex.org/v1/foos?watch=1&timeoutSeconds=60").body(String::new()).unwrap();
    watch.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
    let watching = world.server.handle(watch).await;
    assert_eq!(watching.status(), 200);
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/added";
    let patch = json!([{"op": "add", "path": path, "value": {"type": "string"}}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    let params = PatchParams::default();
    world.definitions().patch("foos.ex.org", &params, &patch).await.unwrap();
    let end = tokio::time::timeout(PATIENCE, watching.into_body().collect()).await;
    assert!(end.expect("the watch ends in time").unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_definition_of_more_than_a_megabyte_is_served_and_published() {
    let world = World::start().await;
    let mut large = definition();
    let text = "x".repeat(1_100_000);
    large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = text.clone().into();
    world.define(&large).await;
    world.foos().create(&PostParams::default(), &foo("a", json!({"req": "a"}))).await.unwrap();
    let document = world.get("/openapi/v3/apis/ex.org/v1").await.into_body();
    let published = &document["components"]["schemas"]["org.ex.v1.Foo"]["description"];
    assert_eq!(published.as_str().map(str::len), Some(text.len()));
}

#[tokio::test]
async fn reads_pass_stored_bytes_on_once_all_objects_fit_a_changed_schema() {
    let world = World::start().await;
    let mut first = definition();
    first["spec"]["versions"].as_array_mut().unwrap().truncate(1);
    world.define(&first).await;
    let foos = world.foos();
    foos.create(&PostParams::default(), &foo("a", json!({"req": "a"}))).await.unwrap();
    let registry = world.server.registry();
    let served = || registry.find("ex.org", "foos").unwrap();
    assert!(!served().strategy.rewrites_on_read());
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/added";
    let value = json!({"type": "string", "default": "later"});
    let patch = serde_json::from_value(json!([{"op": "add", "path": path, "value": value}]));
    let patch = Patch::Json::<()>(patch.unwrap());
    let params = PatchParams::default();
    world.definitions().patch("foos.ex.org", &params, &patch).await.unwrap();
    let changed = tokio::time::timeout(PATIENCE, async {
        while !served().strategy.rewrites_on_read() {
            tokio::task::yield_now().await;
        }
    });
    changed.await.expect("the new schema is installed in time");
    // The stored object lacks the default.
    check(registry, &served()).await.unwrap();
    assert!(served().strategy.rewrites_on_read());
    let touch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    foos.patch("a", &params, &touch).await.unwrap();
    check(registry, &served()).await.unwrap();
    assert!(!served().strategy.rewrites_on_read());
    assert_eq!(foos.get("a").await.unwrap().data["spec"]["added"], "later");
}

#[tokio::test]
async fn conflicting_names_are_served_once_they_are_free() {
    let world = World::start().await;
    world.define(&definition()).await;
    let mut second = definition();
    second["metadata"]["name"] = "bars.ex.org".into();
    second["spec"]["names"] = json!({"plural": "bars", "kind": "Foo", "singular": "foo"});
    let crd = serde_json::from_value(second).unwrap();
    world.definitions().create(&PostParams::default(), &crd).await.unwrap();
    let refused = await_condition(
        world.definitions(),
        "bars.ex.org",
        |crd: Option<&CustomResourceDefinition>| {
            let status = crd.and_then(|crd| crd.status.as_ref());
            let mut conditions =
                status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|c| c.type_ == "NamesAccepted" && c.status == "False")
        },
    );
    tokio::time::timeout(PATIENCE, refused).await.expect("refused in time").unwrap();
    assert_eq!(world.get("/apis/ex.org/v1/bars").await.status(), 404);
    world.definitions().delete("foos.ex.org", &DeleteParams::default()).await.unwrap();
    world.established("bars.ex.org").await;
    assert_eq!(world.get("/apis/ex.org/v1/bars").await.status(), 200);
}

#[tokio::test]
async fn definitions_are_served_again_after_a_restart() {
    let world = World::start().await;
    world.define(&definition()).await;
    world.foos().create(&PostParams::default(), &foo("a", json!({"req": "a"}))).await.unwrap();
    let world = World::over(world.storage.clone(), world.folder.clone()).await;
    assert_eq!(world.foos().get("a").await.unwrap().data["spec"]["req"], "a");
    assert_eq!(world.foos_in("v1beta1").list(&Default::default()).await.unwrap().items.len(), 1);
}
