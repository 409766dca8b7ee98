//! The lifecycle of a cluster through the real API server and all real controllers.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api_management::{
    Cluster, ClusterRegistrationToken, ClusterRoleTemplateBinding, Project, condition, keys,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node as KubeNode, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually};
use tunnel::{AgentKey, RefusalReason, Registrar};

async fn node(api: &KubeApi, name: &str, cpu: &str) {
    let nodes: Api<KubeNode> = Api::all(api.admin());
    let node = json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let status = json!({"status": {
        "capacity": {"cpu": cpu, "memory": "8Gi"},
        "allocatable": {"cpu": cpu, "memory": "7Gi"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "conditions": [{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "2020-01-01T00:00:00Z",
            "lastTransitionTime": "2020-01-01T00:00:00Z"}],
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn pod(api: &KubeApi, name: &str, node: &str, cpu: &str) {
    let pods: Api<Pod> = Api::namespaced(api.admin(), "default");
    let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [
        {"name": "a", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_cluster_is_active_by_itself() {
    let world = World::start().await;
    world.active("local").await;
    let local = world.stored("clusters/local").await;
    assert_eq!(local["status"]["driver"], "local");
    assert!(local["status"]["version"].is_object());
    assert_eq!(local["status"]["appliedSpec"], local["spec"]);
    let deleted = world.clusters().delete("local", &DeleteParams::default()).await;
    assert!(deleted.unwrap_err().to_string().contains("cannot be deleted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_agent_is_reported_on_its_cluster_until_the_right_one_is_back() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = world.import("c-abcde", &downstream).await;
    let connected = async || {
        let cluster = world.clusters().get("c-abcde").await.unwrap();
        condition::find(&cluster.status.conditions, "Connected").cloned().unwrap_or_default()
    };
    let secret = world.token("c-abcde").await.status.token;
    let stranger = AgentKey::generate().unwrap();
    let try_in = async || {
        let refused = world.connect(&stranger, Some(&secret), downstream.admin()).await;
        assert_eq!(refused.unwrap_err().reason, RefusalReason::TokenUsed);
    };
    // While the cluster's own agent is connected, an agent of another cluster changes nothing.
    try_in().await;
    world.disconnect("c-abcde", &key);
    let is_plainly_lost = async || {
        let condition = connected().await;
        let lost = condition.status == "False" && condition.reason == "Disconnected";
        if lost { Ok(()) } else { Err(condition) }
    };
    eventually("the agent is lost", is_plainly_lost).await;

    try_in().await;
    eventually("the refusal is reported", async || {
        let condition = connected().await;
        let is_reported = condition.reason == "AgentRefused"
            && condition.message.contains("was already used by another agent");
        if is_reported { Ok(()) } else { Err(condition) }
    })
    .await;

    world.connect(&key, None, downstream.admin()).await.unwrap();
    eventually("all is well", async || {
        let condition = connected().await;
        let well = condition.status == "True" && condition.message.is_empty();
        if well { Ok(()) } else { Err(condition) }
    })
    .await;
}

/// The reasons of the conditions `Connected` and `Waiting`, which show why an agent was refused.
async fn reasons(world: &World, cluster: &str) -> [String; 2] {
    let cluster = world.clusters().get(cluster).await.unwrap();
    ["Connected", "Waiting"].map(|kind| {
        let found = condition::find(&cluster.status.conditions, kind);
        found.map(|condition| condition.reason.clone()).unwrap_or_default()
    })
}

/// Waits until the registrar knows the token of `cluster`: until then it admits a known key without
/// one.
async fn known(world: &World, secret: &str, cluster: &str) {
    let hello = World::hello(&AgentKey::generate().unwrap(), Some(secret));
    eventually("a token that the registrar knows", async || {
        match world.registrar.claimed_cluster(&hello) {
            Some(claimed) if &*claimed == cluster => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_from_a_cluster_of_another_entry_is_refused_and_changes_nothing_there() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let first = world.import("c-first", &downstream).await;
    let before = world.clusters().get("c-first").await.unwrap();
    let uid = test_kit::kube_system_uid(&downstream.admin()).await;
    assert_eq!(Some(&before.status.kube_system_uid), uid.as_ref());

    world.create_cluster("c-second").await;
    let secret = world.token("c-second").await.status.token;
    known(&world, &secret, "c-second").await;
    let other = AgentKey::generate().unwrap();
    // With the key of the first agent, like a clone beside it, and with one of its own.
    for key in [&first, &other] {
        let refused = world.connect(key, Some(&secret), downstream.admin()).await.unwrap_err();
        assert_eq!(refused.reason, RefusalReason::AlreadyManaged);
        assert!(refused.message.contains("rollout undo"), "{}", refused.message);
        assert!(!refused.message.contains("c-first"), "{}", refused.message);
    }
    eventually("the second entry says why", async || {
        let reasons = reasons(&world, "c-second").await;
        if reasons.iter().all(|it| it == "AlreadyManaged") { Ok(()) } else { Err(reasons) }
    })
    .await;
    world.active("c-first").await;
    let after = world.clusters().get("c-first").await.unwrap();
    assert_eq!(after.status.agent_identity, before.status.agent_identity);

    // The second entry is removed, and nothing of the first is.
    world.remove("c-second").await;
    let namespaces: Api<Namespace> = Api::all(downstream.admin());
    let namespace = namespaces.get("cattle-system").await.unwrap();
    assert!(namespace.metadata.deletion_timestamp.is_none());
    world.active("c-first").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_hides_its_cluster_is_detected_and_deletes_nothing() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import("c-first", &downstream).await;
    world.create_cluster("c-second").await;
    let secret = world.token("c-second").await.status.token;
    known(&world, &secret, "c-second").await;
    let key = AgentKey::generate().unwrap();
    let hello = World::hello(&key, Some(&secret));
    let admission = world.registrar.admit(&hello).await.unwrap();
    world.registrar.enrol(&hello, &admission).await.unwrap();
    // The key is known a moment after it was written.
    eventually("the connection", async || world.connect(&key, None, downstream.admin()).await)
        .await;
    eventually("the second entry is not ready", async || {
        let cluster = world.clusters().get("c-second").await.unwrap();
        let ready = condition::find(&cluster.status.conditions, "Ready").cloned();
        let is_reported = ready.as_ref().is_some_and(|ready| ready.reason == "AlreadyManaged");
        if is_reported { Ok(()) } else { Err(ready) }
    })
    .await;
    let second = world.clusters().get("c-second").await.unwrap();
    assert_eq!(second.status.kube_system_uid, "");
    world.remove("c-second").await;
    let namespaces: Api<Namespace> = Api::all(downstream.admin());
    let namespace = namespaces.get("cattle-system").await.unwrap();
    assert!(namespace.metadata.deletion_timestamp.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clone_is_an_entry_of_its_own_and_a_lost_key_comes_back_by_a_new_token() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let first = world.import("c-first", &downstream).await;
    let mut clone = Cluster::default();
    clone.metadata.name = Some("c-clone".to_owned());
    let mark = (keys::IMPORT_AS_NEW.to_owned(), "true".to_owned());
    clone.metadata.annotations = Some([mark].into());
    world.clusters().create(&PostParams::default(), &clone).await.unwrap();
    let secret = world.token("c-clone").await.status.token;
    known(&world, &secret, "c-clone").await;
    // The clone's agent begins with the cloned key, and creates one of its own.
    let refused = world.connect(&first, Some(&secret), downstream.admin()).await.unwrap_err();
    assert_eq!(refused.reason, RefusalReason::KeyElsewhere);
    let renewed = AgentKey::generate().unwrap();
    world.connect(&renewed, Some(&secret), downstream.admin()).await.unwrap();
    world.active("c-clone").await;
    world.active("c-first").await;

    // The agent of the same uid may connect with another key, by a newer token.
    let tokens: Api<ClusterRegistrationToken> = Api::namespaced(world.admin(), "c-first");
    let mut newer = ClusterRegistrationToken::default();
    newer.metadata.name = Some("newer".to_owned());
    newer.spec.cluster_name = "c-first".to_owned();
    tokens.create(&PostParams::default(), &newer).await.unwrap();
    let secret = eventually("the newer token", async || {
        let token = tokens.get("newer").await.unwrap().status.token;
        if token.is_empty() { Err("no secret") } else { Ok(token) }
    })
    .await;
    known(&world, &secret, "c-first").await;
    let lost = AgentKey::generate().unwrap();
    let joined = world.connect(&lost, Some(&secret), downstream.admin()).await;
    assert_eq!(joined.unwrap(), "c-first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_cluster_becomes_active_with_its_nodes_and_sums_and_follows_them() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    node(&downstream, "n1", "4").await;
    pod(&downstream, "p1", "n1", "500m").await;
    world.import("c-abcde", &downstream).await;
    let status = eventually("capacity", async || {
        let status = world.stored("clusters/c-abcde").await["status"].take();
        if status["requested"]["cpu"].is_string() { Ok(status) } else { Err(status) }
    })
    .await;
    assert_eq!(status["capacity"]["cpu"], "4");
    assert_eq!(status["requested"]["cpu"], "500m");
    assert_eq!(status["requested"]["pods"], "1");
    assert_eq!(status["nodeCount"], 1);
    assert_eq!(status["apiEndpoint"], "https://10.0.0.1:6443");
    let nodes = async || world.stored("namespaces/c-abcde/nodes").await["items"].take();
    let list = nodes().await;
    assert_eq!(list[0]["status"]["nodeName"], "n1");
    assert_eq!(list[0]["status"]["ipAddress"], "10.0.0.7");
    assert_eq!(list[0]["metadata"]["ownerReferences"][0]["name"], "c-abcde");

    node(&downstream, "n2", "2").await;
    Api::<KubeNode>::all(downstream.admin()).delete("n1", &DeleteParams::default()).await.unwrap();
    eventually("nodes that follow", async || {
        let list = nodes().await;
        let names: Vec<&Value> =
            list.as_array().unwrap().iter().map(|node| &node["status"]["nodeName"]).collect();
        let cluster = world.stored("clusters/c-abcde").await;
        let capacity = &cluster["status"]["capacity"]["cpu"];
        if names == ["n2"] && *capacity == "2" { Ok(()) } else { Err((list, cluster)) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_applied_spec_follows_every_change_of_the_spec() {
    let world = World::start().await;
    world.create_cluster("c-abcde").await;
    let specs = [
        json!({"description": "one", "enableNetworkPolicy": true}),
        json!({"description": "two", "genericEngineConfig": {"nodes": [1, {"x": null}]}}),
        json!({"description": null, "genericEngineConfig": null}),
        json!({"clusterSecrets": {"weavePasswordSecret": "s"}, "fleetWorkspaceName": "w"}),
    ];
    for spec in specs {
        let patch = Patch::Merge(json!({"spec": spec}));
        world.clusters().patch("c-abcde", &PatchParams::default(), &patch).await.unwrap();
        let requested = world.stored("clusters/c-abcde").await["spec"].take();
        eventually("the applied spec", async || {
            let applied = world.stored("clusters/c-abcde").await["status"]["appliedSpec"].take();
            if applied == requested { Ok(()) } else { Err(applied) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_its_namespace_token_and_projects_owned_by_it() {
    let world = World::start().await;
    let cluster = world.create_cluster("c-abcde").await;
    let token = world.token("c-abcde").await;
    assert_eq!(token.status.token.len(), 54);
    let stored = world.stored("namespaces/c-abcde/clusterregistrationtokens/default-token").await;
    let command = stored["status"]["command"].as_str().unwrap();
    assert!(command.starts_with("kubectl apply -f https://drover.example/v3/import/"), "{command}");
    let projects: Api<Project> = Api::namespaced(world.admin(), "c-abcde");
    let list = eventually("two projects", async || {
        let list = projects.list(&ListParams::default()).await.unwrap().items;
        if list.len() == 2 { Ok(list) } else { Err(list.len()) }
    })
    .await;
    let mut names: Vec<&str> = list.iter().map(|p| p.spec.display_name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Default", "System"]);
    let uid = cluster.uid().unwrap();
    let owned =
        |meta: &kube::api::ObjectMeta| meta.owner_references.as_ref().unwrap()[0].uid == uid;
    assert!(list.iter().all(|project| owned(&project.metadata)) && owned(&token.metadata));
    let namespaces: Api<Namespace> = Api::all(world.admin());
    assert!(owned(&namespaces.get("c-abcde").await.unwrap().metadata));
    let pending = world.clusters().get("c-abcde").await.unwrap();
    let state = api_management::state::of_cluster(&pending.status.conditions, false);
    assert_eq!(state.state, "pending");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_agent_is_reported_at_once_and_reconnects_without_a_token() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = world.import("c-abcde", &downstream).await;
    world.disconnect("c-abcde", &key);
    eventually("unavailable", async || {
        let cluster = world.clusters().get("c-abcde").await.unwrap();
        let state = api_management::state::of_cluster(&cluster.status.conditions, false);
        if state.state == "unavailable" { Ok(()) } else { Err(state) }
    })
    .await;
    world.connect(&key, None, downstream.admin()).await.unwrap();
    world.active("c-abcde").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_replayed_and_expired_registration_tokens_are_refused() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = world.import("c-abcde", &downstream).await;
    let token = world.token("c-abcde").await.status.token;
    let refused = async |key: &AgentKey, token: Option<&str>| {
        world.connect(key, token, downstream.admin()).await.unwrap_err().reason
    };
    let other = AgentKey::generate().unwrap();
    assert_eq!(refused(&other, Some("wrong")).await, RefusalReason::TokenUnknown);
    assert_eq!(refused(&other, None).await, RefusalReason::KeyUnknown);
    eventually("the token used up", async || {
        let reason = refused(&other, Some(&token)).await;
        if reason == RefusalReason::TokenUsed { Ok(()) } else { Err(reason) }
    })
    .await;
    // The same agent applying the same manifest again is harmless.
    world.connect(&key, Some(&token), downstream.admin()).await.unwrap();

    world.create_cluster("c-other").await;
    let fresh = world.token("c-other").await;
    let tokens: Api<ClusterRegistrationToken> = Api::namespaced(world.admin(), "c-other");
    let past = Patch::Merge(json!({"status": {"expiresAt": "2020-01-01T00:00:00Z"}}));
    let params = PatchParams::default();
    tokens.patch_status("default-token", &params, &past).await.unwrap();
    let hello = World::hello(&other, Some(&fresh.status.token));
    eventually("the token expired", async || match world.registrar.admit(&hello).await {
        Err(refusal) if refusal.reason == RefusalReason::TokenExpired => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_agents_with_one_token_exactly_one_gets_in() {
    let world = World::start().await;
    world.create_cluster("c-abcde").await;
    let token = world.token("c-abcde").await.status.token;
    eventually("the token known", async || {
        let hello = World::hello(&AgentKey::generate().unwrap(), Some(&token));
        world.registrar.admit(&hello).await.map(drop)
    })
    .await;
    let keys: Vec<AgentKey> = (0..8).map(|_| AgentKey::generate().unwrap()).collect();
    let tries = keys.iter().map(|key| async {
        let hello = World::hello(key, Some(&token));
        let admission = world.registrar.admit(&hello).await?;
        world.registrar.enrol(&hello, &admission).await
    });
    let results = futures::future::join_all(tries).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removal_leaves_no_object_of_drover_downstream_and_reports() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let before = ours(&downstream).await;
    assert!(before.is_empty());
    world.import("c-abcde", &downstream).await;
    eventually("roles downstream", async || {
        let there = ours(&downstream).await;
        if there.len() >= 5 { Ok(()) } else { Err(there) }
    })
    .await;
    owned_by_namespace(&downstream).await;
    world.remove("c-abcde").await;
    eventually("no object of Drover downstream", async || {
        let left = ours(&downstream).await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    let report = report(&world, "c-abcde").await;
    assert_eq!(report["outcome"], "complete");
    assert_eq!(report["left"], json!([]));
    let namespaces: Api<Namespace> = Api::all(world.admin());
    assert!(namespaces.get_opt("c-abcde").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_beside_the_agent_gets_no_token_unless_it_names_an_account() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import("c-abcde", &downstream).await;
    let mounts = async |namespace: &str| {
        let accounts: Api<ServiceAccount> = Api::namespaced(downstream.admin(), namespace);
        accounts.get("default").await.map(|account| account.automount_service_account_token)
    };
    eventually("a default account without a token", async || match mounts(keys::SYSTEM_NS).await {
        Ok(Some(false)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    // Workloads in other namespaces may need theirs.
    for namespace in ["default", "kube-system"] {
        let untouched = eventually("the account", async || mounts(namespace).await).await;
        assert_eq!(untouched, None, "{namespace}");
    }
}

/// Everything downstream with Drover's label.
async fn ours(api: &KubeApi) -> Vec<String> {
    let labelled = ListParams::default().labels(keys::DOWNSTREAM_OWNED);
    let mut all = Vec::new();
    for namespace in Api::<Namespace>::all(api.admin()).list(&labelled).await.unwrap() {
        all.push(format!("namespace {}", namespace.name_any()));
    }
    for role in Api::<ClusterRole>::all(api.admin()).list(&labelled).await.unwrap() {
        all.push(format!("role {}", role.name_any()));
    }
    for binding in Api::<ClusterRoleBinding>::all(api.admin()).list(&labelled).await.unwrap() {
        all.push(format!("binding {}", binding.name_any()));
    }
    all
}

async fn owned_by_namespace(api: &KubeApi) {
    let labelled = ListParams::default().labels(keys::DOWNSTREAM_OWNED);
    eventually("owner references", async || {
        let roles = Api::<ClusterRole>::all(api.admin()).list(&labelled).await.unwrap();
        let free = roles.iter().filter(|role| role.owner_references().is_empty());
        let free: Vec<String> = free.map(ResourceExt::name_any).collect();
        if free.is_empty() { Ok(()) } else { Err(free) }
    })
    .await;
}

async fn report(world: &World, cluster: &str) -> Value {
    let reports: Api<ConfigMap> = Api::namespaced(world.admin(), keys::SYSTEM_NS);
    let report = reports.get(&format!("removal-{cluster}")).await.unwrap();
    serde_json::from_str(&report.data.unwrap()["report.json"]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_agent_waits_and_is_removed_by_force_with_a_report() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = world.import("c-abcde", &downstream).await;
    world.disconnect("c-abcde", &key);
    let clusters = world.clusters();
    clusters.delete("c-abcde", &DeleteParams::default()).await.unwrap();
    eventually("the reason for waiting", async || {
        let cluster = clusters.get("c-abcde").await.unwrap();
        let removed = api_management::condition::find(&cluster.status.conditions, "Removed");
        match removed {
            Some(condition) if condition.message.contains(keys::FORCE_REMOVE) => Ok(()),
            other => Err(other.cloned()),
        }
    })
    .await;
    let force = json!({"metadata": {"annotations": {keys::FORCE_REMOVE: "true"}}});
    clusters.patch("c-abcde", &PatchParams::default(), &Patch::Merge(force)).await.unwrap();
    world.wait_until_removed("c-abcde").await;
    let report = report(&world, "c-abcde").await;
    assert_eq!(report["outcome"], "forced");
    assert!(report["left"].as_array().unwrap().len() >= 3);
    assert!(report["left"][0]["why"].as_str().unwrap().contains("not connected"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_was_never_imported_is_removed_at_once() {
    let world = World::start().await;
    world.create_cluster("c-abcde").await;
    world.token("c-abcde").await;
    let began = std::time::Instant::now();
    world.remove("c-abcde").await;
    assert!(began.elapsed() < Duration::from_secs(10));
    let bindings: Api<ClusterRoleTemplateBinding> = Api::all(world.admin());
    let left = bindings.list(&ListParams::default()).await.unwrap();
    assert!(left.items.iter().all(|b| b.namespace().as_deref() != Some("c-abcde")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_and_invalid_names_are_refused_with_the_reason() {
    let world = World::start().await;
    let create = async |name: &str, display: &str| {
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some(name.to_owned());
        cluster.spec.display_name = display.to_owned();
        world.clusters().create(&PostParams::default(), &cluster).await
    };
    create("c-one", "north").await.unwrap();
    let refused =
        eventually("a duplicate refused", async || match create("c-two", "north").await {
            Err(error) => Ok(error.to_string()),
            Ok(_) => {
                world.clusters().delete("c-two", &DeleteParams::default()).await.unwrap();
                world.wait_until_removed("c-two").await;
                Err("created")
            }
        })
        .await;
    assert!(refused.contains("cluster \"c-one\" has this name"), "{refused}");
    let invalid = create("a.b", "other").await.unwrap_err().to_string();
    assert!(invalid.contains("must be a DNS label"), "{invalid}");
    let blank = create("c-three", " x").await.unwrap_err().to_string();
    assert!(blank.contains("spec.displayName"), "{blank}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_keeps_its_state_and_admits_the_agent_again() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    let key = world.import("c-abcde", &downstream).await;
    let token = world.token("c-abcde").await.status.token;
    let api = world.api.clone();
    drop(world);
    let again = World::over(api).await;
    assert_eq!(again.token("c-abcde").await.status.token, token);
    // Agents need a moment to reconnect; meanwhile the cluster is not reported as disconnected.
    again.active("c-abcde").await;
    again.connect(&key, None, downstream.admin()).await.unwrap();
    again.active("c-abcde").await;
    let projects: Api<Project> = Api::namespaced(again.admin(), "c-abcde");
    assert_eq!(projects.list(&ListParams::default()).await.unwrap().items.len(), 2);
}
