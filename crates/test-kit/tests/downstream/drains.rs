//! Draining a node below `/v3/nodes`: evicted pods, obstacles, rights, and how a drain ends.
//!
//! The cluster has no kubelet: pods that are evicted with a grace period remain until the test
//! deletes them.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use rest_view::Caller;
use serde_json::{Value, json};
use test_kit::eventually;
use tokio_util::sync::CancellationToken;

use super::users::{CLUSTER, MEMBER, OWNER, READER, Users};

struct DrainWorld {
    users: Users,
    path: String,
}

impl DrainWorld {
    /// A cluster with one node, which the management plane knows, and these pods on it.
    async fn start(pods: &[Value]) -> Self {
        let users = Users::start().await;
        let nodes: Api<Node> = Api::all(users.downstream.admin());
        let node = serde_json::from_value(json!({"metadata": {"name": "n1"}})).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        nodes.patch_status("n1", &PatchParams::default(), &Patch::Merge(&ready)).await.unwrap();
        let list = format!("/v3/nodes?clusterId={CLUSTER}");
        let id = eventually("the node known here", async || {
            let (_, list) = users.get(OWNER, &list).await;
            let node = &list["data"][0];
            let is_shown = node["state"] == "active";
            is_shown.then(|| node["id"].clone()).ok_or_else(|| list.to_string())
        })
        .await;
        let world = Self { users, path: format!("/v3/nodes/{}", id.as_str().unwrap()) };
        for pod in pods {
            world.pod(pod.clone()).await;
        }
        world
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        self.users.downstream.admin().request(request).await.unwrap()
    }
    /// An owner of pods. It creates none: its controller does not run.
    async fn owner(&self, kind: &str) -> Value {
        let path = format!("/apis/apps/v1/namespaces/default/{}s", kind.to_lowercase());
        let body = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generateName": "of-"},
            "spec": {"selector": {"matchLabels": {"app": "of"}},
                "template": {"metadata": {"labels": {"app": "of"}},
                    "spec": {"containers": [{"name": "main", "image": "example.invalid/i:1"}]}}}});
        let made = self.send("POST", &path, &body).await;
        json!({"apiVersion": "apps/v1", "kind": kind, "controller": true,
            "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]})
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.users.downstream.admin(), "default")
    }
    async fn pod(&self, mut pod: Value) {
        if let Some(kind) = pod["owner"].as_str() {
            pod["metadata"]["ownerReferences"] = json!([self.owner(kind).await]);
        }
        pod.as_object_mut().unwrap().remove("owner");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let name = pod.metadata.name.clone().unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
        let status = json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}});
        let parameters = PatchParams::default();
        self.pods().patch_status(&name, &parameters, &Patch::Merge(&status)).await.unwrap();
    }
    /// Names of existing pods, and whether each is terminating.
    async fn there(&self) -> Vec<(String, bool)> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap();
        let ending = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        pods.items.iter().map(|pod| (pod.metadata.name.clone().unwrap(), ending(pod))).collect()
    }
    async fn budget(&self, allowed: i32) {
        let budgets: Api<PodDisruptionBudget> =
            Api::namespaced(self.users.downstream.admin(), "default");
        let budget = json!({"metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
        let budget = serde_json::from_value(budget).unwrap();
        budgets.create(&PostParams::default(), &budget).await.unwrap();
        // Instead of its controller, which does not run.
        let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
            "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}});
        let parameters = PatchParams::default();
        budgets.patch_status("web", &parameters, &Patch::Merge(&status)).await.unwrap();
    }

    async fn act(&self, code: u16, who: &str, action: &str, body: Value) -> Value {
        let path = format!("{}?action={action}", self.path);
        self.users.must_as(who, code, "POST", &path, &body).await
    }
    async fn drain(&self, code: u16, body: Value) -> Value {
        self.act(code, OWNER, "drain", body).await
    }
    async fn shown(&self) -> Value {
        self.users.must(200, "GET", &self.path, &Value::Null).await
    }
    async fn until(&self, state: &str, text: &str) -> Value {
        eventually(&format!("{state}: {text}"), async || {
            let shown = self.shown().await;
            let condition = drained(&shown);
            let message = condition["message"].as_str().unwrap_or_default();
            let is_there = shown["state"] == state && message.contains(text);
            is_there.then(|| shown.clone()).ok_or_else(|| shown.to_string())
        })
        .await
    }
    async fn is_cordoned(&self) -> bool {
        let nodes: Api<Node> = Api::all(self.users.downstream.admin());
        let node = nodes.get("n1").await.unwrap();
        node.spec.unwrap_or_default().unschedulable == Some(true)
    }
}

/// `owner`: the kind of its controller, in a field of the test's own.
fn pod(name: &str, owner: Option<&str>) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": name.split('-').next()}},
        "owner": owner,
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "example.invalid/i:1"}]},
    })
}

