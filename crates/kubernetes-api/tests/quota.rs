//! Quotas that concurrent writes charge, on the embedded storage.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::admission::AdmissionChain;
use apiserver::registry::{WriteOptions, WriteTarget, Written};
use apiserver::strategy::Operation;
use apiserver::{Registry, Resource};
use futures::future::join_all;
use kubernetes_api::controllers;
use kubernetes_api::kinds;
use kubernetes_api::service_range::ServiceRange;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

const NAMESPACE: &str = "default";
const LIMIT: usize = 10;

struct World {
    registry: Arc<Registry>,
    _folder: tempfile::TempDir,
}

impl World {
    /// With a quota that has been counted: nothing of `hard` is used.
    async fn start(hard: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry = Registry::start(storage, Arc::new(AdmissionChain::default())).await.unwrap();
        registry.install(kinds::full_profile(&std::sync::Arc::default())).await.unwrap();
        controllers::bootstrap(&registry, ServiceRange::default()).await.unwrap();
        let world = Self { registry, _folder: folder };
        world.create("", "resourcequotas", "q", json!({"hard": hard})).await.unwrap();
        let used = hard.as_object().unwrap().keys().map(|name| (name.clone(), json!("0")));
        let used: Value = used.collect::<serde_json::Map<_, _>>().into();
        world.count(json!({"hard": hard, "used": used})).await;
        world
    }

    fn kind(&self, group: &str, plural: &str) -> Arc<Resource> {
        self.registry.find(group, plural).unwrap()
    }

    async fn create(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        spec: Value,
    ) -> Result<Written, Status> {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let kind = self.kind(group, plural);
        self.registry.create(&kind, NAMESPACE, object, &WriteOptions::system()).await
    }

    async fn secret(&self, name: &str, options: &WriteOptions) -> Result<Written, Status> {
        let object = json!({"metadata": {"name": name}});
        self.registry.create(&self.kind("", "secrets"), NAMESPACE, object, options).await
    }

    /// Does what a quota controller does.
    async fn count(&self, status: Value) {
        let resource = self.kind("", "resourcequotas");
        let target = WriteTarget { resource: &resource, namespace: NAMESPACE, name: "q" };
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = status.clone();
            Ok(new)
        };
        let options = WriteOptions::system();
        self.registry.modify(&target, Operation::UpdateStatus, &options, &change).await.unwrap();
    }

    async fn used(&self) -> Value {
        let quotas = self.kind("", "resourcequotas");
        let quota = self.registry.get(&quotas, NAMESPACE, "q").await.unwrap().value();
        quota["status"]["used"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_never_exceed_a_quota() {
    let world = World::start(json!({"secrets": LIMIT.to_string()})).await;
    let options = WriteOptions::system();
    let names: Vec<String> = (0..3 * LIMIT).map(|index| format!("s{index}")).collect();
    let results = join_all(names.iter().map(|name| world.secret(name, &options))).await;
    let refused: Vec<Status> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 2 * LIMIT);
    for status in refused {
        assert_eq!(status.code, 403);
        let message =
            "exceeded quota: q, requested: secrets=1, used: secrets=10, limited: secrets=10";
        assert!(status.message.ends_with(message), "{status}");
    }
    assert_eq!(world.used().await, json!({"secrets": "10"}));
}

#[tokio::test]
async fn a_dry_run_is_compared_and_not_charged() {
    let world = World::start(json!({"secrets": "1"})).await;
    let dry = WriteOptions { dry_run: true, ..WriteOptions::system() };
    world.secret("dry", &dry).await.unwrap();
    assert_eq!(world.used().await, json!({"secrets": "0"}));
    world.secret("kept", &WriteOptions::system()).await.unwrap();
    assert_eq!(world.secret("dry", &dry).await.unwrap_err().code, 403);
    assert_eq!(world.used().await, json!({"secrets": "1"}));
}

#[tokio::test]
async fn quota_usage_is_released_by_the_quota_controller() {
    let world = World::start(json!({"count/leases.coordination.k8s.io": "1"})).await;
    let create =
        |name: &'static str| world.create("coordination.k8s.io", "leases", name, json!({}));
    create("first").await.unwrap();
    let refused = create("second").await.unwrap_err();
    assert!(refused.message.starts_with("leases.coordination.k8s.io \"second\" is forbidden: "));
    let name = "count/leases.coordination.k8s.io";
    world.count(json!({"hard": {name: "2"}, "used": {name: "1"}})).await;
    create("second").await.unwrap();
}

#[tokio::test]
async fn a_quota_without_counted_usage_limits_nothing() {
    let world = World::start(json!({"secrets": "0"})).await;
    world.count(json!({})).await;
    world.secret("free", &WriteOptions::system()).await.unwrap();
    world.count(json!({"hard": {"secrets": "5"}})).await;
    let refused = world.secret("unknown", &WriteOptions::system()).await.unwrap_err();
    assert!(refused.message.ends_with("status unknown for quota: q, resources: secrets"));
}

#[tokio::test]
async fn a_service_is_charged_when_it_takes_ports_of_nodes() {
    let world = World::start(json!({"services.nodeports": "1"})).await;
    let spec = |kind: &str| json!({"type": kind, "ports": [{"port": 80}]});
    world.create("", "services", "a", spec("NodePort")).await.unwrap();
    world.create("", "services", "b", spec("ClusterIP")).await.unwrap();
    let services = world.kind("", "services");
    let target = WriteTarget { resource: &services, namespace: NAMESPACE, name: "b" };
    let open = |old: &Value| {
        let mut new = old.clone();
        new["spec"]["type"] = "NodePort".into();
        Ok(new)
    };
    let options = WriteOptions::system();
    let opened = world.registry.modify(&target, Operation::Update, &options, &open).await;
    let message = opened.unwrap_err().message;
    assert!(message.contains("exceeded quota: q, requested: services.nodeports=1"), "{message}");
}
