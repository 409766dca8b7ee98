//! Nodes of a cluster below `/v3/nodes`: who can change and delete them, and that changes reach the
//! cluster.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use test_kit::eventually;

use super::users::{CLUSTER, GUEST, MEMBER, OWNER, READER, Users};

struct NodeWorld {
    users: Users,
    path: String,
}

impl NodeWorld {
    /// A cluster with one node, which the management plane knows.
    async fn start() -> Self {
        let users = Users::start().await;
        let node = json!({"metadata": {"name": "n1", "labels": {
            "kubernetes.io/hostname": "n1", "tier": "a", "old": "x"}}});
        let node = serde_json::from_value(node).unwrap();
        let nodes: Api<Node> = Api::all(users.downstream.admin());
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let list = format!("/v3/nodes?clusterId={CLUSTER}");
        let id = eventually("the node known here", async || {
            let ids = users.ids(OWNER, &list).await;
            ids.into_iter().next().ok_or_else(|| "no node".to_owned())
        })
        .await;
        let world = Self { users, path: format!("/v3/nodes/{id}") };
        world.seen_by(OWNER).await;
        world
    }
    /// Waits until the user sees the node with its observed state.
    async fn seen_by(&self, who: &str) {
        eventually("the node shown", async || {
            let (status, shown) = self.users.get(who, &self.path).await;
            let is_shown = status == 200 && shown["labels"]["tier"] == "a";
            is_shown.then_some(()).ok_or_else(|| format!("{status}: {shown}"))
        })
        .await;
    }
    async fn shown(&self, who: &str) -> Value {
        self.users.must_as(who, 200, "GET", &self.path, &Value::Null).await
    }
    async fn put(&self, code: u16, who: &str, body: Value) -> Value {
        self.users.must_as(who, code, "PUT", &self.path, &body).await
    }
    async fn act(&self, code: u16, who: &str, action: &str) -> Value {
        let path = format!("{}?action={action}", self.path);
        self.users.must_as(who, code, "POST", &path, &json!({})).await
    }
    /// The node in the cluster's API.
    async fn node(&self) -> Option<Value> {
        let nodes: Api<Node> = Api::all(self.users.downstream.admin());
        nodes.get_opt("n1").await.unwrap().map(|node| json!(node))
    }
}

/// The links and actions of a node.
fn offered(shown: &Value) -> Vec<String> {
    let links = ["update", "remove"].into_iter().filter(|link| shown["links"][link].is_string());
    let actions = shown["actions"].as_object().unwrap().keys();
    links.map(str::to_owned).chain(actions.cloned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_annotations_and_taints_of_a_node_are_written_in_its_cluster() {
    let world = NodeWorld::start().await;
    let taint = json!({"key": "k", "value": "v", "effect": "NoSchedule"});
    let body = json!({"labels": {"tier": "b", "new": "y"}, "annotations": {"note": "here"},
        "taints": [taint], "name": "the first"});
    let response = world.put(200, OWNER, body).await;
    for shown in [response, world.shown(OWNER).await] {
        let labels = json!({"tier": "b", "new": "y", "kubernetes.io/hostname": "n1"});
        assert_eq!(shown["labels"], labels, "{shown}");
        assert_eq!(shown["annotations"]["note"], "here");
        assert_eq!(shown["taints"][0]["key"], "k");
        assert_eq!(shown["name"], "the first");
    }
    let node = world.node().await.unwrap();
    assert_eq!(node["metadata"]["labels"]["tier"], "b");
    assert_eq!(node["metadata"]["labels"]["old"], Value::Null);
    assert_eq!(node["spec"]["taints"], json!([taint]));

    // Immediately again: the next write must start from the result of the one before.
    world.put(200, OWNER, json!({"labels": {"tier": "b"}, "taints": []})).await;
    let node = world.node().await.unwrap();
    assert_eq!(node["metadata"]["labels"], json!({"tier": "b", "kubernetes.io/hostname": "n1"}));
    assert_eq!(node["metadata"]["annotations"]["note"], "here");
    assert_eq!(node["spec"]["taints"], Value::Null);

    // A refusal of the cluster is the response, and an unreachable cluster is reported.
    world.put(422, OWNER, json!({"labels": {"not a key": "x"}})).await;
    world.users.connect(false);
    let refused = world.put(503, OWNER, json!({"labels": {"tier": "c"}})).await;
    assert_eq!(refused["code"], "ClusterUnavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_cordoned_and_uncordoned() {
    let world = NodeWorld::start().await;
    world.act(404, OWNER, "uncordon").await;
    world.act(200, OWNER, "cordon").await;
    assert_eq!(world.node().await.unwrap()["spec"]["unschedulable"], true);
    let shown = world.shown(OWNER).await;
    assert_eq!(shown["unschedulable"], true);
    assert_eq!(offered(&shown), ["update", "remove", "drain", "uncordon"]);
    world.act(200, OWNER, "uncordon").await;
    assert_ne!(world.node().await.unwrap()["spec"]["unschedulable"], true);
    assert_eq!(offered(&world.shown(OWNER).await), ["update", "remove", "cordon", "drain"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_nodes_see_no_actions_and_are_refused_all() {
    let world = NodeWorld::start().await;
    let before = world.node().await.unwrap();
    for who in [MEMBER, READER] {
        assert_eq!(offered(&world.shown(who).await), [""; 0]);
        let list = format!("/v3/nodes?clusterId={CLUSTER}");
        let list = world.users.must_as(who, 200, "GET", &list, &Value::Null).await;
        assert_eq!(offered(&list["data"][0]), [""; 0]);
        world.put(403, who, json!({"labels": {"tier": "b"}})).await;
        world.put(403, who, json!({"taints": []})).await;
        world.act(403, who, "cordon").await;
        world.users.must_as(who, 403, "DELETE", &world.path, &Value::Null).await;
    }
    world.put(403, GUEST, json!({"labels": {"tier": "b"}})).await;
    world.users.must_as(GUEST, 403, "DELETE", &world.path, &Value::Null).await;
    world.act(404, GUEST, "cordon").await;
    assert_eq!(world.node().await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_here_alone_does_not_reach_into_the_cluster() {
    let world = NodeWorld::start().await;
    let manage = feature_kit::rbac::ours(&["nodes"], &["*"]);
    let read = feature_kit::rbac::rule("", &["nodes"], &["get", "list", "watch"]);
    world.users.role("half", vec![manage, read]).await;
    world.users.bind("u-half", "half").await;
    world.seen_by("u-half").await;
    let before = world.node().await.unwrap();
    world.put(403, "u-half", json!({"labels": {"tier": "b"}})).await;
    world.act(403, "u-half", "cordon").await;
    world.users.must_as("u-half", 403, "DELETE", &world.path, &Value::Null).await;
    assert_eq!(world.node().await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_node_is_removed_from_its_cluster_and_from_the_management_plane() {
    let world = NodeWorld::start().await;
    world.users.must_as(OWNER, 204, "DELETE", &world.path, &Value::Null).await;
    assert_eq!(world.node().await, None);
    world.users.must_as(OWNER, 404, "GET", &world.path, &Value::Null).await;
}
