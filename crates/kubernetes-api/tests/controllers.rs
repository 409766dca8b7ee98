//! Namespaces and garbage collection through a real client, on the embedded storage.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::{GROUP_MASTERS, InvalidCredential};
use apiserver::{ApiServer, Attributes, Authenticator, Authorizer, Decision, Registry, UserInfo};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kubernetes_api::controllers;
use kubernetes_api::custom::DefinitionController;
use kubernetes_api::kinds;
use kubernetes_api::service_range::ServiceRange;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tokio::task::JoinSet;
use wait::until;

#[path = "wait/wait.rs"]
mod wait;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n";

struct Nobody;

impl Authenticator for Nobody {
    fn authenticate<'a>(
        &'a self,
        _parts: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

struct Anybody;

impl Authorizer for Anybody {
    fn authorize(&self, _attributes: &Attributes) -> Decision {
        Decision::Allow { reason: String::new() }
    }
}

struct World {
    client: Client,
    _definitions: DefinitionController,
    _controllers: JoinSet<()>,
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
        let definitions = DefinitionController::start(&registry).await.unwrap();
        controllers::bootstrap(&registry, ServiceRange::default()).await.unwrap();
        let mut tasks = JoinSet::new();
        controllers::start(&registry, &Arc::default(), CERTIFICATE, &mut tasks);
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(Nobody),
            authorizer: Arc::new(Anybody),
            git_version: "v1.36.3".to_owned(),
        });
        let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
        let client = Client::new(server.as_user(admin), "default");
        Self { client, _definitions: definitions, _controllers: tasks, _folder: folder }
    }

    fn api(&self, group: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1", kind);
        let resource = ApiResource::from_gvk(&gvk);
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    fn maps(&self, namespace: &str) -> Api<DynamicObject> {
        self.api("", "ConfigMap", namespace)
    }

    async fn create(&self, api: &Api<DynamicObject>, object: Value) -> DynamicObject {
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    async fn map(&self, namespace: &str, name: &str, metadata: Value) -> DynamicObject {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        object["metadata"]["name"] = name.into();
        self.create(&self.maps(namespace), object).await
    }

    async fn namespace(&self, name: &str) {
        let api = self.api("", "Namespace", "");
        self.create(&api, namespace(name)).await;
    }
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn owned_by(owners: &[(&DynamicObject, bool)]) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|(owner, block)| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
                "blockOwnerDeletion": block,
            })
        })
        .collect();
    json!({"ownerReferences": references})
}

async fn until_gone(api: &Api<DynamicObject>, name: &str) {
    until(&format!("{name} is deleted"), || async { api.get_opt(name).await.unwrap().is_none() })
        .await;
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_certificate() {
    let world = World::start().await;
    world.namespace("team").await;
    for namespace in ["default", "kube-system", "team"] {
        let accounts = world.api("", "ServiceAccount", namespace);
        let maps = world.maps(namespace);
        until("the account is there", || async {
            accounts.get_opt("default").await.unwrap().is_some()
        })
        .await;
        until("the certificate is there", || async {
            let found = maps.get_opt("kube-root-ca.crt").await.unwrap();
            found.is_some_and(|map| map.data["data"]["ca.crt"] == CERTIFICATE)
        })
        .await;
    }
    let accounts = world.api("", "ServiceAccount", "team");
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    let maps = world.maps("team");
    let wrong = Patch::Merge(json!({"data": {"ca.crt": "wrong"}}));
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &wrong).await.unwrap();
    until("both are mended", || async {
        let map = maps.get("kube-root-ca.crt").await.unwrap();
        accounts.get_opt("default").await.unwrap().is_some()
            && map.data["data"]["ca.crt"] == CERTIFICATE
    })
    .await;
}

