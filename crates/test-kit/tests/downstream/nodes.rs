//! Nodes of a cluster below `/v3/nodes`: who changes and removes them, and that it reaches the cluster.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use test_kit::eventually;

use super::people::{CLUSTER, GUEST, MEMBER, OWNER, People, READER};

struct Place {
    people: People,
    path: String,
}

impl Place {
    /// A cluster with one node, known here.
    async fn start() -> Self {
        let people = People::start().await;
        let node = json!({"metadata": {"name": "n1", "labels": {
            "kubernetes.io/hostname": "n1", "tier": "a", "old": "x"}}});
        let node = serde_json::from_value(node).unwrap();
        let nodes: Api<Node> = Api::all(people.downstream.admin());
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let list = format!("/v3/nodes?clusterId={CLUSTER}");
        let id = eventually("the node known here", async || {
            let ids = people.ids(OWNER, &list).await;
            ids.into_iter().next().ok_or_else(|| "no node".to_owned())
        })
        .await;
        let place = Self { people, path: format!("/v3/nodes/{id}") };
        place.seen_by(OWNER).await;
        place
    }
    /// Waits until this person is shown the node with what is observed of it.
    async fn seen_by(&self, who: &str) {
        eventually("the node shown", async || {
            let (status, shown) = self.people.get(who, &self.path).await;
            let is_shown = status == 200 && shown["labels"]["tier"] == "a";
            is_shown.then_some(()).ok_or_else(|| format!("{status}: {shown}"))
        })
        .await;
    }
    async fn shown(&self, who: &str) -> Value {
        self.people.must_as(who, 200, "GET", &self.path, &Value::Null).await
    }
    async fn put(&self, code: u16, who: &str, body: Value) -> Value {
        self.people.must_as(who, code, "PUT", &self.path, &body).await
    }
    async fn act(&self, code: u16, who: &str, action: &str) -> Value {
        let path = format!("{}?action={action}", self.path);
        self.people.must_as(who, code, "POST", &path, &json!({})).await
    }
    /// The node as the cluster has it.
    async fn node(&self) -> Option<Value> {
        let nodes: Api<Node> = Api::all(self.people.downstream.admin());
        nodes.get_opt("n1").await.unwrap().map(|node| json!(node))
    }
}

/// What is offered on a node: links that change it, and actions.
fn offered(shown: &Value) -> Vec<String> {
    let links = ["update", "remove"].into_iter().filter(|link| shown["links"][link].is_string());
    let actions = shown["actions"].as_object().unwrap().keys();
    links.map(str::to_owned).chain(actions.cloned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_annotations_and_taints_of_a_node_are_written_in_its_cluster() {
    let place = Place::start().await;
    let taint = json!({"key": "k", "value": "v", "effect": "NoSchedule"});
    let body = json!({"labels": {"tier": "b", "new": "y"}, "annotations": {"note": "here"},
        "taints": [taint], "name": "the first"});
    let answer = place.put(200, OWNER, body).await;
    for shown in [answer, place.shown(OWNER).await] {
        let labels = json!({"tier": "b", "new": "y", "kubernetes.io/hostname": "n1"});
        assert_eq!(shown["labels"], labels, "{shown}");
        assert_eq!(shown["annotations"]["note"], "here");
        assert_eq!(shown["taints"][0]["key"], "k");
        assert_eq!(shown["name"], "the first");
    }
    let node = place.node().await.unwrap();
    assert_eq!(node["metadata"]["labels"]["tier"], "b");
    assert_eq!(node["metadata"]["labels"]["old"], Value::Null);
    assert_eq!(node["spec"]["taints"], json!([taint]));

    // At once again: the next write starts from what the one before left.
    place.put(200, OWNER, json!({"labels": {"tier": "b"}, "taints": []})).await;
    let node = place.node().await.unwrap();
    assert_eq!(node["metadata"]["labels"], json!({"tier": "b", "kubernetes.io/hostname": "n1"}));
    assert_eq!(node["metadata"]["annotations"]["note"], "here");
    assert_eq!(node["spec"]["taints"], Value::Null);

    // What the cluster refuses is the answer, and an unreachable one is told.
    place.put(422, OWNER, json!({"labels": {"not a key": "x"}})).await;
    place.people.connect(false);
    let refused = place.put(503, OWNER, json!({"labels": {"tier": "c"}})).await;
    assert_eq!(refused["code"], "ClusterUnavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_cordoned_and_uncordoned() {
    let place = Place::start().await;
    place.act(404, OWNER, "uncordon").await;
    place.act(200, OWNER, "cordon").await;
    assert_eq!(place.node().await.unwrap()["spec"]["unschedulable"], true);
    let shown = place.shown(OWNER).await;
    assert_eq!(shown["unschedulable"], true);
    assert_eq!(offered(&shown), ["update", "remove", "drain", "uncordon"]);
    place.act(200, OWNER, "uncordon").await;
    assert_ne!(place.node().await.unwrap()["spec"]["unschedulable"], true);
    assert_eq!(offered(&place.shown(OWNER).await), ["update", "remove", "cordon", "drain"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_only_read_nodes_is_offered_nothing_and_refused_everything() {
    let place = Place::start().await;
    let before = place.node().await.unwrap();
    for who in [MEMBER, READER] {
        assert_eq!(offered(&place.shown(who).await), [""; 0]);
        let list = format!("/v3/nodes?clusterId={CLUSTER}");
        let list = place.people.must_as(who, 200, "GET", &list, &Value::Null).await;
        assert_eq!(offered(&list["data"][0]), [""; 0]);
        place.put(403, who, json!({"labels": {"tier": "b"}})).await;
        place.put(403, who, json!({"taints": []})).await;
        place.act(403, who, "cordon").await;
        place.people.must_as(who, 403, "DELETE", &place.path, &Value::Null).await;
    }
    place.put(403, GUEST, json!({"labels": {"tier": "b"}})).await;
    place.people.must_as(GUEST, 403, "DELETE", &place.path, &Value::Null).await;
    place.act(404, GUEST, "cordon").await;
    assert_eq!(place.node().await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_here_alone_does_not_reach_into_the_cluster() {
    let place = Place::start().await;
    let manage = feature_kit::rbac::ours(&["nodes"], &["*"]);
    let read = feature_kit::rbac::rule("", &["nodes"], &["get", "list", "watch"]);
    place.people.role("half", vec![manage, read]).await;
    place.people.bind("u-half", "half").await;
    place.seen_by("u-half").await;
    let before = place.node().await.unwrap();
    place.put(403, "u-half", json!({"labels": {"tier": "b"}})).await;
    place.act(403, "u-half", "cordon").await;
    place.people.must_as("u-half", 403, "DELETE", &place.path, &Value::Null).await;
    assert_eq!(place.node().await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_deleted_goes_from_its_cluster_and_from_here() {
    let place = Place::start().await;
    place.people.must_as(OWNER, 204, "DELETE", &place.path, &Value::Null).await;
    assert_eq!(place.node().await, None);
    place.people.must_as(OWNER, 404, "GET", &place.path, &Value::Null).await;
}
