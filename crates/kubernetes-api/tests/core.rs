//! The generic handlers through a real client, on the embedded storage, without any kind's own
//! rules.

#![allow(clippy::unwrap_used)]

#[path = "core/apply.rs"]
mod apply;
#[path = "core/compaction.rs"]
mod compaction;
#[path = "core/custom_resources.rs"]
mod custom_resources;
#[path = "core/encodings.rs"]
mod encodings;
#[path = "core/page_cost.rs"]
mod page_cost;
#[path = "core/pages.rs"]
mod pages;
#[path = "core/protobuf.rs"]
mod protobuf;
#[path = "core/requests.rs"]
mod requests;
#[path = "core/schemas.rs"]
mod schemas;
#[path = "core/watch_cost.rs"]
mod watch_cost;

use std::sync::Arc;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::resource::{Backend, NameRule, ResourceRules, TableColumn};
use apiserver::strategy::Strategy;
use apiserver::{ApiServer, Attributes, Authenticator, Authorizer, Decision, Registry, Resource};
use apiserver::{UserInfo, attributes::InvalidCredential};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

struct Plain;

impl Strategy for Plain {
    fn cells(&self, object: &Value, _now: i64) -> Vec<Value> {
        vec![object["metadata"]["name"].clone()]
    }
}

struct Nobody;

impl Authenticator for Nobody {
    fn authenticate<'a>(
        &'a self,
        _parts: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        let reason = String::new();
        if attributes.user.in_group(GROUP_MASTERS) {
            Decision::Allow { reason }
        } else {
            Decision::NoOpinion { reason }
        }
    }
}

fn config_maps() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "configmaps".to_owned(),
        singular: "configmap".to_owned(),
        kind: "ConfigMap".to_owned(),
        list_kind: "ConfigMapList".to_owned(),
        namespaced: true,
        short_names: vec!["cm".to_owned()],
        categories: Vec::new(),
        verbs: vec![
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
        subresources: Vec::new(),
        backend: Backend::Stored { prefix: "/registry/configmaps/".to_owned() },
        strategy: Arc::new(Plain),
        columns: vec![TableColumn {
            name: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            description: "name".to_owned(),
            priority: 0,
        }],
        rules: ResourceRules {
            generation: false,
            create_on_update: false,
            unconditional_update: true,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::Dns1123Subdomain,
        selectable_fields: Vec::new(),
        custom: false,
    }
}

struct World {
    server: ApiServer,
    storage: Arc<EmbeddedStorage>,
    folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        Self::on(storage, folder).await
    }

    /// A server that starts with existing data.
    async fn on(storage: Arc<EmbeddedStorage>, folder: tempfile::TempDir) -> Self {
        let registry =
            Registry::start(storage.clone(), Arc::new(AdmissionChain::default())).await.unwrap();
        registry.install(vec![config_maps()]).await.unwrap();
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(Nobody),
            authorizer: Arc::new(MastersOnly),
            git_version: "v1.36.3".to_owned(),
        });
        Self { server, storage, folder }
    }

    fn api(&self) -> Api<ConfigMap> {
        self.api_in("default")
    }

    fn api_in(&self, namespace: &str) -> Api<ConfigMap> {
        let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
        Api::namespaced(kube::Client::new(self.server.as_user(admin), namespace), namespace)
    }
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "value": value } },
        "data": { "key": value },
    }))
    .unwrap()
}

fn reason(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not a response of the API: {other}"),
    }
}

#[tokio::test]
async fn an_object_lives_through_create_update_patch_and_delete() {
    let world = World::start().await;
    let api = world.api();
    let created = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(created.metadata.uid.is_some());
    assert!(created.metadata.creation_timestamp.is_some());
    let again = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert_eq!(reason(again), (409, "AlreadyExists".to_owned()));

    let mut changed = created.clone();
    changed.data.as_mut().unwrap().insert("key".to_owned(), "2".to_owned());
    let changed = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(changed.metadata.resource_version, created.metadata.resource_version);
    let stale = api.replace("a", &PostParams::default(), &created).await.unwrap_err();
    assert_eq!(reason(stale), (409, "Conflict".to_owned()));

    let patch = Patch::Merge(json!({ "data": { "more": "x", "key": null } }));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap(), [("more".to_owned(), "x".to_owned())].into());
    let same = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(same.metadata.resource_version, patched.metadata.resource_version);

    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(reason(api.get("a").await.unwrap_err()), (404, "NotFound".to_owned()));
}

#[tokio::test]
async fn pages_show_one_snapshot_whatever_happens_between_them() {
    let world = World::start().await;
    let api = world.api();
    for index in 0..10 {
        api.create(&PostParams::default(), &config_map(&format!("m{index}"), "v")).await.unwrap();
    }
    let first = api.list(&ListParams::default().limit(4)).await.unwrap();
    assert_eq!(first.items.len(), 4);
    assert_eq!(first.metadata.remaining_item_count, Some(6));
    api.delete("m5", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &config_map("m44", "v")).await.unwrap();
    let mut names = Vec::new();
    let mut token = first.metadata.continue_.unwrap();
    loop {
        let page = ListParams::default().limit(4).continue_token(&token);
        let page = api.list(&page).await.unwrap();
        assert_eq!(page.metadata.resource_version, first.metadata.resource_version);
        names.extend(page.items.into_iter().map(|item| item.metadata.name.unwrap()));
        match page.metadata.continue_ {
            Some(next) if !next.is_empty() => token = next,
            _ => break,
        }
    }
    assert_eq!(names, ["m4", "m5", "m6", "m7", "m8", "m9"]);
}

#[tokio::test]
async fn a_watch_after_a_list_delivers_each_change_once_and_follows_the_selector() {
    let world = World::start().await;
    let api = world.api();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let selected = WatchParams::default().labels("value=1");
    let mut watch = api.watch(&selected, &version).await.unwrap().boxed();
    let relabel =
        |value: &str| Patch::Merge(json!({ "metadata": { "labels": { "value": value } } }));
    let params = PatchParams::default();
    api.patch("a", &params, &relabel("2")).await.unwrap();
    api.patch("a", &params, &relabel("1")).await.unwrap();
    api.patch("a", &params, &Patch::Merge(json!({ "data": { "key": "z" } }))).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    let mut last = 0_u64;
    while seen.len() < 4 {
        let event = watch.try_next().await.unwrap().unwrap();
        let (kind, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => panic!("{error:?}"),
        };
        let revision: u64 = object.metadata.resource_version.unwrap().parse().unwrap();
        assert!(revision > last, "events go forward");
        last = revision;
        seen.push(kind);
    }
    assert_eq!(seen, ["DELETED", "ADDED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn a_streaming_list_ends_with_its_bookmark() {
    let world = World::start().await;
    let api = world.api();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let config = kube::runtime::watcher::Config::default().streaming_lists();
    let events = kube::runtime::watcher(api, config).take(3).try_collect::<Vec<_>>();
    let events = tokio::time::timeout(std::time::Duration::from_secs(10), events);
    let events = events.await.expect("the initial list ends").unwrap();
    assert!(matches!(events.last(), Some(kube::runtime::watcher::Event::InitDone)));
}

#[tokio::test]
async fn requests_without_credentials_get_401_and_without_rights_403() {
    let world = World::start().await;
    let request = http::Request::get("/api/v1/configmaps").body(String::new()).unwrap();
    assert_eq!(world.server.handle(request).await.status(), 401);
    let client = kube::Client::new(world.server.as_user(UserInfo::new("eve", &[])), "default");
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(reason(api.get("a").await.unwrap_err()), (403, "Forbidden".to_owned()));
}