#[tokio::test]
async fn a_deleted_namespace_takes_its_contents_along() {
    let world = World::start().await;
    world.namespace("team").await;
    world.map("team", "a", json!({})).await;
    let secrets = world.api("", "Secret", "team");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    world.create(&secrets, secret).await;
    let namespaces = world.api("", "Namespace", "");
    let deleted = namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let deleted = deleted.left().expect("returns the namespace");
    assert_eq!(deleted.data["status"]["phase"], "Terminating");
    until_gone(&namespaces, "team").await;
    assert!(world.maps("team").list(&Default::default()).await.unwrap().items.is_empty());
    assert!(secrets.list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_finalizer_in_a_namespace_holds_it_and_its_conditions_say_so() {
    let world = World::start().await;
    world.namespace("team").await;
    world.map("team", "held", json!({"finalizers": ["ex.com/h"]})).await;
    let namespaces = world.api("", "Namespace", "");
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    until("the conditions report the finalizer", || async {
        let found = namespaces.get("team").await.unwrap();
        let conditions = found.data["status"]["conditions"].as_array().cloned();
        conditions.unwrap_or_default().iter().any(|condition| {
            condition["type"] == "NamespaceFinalizersRemaining"
                && condition["status"] == "True"
                && condition["message"]
                    == "Some content in the namespace has finalizers remaining: ex.com/h in 1 \
                        resource instances"
        })
    })
    .await;

    let late = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"},
    }))
    .unwrap();
    let refused = world.maps("team").create(&PostParams::default(), &late).await.unwrap_err();
    let kube::Error::Api(refused) = refused else { panic!("not a response: {refused}") };
    assert_eq!(refused.code, 403);
    assert!(refused.message.ends_with(
        "unable to create new content in namespace team because it is being terminated"
    ));

    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.maps("team").patch("held", &PatchParams::default(), &free).await.unwrap();
    until_gone(&namespaces, "team").await;
}

#[tokio::test]
async fn protected_namespaces_and_finalizers_stay() {
    let world = World::start().await;
    let namespaces = world.api("", "Namespace", "");
    for name in ["default", "kube-system", "kube-public"] {
        let refused = namespaces.delete(name, &DeleteParams::default()).await.unwrap_err();
        let kube::Error::Api(refused) = refused else { panic!("not a response: {refused}") };
        assert_eq!(refused.code, 403);
        assert_eq!(
            refused.message,
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted")
        );
    }
    world.namespace("team").await;
    let patch = Patch::Merge(json!({"spec": {"finalizers": []}}));
    let patched = namespaces.patch("team", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data["spec"]["finalizers"], json!(["kubernetes"]));
}