fn drained(shown: &Value) -> Value {
    let conditions = shown["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == "Drained");
    found.cloned().unwrap_or_default()
}

fn actions(shown: &Value) -> Vec<&String> {
    shown["actions"].as_object().unwrap().keys().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_drained_and_takes_pods_again() {
    let world =
        DrainWorld::start(&[pod("web-1", Some("ReplicaSet")), pod("web-2", Some("ReplicaSet"))])
            .await;
    assert_eq!(actions(&world.shown().await), ["cordon", "drain"]);
    world.drain(200, json!({"gracePeriod": 0})).await;
    let shown = world.until("drained", "Pods evicted: 2.").await;
    assert_eq!(drained(&shown)["status"], "True");
    assert_eq!(shown["transitioning"], "no");
    assert_eq!(actions(&shown), ["drain", "uncordon"]);
    assert_eq!(world.there().await, []);
    assert!(world.is_cordoned().await);

    world.act(200, OWNER, "uncordon", json!({})).await;
    let shown = world.until("active", "").await;
    assert_eq!(drained(&shown), Value::Null);
    assert_eq!(actions(&shown), ["cordon", "drain"]);
    // A node that was drained once is not drained when it is cordoned again.
    world.act(200, OWNER, "cordon", json!({})).await;
    world.until("cordoned", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn obstacles_of_a_drain_are_named_and_nothing_is_evicted() {
    let mut with_data = pod("data", Some("ReplicaSet"));
    with_data["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    let pods = [
        pod("alone", None),
        with_data,
        pod("web-1", Some("ReplicaSet")),
        pod("log", Some("DaemonSet")),
    ];
    let world = DrainWorld::start(&pods).await;
    let refused = world.drain(422, json!({"gracePeriod": 0})).await;
    let text = refused["message"].as_str().unwrap();
    for part in ["default/alone would not be started again", "default/data would lose data"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!world.is_cordoned().await);
    assert!(world.there().await.iter().all(|(_, ending)| !ending));
    for wrong in [json!({"timeout": 0}), json!({"timeout": 10801}), json!({"gracePeriod": "soon"})]
    {
        world.drain(422, wrong).await;
    }

    let refused = world.drain(422, json!({"ignoreDaemonSets": false, "force": true})).await;
    assert!(refused["message"].as_str().unwrap().contains("default/log would be started again"));
    world.drain(200, json!({"gracePeriod": 0, "force": true, "deleteLocalData": true})).await;
    world.until("drained", "Pods evicted: 3.").await;
    assert_eq!(world.there().await, [("log".to_owned(), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disruption_budget_holds_a_drain_until_it_is_stopped_or_out_of_time() {
    let world =
        DrainWorld::start(&[pod("web-1", Some("ReplicaSet")), pod("web-2", Some("ReplicaSet"))])
            .await;
    world.budget(1).await;
    world.drain(200, json!({"gracePeriod": 0})).await;
    let shown = world.until("draining", "1 of 2 pods have ended; left: default/web-").await;
    assert!(shown["transitioningMessage"].as_str().unwrap().contains("needs 2 healthy pods"));
    assert_eq!(shown["transitioning"], "yes");
    assert_eq!(actions(&shown), ["stopDrain"]);
    // Two concurrent requests must not start two drains.
    world.act(404, OWNER, "drain", json!({})).await;

    world.act(200, OWNER, "stopDrain", json!({})).await;
    let shown = world.shown().await;
    assert_eq!((&shown["state"], &shown["transitioning"]), (&json!("cordoned"), &json!("no")));
    assert_eq!(drained(&shown)["reason"], "Stopped");
    assert_eq!(world.there().await.len(), 1);

    world.drain(200, json!({"gracePeriod": 0, "timeout": 1})).await;
    let shown = world.until("cordoned", "did not end in time: 0 of 1 pods").await;
    assert_eq!(shown["transitioning"], "error");
    assert_eq!(drained(&shown)["reason"], "TimedOut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_has_its_grace_period_and_the_drain_waits_for_it() {
    let world = DrainWorld::start(&[pod("web-1", Some("ReplicaSet"))]).await;
    world.drain(200, json!({"gracePeriod": 300})).await;
    world.until("draining", "0 of 1 pods have ended; left: default/web-1 (ending)").await;
    let ending = world.pods().get("web-1").await.unwrap().metadata;
    assert_eq!(ending.deletion_grace_period_seconds, Some(300));
    world.pods().delete("web-1", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.until("drained", "Pods evicted: 1.").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_ends_with_the_login_the_role_or_the_cordon_that_it_rests_on() {
    let world = DrainWorld::start(&[pod("web-1", Some("ReplicaSet"))]).await;
    world.budget(0).await;
    let path = format!("{}?action=drain", world.path);
    let ended = CancellationToken::new();
    let caller = Caller { ended: ended.clone(), ..Caller::user(OWNER) };
    let (status, response) = world.users.request_as(&caller, "POST", &path, &json!({})).await;
    assert_eq!(status, 200, "{response}");
    world.until("draining", "left").await;
    ended.cancel();
    let shown = world.until("cordoned", "login that started the drain has ended").await;
    assert_eq!(drained(&shown)["reason"], "CredentialEnded");

    // A revoked role: the cluster refuses the next eviction.
    world.users.bind("u-late", "cluster-owner").await;
    world.act(200, "u-late", "drain", json!({})).await;
    world.until("draining", "left").await;
    world.users.unbind("u-late", "cluster-owner").await;
    let shown = world.until("cordoned", "The cluster refused").await;
    assert_eq!(drained(&shown)["reason"], "Refused");

    // Uncordoning the node allows pods on it again, so it ends the drain.
    world.drain(200, json!({})).await;
    world.until("draining", "left").await;
    let nodes: Api<Node> = Api::all(world.users.downstream.admin());
    let patch = json!({"spec": {"unschedulable": null}});
    nodes.patch("n1", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let shown = world.until("active", "").await;
    assert_eq!(actions(&shown), ["cordon", "drain"]);
    assert_eq!(world.there().await, [("web-1".to_owned(), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_cluster_is_named_and_the_drain_continues_when_it_is_back() {
    let world = DrainWorld::start(&[pod("web-1", Some("ReplicaSet"))]).await;
    world.drain(200, json!({})).await;
    world.until("draining", "(ending)").await;
    world.users.connect(false);
    world.until("draining", "does not answer").await;
    world.users.connect(true);
    world.pods().delete("web-1", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.until("drained", "").await;
    world.users.connect(false);
    let refused = world.drain(503, json!({})).await;
    assert_eq!(refused["code"], "ClusterUnavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_without_rights_on_nodes_or_evictions_drain_nothing() {
    let world = DrainWorld::start(&[pod("web-1", Some("ReplicaSet"))]).await;
    let update = feature_kit::rbac::ours(&["nodes"], &["*"]);
    let nodes = feature_kit::rbac::rule("", &["nodes"], &["*"]);
    let pods = feature_kit::rbac::rule("", &["pods"], &["get", "list", "watch"]);
    world.users.role("no-evictions", vec![update, nodes, pods]).await;
    world.users.bind("u-half", "no-evictions").await;
    for who in [MEMBER, READER, "u-half"] {
        let refused = world.act(403, who, "drain", json!({"force": true})).await;
        assert_eq!(refused["code"], "Forbidden", "{who}: {refused}");
    }
    assert!(!world.is_cordoned().await);
    world.budget(0).await;
    world.drain(200, json!({})).await;
    world.act(403, READER, "stopDrain", json!({})).await;
    world.until("draining", "left").await;
}