#[tokio::test]
async fn creating_while_a_namespace_ends_leaves_nothing_behind() {
    let world = World::start().await;
    let namespaces = world.api("", "Namespace", "");
    for round in 0..5 {
        let name = format!("team-{round}");
        world.namespace(&name).await;
        let maps = world.maps(&name);
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let maps = maps.clone();
            writers.spawn(async move {
                for index in 0.. {
                    let object = serde_json::from_value(json!({
                        "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": format!("m-{writer}-{index}")},
                    }))
                    .unwrap();
                    if maps.create(&PostParams::default(), &object).await.is_err() {
                        return;
                    }
                }
            });
        }
        until("some are there", || async {
            maps.list(&Default::default()).await.unwrap().items.len() > 8
        })
        .await;
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        while writers.join_next().await.is_some() {}
        until_gone(&namespaces, &name).await;
        assert!(maps.list(&Default::default()).await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn dependants_are_deleted_after_their_last_owner() {
    let world = World::start().await;
    let maps = world.maps("default");
    let first = world.map("default", "first", json!({})).await;
    let second = world.map("default", "second", json!({})).await;
    world.map("default", "shared", owned_by(&[(&first, false), (&second, false)])).await;
    world.map("default", "own", owned_by(&[(&first, false)])).await;
    maps.delete("first", &DeleteParams::default()).await.unwrap();
    until_gone(&maps, "own").await;
    until("the dangling reference is removed", || async {
        let shared = maps.get("shared").await.unwrap();
        let owners = shared.metadata.owner_references.unwrap_or_default();
        owners.len() == 1 && Some(&owners[0].uid) == second.metadata.uid.as_ref()
    })
    .await;
    maps.delete("second", &DeleteParams::default()).await.unwrap();
    until_gone(&maps, "shared").await;
}

#[tokio::test]
async fn an_object_born_to_a_dead_owner_is_collected() {
    let world = World::start().await;
    let maps = world.maps("default");
    let owner = world.map("default", "owner", json!({})).await;
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    // An object with the same name, but another uid.
    world.map("default", "owner", json!({})).await;
    world.map("default", "late", owned_by(&[(&owner, false)])).await;
    until_gone(&maps, "late").await;
    assert!(maps.get_opt("owner").await.unwrap().is_some());
}

/// Defines a kind of `ex.org` and returns the API of its objects.
async fn define(world: &World, kind: &str) -> Api<DynamicObject> {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.org")},
        "spec": {
            "group": "ex.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let definition = serde_json::from_value(definition).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let name = format!("{plural}.ex.org");
    await_condition(definitions, &name, conditions::is_crd_established()).await.unwrap();
    world.api("ex.org", kind, "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_of_a_kind_defined_amid_other_changes_take_their_dependants_along() {
    const KINDS: usize = 8;
    let world = World::start().await;
    let maps = world.maps("default");
    world.map("default", "busy", json!({})).await;
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let maps = maps.clone();
        writers.spawn(async move {
            for count in 0_u64.. {
                let change =
                    Patch::Merge(json!({"data": {format!("w{writer}"): count.to_string()}}));
                maps.patch("busy", &PatchParams::default(), &change).await.unwrap();
            }
        });
    }
    for number in 0..KINDS {
        let kind = format!("Late{number}");
        let owners = define(&world, &kind).await;
        let owner = json!({"apiVersion": "ex.org/v1", "kind": kind, "metadata": {"name": "owner"}});
        let owner = world.create(&owners, owner).await;
        let mut reference = owned_by(&[(&owner, false)]);
        reference["ownerReferences"][0]["apiVersion"] = "ex.org/v1".into();
        reference["ownerReferences"][0]["kind"] = kind.into();
        world.map("default", "own", reference.clone()).await;
        // When this one is collected, both were checked, and only the deletion of the owner brings
        // more information.
        reference["ownerReferences"][0]["uid"] = "dead".into();
        world.map("default", "probe", reference).await;
        until_gone(&maps, "probe").await;
        owners.delete("owner", &DeleteParams::default()).await.unwrap();
        until_gone(&maps, "own").await;
    }
}

#[tokio::test]
async fn an_owner_of_an_unknown_kind_keeps_its_dependants() {
    let world = World::start().await;
    let maps = world.maps("default");
    let stray = json!({"ownerReferences": [{
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1",
    }]});
    world.map("default", "stray", stray).await;
    let owner = world.map("default", "owner", json!({})).await;
    world.map("default", "child", owned_by(&[(&owner, false)])).await;
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    // When the child, which is checked later, is deleted, the stray was checked too.
    until_gone(&maps, "child").await;
    assert!(maps.get_opt("stray").await.unwrap().is_some());
}

#[tokio::test]
async fn foreground_deletion_waits_for_what_blocks_it() {
    let world = World::start().await;
    let maps = world.maps("default");
    let owner = world.map("default", "owner", json!({})).await;
    let mut held = owned_by(&[(&owner, true)]);
    held["finalizers"] = json!(["ex.com/h"]);
    world.map("default", "held", held).await;
    maps.delete("owner", &DeleteParams::foreground()).await.unwrap();
    until("the dependant is being deleted", || async {
        maps.get("held").await.unwrap().metadata.deletion_timestamp.is_some()
    })
    .await;
    assert!(maps.get_opt("owner").await.unwrap().is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &free).await.unwrap();
    until_gone(&maps, "owner").await;
}

#[tokio::test]
async fn a_dependant_of_two_outlives_the_owner_that_waits_for_it() {
    let world = World::start().await;
    let maps = world.maps("default");
    let leaving = world.map("default", "leaving", json!({})).await;
    let staying = world.map("default", "staying", json!({})).await;
    world.map("default", "shared", owned_by(&[(&leaving, true), (&staying, true)])).await;
    maps.delete("leaving", &DeleteParams::foreground()).await.unwrap();
    until_gone(&maps, "leaving").await;
    let shared = maps.get("shared").await.unwrap();
    let owners = shared.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.len(), 1);
    assert_eq!(Some(&owners[0].uid), staying.metadata.uid.as_ref());
    assert_eq!(shared.metadata.deletion_timestamp, None);
}

#[tokio::test]
async fn orphans_lose_the_reference_before_their_owner_is_deleted() {
    let world = World::start().await;
    let maps = world.maps("default");
    let owner = world.map("default", "owner", json!({})).await;
    world.map("default", "child", owned_by(&[(&owner, true)])).await;
    let orphan = DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    maps.delete("owner", &orphan).await.unwrap();
    until_gone(&maps, "owner").await;
    let child = maps.get("child").await.unwrap();
    assert_eq!(child.metadata.owner_references, None);
}

#[tokio::test]
async fn a_circle_of_owners_does_not_wait_for_itself() {
    let world = World::start().await;
    let maps = world.maps("default");
    let a = world.map("default", "a", json!({})).await;
    let b = world.map("default", "b", owned_by(&[(&a, true)])).await;
    let close = Patch::Merge(json!({"metadata": owned_by(&[(&b, true)])}));
    maps.patch("a", &PatchParams::default(), &close).await.unwrap();
    maps.delete("a", &DeleteParams::foreground()).await.unwrap();
    until_gone(&maps, "a").await;
    until_gone(&maps, "b").await;
}

#[tokio::test]
async fn services_get_addresses_of_their_own_and_keep_them() {
    let world = World::start().await;
    let services = world.api("", "Service", "default");
    let api = services.get("kubernetes").await.unwrap();
    assert_eq!(api.data["spec"]["clusterIP"], "10.96.0.1");
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
               "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    };
    let first = world.create(&services, service("first")).await;
    let second = world.create(&services, service("second")).await;
    let address = |service: &DynamicObject| service.data["spec"]["clusterIP"].clone();
    assert_ne!(address(&first), address(&second));
    let node_port = first.data["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!((30_000..=32_767).contains(&node_port));
    let bare = serde_json::from_value(service("first")).unwrap();
    let replaced = services.replace("first", &PostParams::default(), &bare).await.unwrap();
    assert_eq!(address(&replaced), address(&first));
    assert_eq!(replaced.data["spec"]["ports"][0]["nodePort"], node_port);
}

#[tokio::test]
async fn events_are_one_store_under_two_versions() {
    let world = World::start().await;
    let core = world.api("", "Event", "default");
    let new = world.api("events.k8s.io", "Event", "default");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R",
        "message": "m", "type": "Normal", "source": {"component": "c"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    world.create(&core, event).await;
    let seen = new.get("e").await.unwrap();
    assert_eq!(seen.data["note"], "m");
    assert_eq!(seen.data["regarding"]["name"], "p");
    assert_eq!(seen.data["deprecatedSource"]["component"], "c");
    assert_eq!(seen.types.unwrap().api_version, "events.k8s.io/v1");

    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c",
        "reportingInstance": "i", "action": "a", "reason": "r", "note": "n", "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "q"},
    });
    let created = world.create(&new, event).await;
    assert_eq!(created.data["note"], "n");
    let seen = core.get("f").await.unwrap();
    assert_eq!(seen.data["message"], "n");
    assert_eq!(seen.data["involvedObject"]["name"], "q");
    let by_field = kube::api::ListParams::default().fields("regarding.name=q");
    assert_eq!(new.list(&by_field).await.unwrap().items.len(), 1);
    let by_field = kube::api::ListParams::default().fields("involvedObject.name=p");
    assert_eq!(core.list(&by_field).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn bound_pods_get_a_grace_period_and_unbound_ones_are_deleted_at_once() {
    let world = World::start().await;
    let pods = world.api("", "Pod", "default");
    let pod = |name: &str, node: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    };
    world.create(&pods, pod("free", Value::Null)).await;
    world.create(&pods, pod("bound", "n1".into())).await;
    pods.delete("free", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("free").await.unwrap().is_none());
    let marked = pods.delete("bound", &DeleteParams::default()).await.unwrap();
    let marked = marked.left().expect("returns the pod");
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    pods.delete("bound", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("bound").await.unwrap().is_none());
}

#[tokio::test]
async fn mistyped_objects_are_refused_before_any_other_check() {
    let world = World::start().await;
    let pods = world.api("", "Pod", "default");
    let wrong = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
        "spec": {"containers": "x"},
    }))
    .unwrap();
    let refused = pods.create(&PostParams::default(), &wrong).await.unwrap_err();
    let kube::Error::Api(refused) = refused else { panic!("not a response: {refused}") };
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message,
        "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal string into Go \
         struct field PodSpec.spec.containers of type []v1.Container"
    );
    let leases = world.api("coordination.k8s.io", "Lease", "default");
    let wrong = serde_json::from_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"renewTime": "2026-01-01T00:00:00Z"},
    }))
    .unwrap();
    let refused = leases.create(&PostParams::default(), &wrong).await.unwrap_err();
    let kube::Error::Api(refused) = refused else { panic!("not a response: {refused}") };
    assert_eq!(refused.code, 400);
    assert!(refused.message.contains("cannot parse \"Z\" as \".000000\""), "{}", refused.message);
}

#[tokio::test]
async fn a_workload_is_scaled_through_its_subresource() {
    let world = World::start().await;
    let deployments = world.api("apps", "Deployment", "default");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    world.create(&deployments, deployment).await;
    let before = deployments.get_scale("d").await.unwrap();
    assert_eq!(before.spec.unwrap().replicas, Some(1));
    assert_eq!(before.status.unwrap().selector.as_deref(), Some("a=b"));
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    deployments.patch_scale("d", &PatchParams::default(), &patch).await.unwrap();
    let after = deployments.get("d").await.unwrap();
    assert_eq!(after.data["spec"]["replicas"], 4);
    assert_eq!(after.metadata.generation, Some(2));
    let patch = Patch::Strategic(json!({"spec": {"replicas": 2}}));
    deployments.patch_scale("d", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(deployments.get("d").await.unwrap().data["spec"]["replicas"], 2);
}

#[tokio::test]
async fn jobs_orphan_their_pods_by_default() {
    let world = World::start().await;
    let jobs = world.api("batch", "Job", "default");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    world.create(&jobs, job).await;
    let marked = jobs.delete("j", &DeleteParams::default()).await.unwrap();
    let marked = marked.left().expect("returns the job");
    assert_eq!(marked.metadata.finalizers, Some(vec!["orphan".to_owned()]));
    until_gone(&jobs, "j").await;
}

#[tokio::test]
async fn a_pod_changes_its_image_and_nothing_else() {
    let world = World::start().await;
    let pods = world.api("", "Pod", "default");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                     "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    world.create(&pods, pod).await;
    let image = Patch::Strategic(json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}}));
    let patched = pods.patch("p", &PatchParams::default(), &image).await.unwrap();
    assert_eq!(patched.data["spec"]["containers"][0]["image"], "i:2");
    let node = Patch::Merge(json!({"spec": {"nodeName": "n"}}));
    let refused = pods.patch("p", &PatchParams::default(), &node).await.unwrap_err();
    let kube::Error::Api(refused) = refused else { panic!("not a response: {refused}") };
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("pod updates may not change fields other than"));
}
