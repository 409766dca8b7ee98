//! The types in the REST view, over objects in memory: what the view makes of requests. What a
//! cluster makes of them is tested with one (`test-kit`).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use rest_view::store::DeleteOptions;
use rest_view::{ApiError, Caller, Context, Key, ListScope, RestView, Store};
use serde_json::{Value, json};

use crate::workload::kind::WorkloadKind;
use crate::workload::store::Stores;
use crate::workload::view::views;

/// Objects of one kind, by namespace and name.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<(String, String), Value>>);

fn key_pair(key: &Key) -> (String, String) {
    (key.namespace.clone(), key.name.clone())
}

impl Store for Memory {
    fn list<'a>(
        &'a self,
        _: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async { Ok(self.0.lock().unwrap().values().cloned().collect()) })
    }
    fn get<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        let found = self.0.lock().unwrap().get(&key_pair(key)).cloned();
        Box::pin(async { found.ok_or_else(ApiError::no_such_id) })
    }
    fn create<'a>(
        &'a self,
        _: &'a Context<'a>,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        object["metadata"]["uid"] = format!("uid-{}", object["metadata"]["name"]).into();
        self.0.lock().unwrap().insert(key_pair(&Key::of(&object)), object.clone());
        Box::pin(async { Ok(object) })
    }
    fn replace<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        self.0.lock().unwrap().insert(key_pair(key), object.clone());
        Box::pin(async { Ok(object) })
    }
    fn delete<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
        _: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        self.0.lock().unwrap().remove(&key_pair(key));
        Box::pin(async { Ok(None) })
    }
}

struct World {
    view: RestView,
    memory: BTreeMap<WorkloadKind, Arc<Memory>>,
}

const ROOT: &str = "/v3/projects/c-1:p-1";

impl World {
    fn new() -> Self {
        let memory: BTreeMap<_, _> =
            WorkloadKind::ALL.into_iter().map(|kind| (kind, Arc::<Memory>::default())).collect();
        let stores: Stores =
            memory.iter().map(|(kind, m)| (*kind, m.clone() as Arc<dyn Store>)).collect();
        let view = RestView::new(feature_kit::view::api_versions(), views(&stores));
        Self { view, memory }
    }
    fn stored(&self, kind: WorkloadKind, name: &str) -> Value {
        let all = self.memory[&kind].0.lock().unwrap();
        all[&("ns".to_owned(), name.to_owned())].clone()
    }
    async fn send(&self, method: &str, rest: &str, body: Value) -> (u16, Value) {
        let nobody = tower::service_fn(|_: Request<kube::client::Body>| async {
            Ok::<_, Infallible>(Response::new(kube::client::Body::empty()))
        });
        let client = kube::Client::new(nobody, "default");
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(format!("{ROOT}/{rest}"));
        let request = request.header("host", "drover.example").body(body).unwrap();
        let response = self.view.handle(request, &Caller::user("u-1"), &client).await;
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }
    async fn must(&self, code: u16, method: &str, rest: &str, body: Value) -> Value {
        let (status, response) = self.send(method, rest, body).await;
        assert_eq!(status, code, "{method} {rest}: {response}");
        response
    }
    async fn ids(&self, rest: &str) -> Vec<String> {
        let list = self.must(200, "GET", rest, Value::Null).await;
        let data = list["data"].as_array().unwrap();
        data.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }
}

fn body(more: Value) -> Value {
    let containers = json!([{"name": "main", "image": "nginx", "environment": {"A": "1"}}]);
    let mut body = json!({"name": "web", "namespaceId": "ns", "containers": containers});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn workloads_are_made_shown_together_changed_and_removed() {
    let world = World::new();
    for kind in WorkloadKind::WORKLOADS
        .into_iter()
        .filter(|kind| *kind != WorkloadKind::ReplicationController)
    {
        let more = match kind {
            WorkloadKind::Deployment => json!({"scale": 2}),
            _ => json!({kind.config_field(): {}}),
        };
        let made = world.must(201, "POST", "workloads", body(more)).await;
        let id = format!("{}:ns:web", kind.id().to_lowercase());
        assert_eq!((&made["id"], &made["type"]), (&json!(id), &json!(kind.id())));
        assert_eq!((&made["baseType"], &made["name"]), (&json!("workload"), &json!("web")));
        let own = format!("https://drover.example{}/workloads/{id}", "/v3/project/c-1:p-1");
        assert_eq!(made["links"]["self"], own);
        for path in [format!("{}s/ns:web", kind.id()), format!("workloads/{id}")] {
            let shown = world.must(200, "GET", &path, Value::Null).await;
            assert_eq!(shown["containers"][0]["environment"], json!({"A": "1"}), "{shown}");
        }
        let stored = world.stored(kind, "web");
        assert_eq!(stored["kind"], kind.resource().kind);
        assert_eq!(stored["metadata"]["annotations"]["field.cattle.io/creatorId"], "u-1");
        assert_eq!(stored["metadata"]["labels"]["cattle.io/creator"], "norman");
    }
    assert_eq!(world.ids("workloads").await.len(), 6);
    assert_eq!(world.ids("jobs").await, ["job:ns:web"]);
    for odd in
        ["workloads/ns:web", "workloads/pod:ns:web", "jobs/deployment:ns:web", "pods/pod:ns:web"]
    {
        world.must(404, "GET", odd, Value::Null).await;
    }
    world.must(405, "POST", "replicationControllers", body(json!({}))).await;

    let path = "workloads/deployment:ns:web";
    let before = world.stored(WorkloadKind::Deployment, "web");
    let mut sent = world.must(200, "GET", path, Value::Null).await;
    world.must(200, "PUT", path, sent.clone()).await;
    assert_eq!(world.stored(WorkloadKind::Deployment, "web"), before);
    sent["containers"][0]["image"] = "nginx:2".into();
    world.must(200, "PUT", path, sent).await;
    let mut expected = before;
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2".into();
    assert_eq!(world.stored(WorkloadKind::Deployment, "web"), expected);
    world.must(200, "PUT", path, json!({"workloadLabels": {"x": "y"}, "scale": 7})).await;
    let stored = world.stored(WorkloadKind::Deployment, "web");
    assert_eq!(
        (&stored["metadata"]["labels"]["x"], &stored["spec"]["replicas"]),
        (&json!("y"), &json!(7))
    );
    // A replacement removes what it leaves out, except what the view needs.
    let whole = body(json!({"selector": stored["spec"]["selector"], "labels": {"x": "y"}}));
    world.must(200, "PUT", &format!("{path}?_replace=true"), whole).await;
    let stored = world.stored(WorkloadKind::Deployment, "web");
    assert_eq!(
        (stored["spec"].get("replicas"), &stored["metadata"]["labels"]["x"]),
        (None, &json!("y"))
    );
    assert_eq!(stored["spec"]["template"]["metadata"]["labels"], json!({"x": "y"}));
    let refused = world.must(422, "PUT", path, json!({"scheduling": {"node": 1}})).await;
    assert_eq!(refused["fieldName"], "node");
    world.must(204, "DELETE", path, Value::Null).await;
    world.must(404, "GET", path, Value::Null).await;
}

#[tokio::test]
async fn actions_change_one_thing_each() {
    let world = World::new();
    world.must(201, "POST", "deployments", body(json!({"annotations": {"a": "b"}}))).await;
    let path = "workloads/deployment:ns:web";
    let act = async |code: u16, name: &str, input: Value| {
        world.must(code, "POST", &format!("{path}?action={name}"), input).await
    };
    act(422, "resume", json!({})).await;
    act(200, "pause", json!({})).await;
    let shown = world.must(200, "GET", path, Value::Null).await;
    assert_eq!((&shown["paused"], &shown["state"]), (&json!(true), &json!("paused")));
    for name in ["pause", "resume", "redeploy", "rollback"] {
        let url = shown["actions"][name].as_str().unwrap();
        assert!(url.ends_with(&format!("{path}?action={name}")), "{url}");
    }
    act(422, "pause", json!({})).await;
    act(200, "resume", json!({})).await;
    act(200, "redeploy", json!({})).await;
    let stored = world.stored(WorkloadKind::Deployment, "web");
    let annotations = &stored["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["a"], "b");
    assert!(annotations["cattle.io/timestamp"].is_string());
    assert_eq!(stored["spec"].get("paused"), None);

    let mut set = stored.clone();
    set["metadata"] = json!({"name": "web-1", "namespace": "ns",
        "annotations": {"deployment.kubernetes.io/revision": "1"}, "ownerReferences":
        [{"kind": "Deployment", "name": "web", "uid": stored["metadata"]["uid"], "controller": true}]});
    set["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:old".into();
    let sets = &world.memory[&WorkloadKind::ReplicaSet];
    sets.0.lock().unwrap().insert(("ns".to_owned(), "web-1".to_owned()), set);
    assert_eq!(world.ids("workloads").await, ["deployment:ns:web"]);
    assert_eq!(world.ids(&format!("{path}/revisions")).await, ["replicaset:ns:web-1"]);
    let refused = act(422, "rollback", json!({})).await;
    assert_eq!(refused["fieldName"], "replicaSetId");
    act(422, "rollback", json!({"replicaSetId": "replicaset:ns:other"})).await;
    for input in [json!({"replicaSetId": "replicaset:ns:web-1"}), json!({"revisionId": "1"})] {
        act(200, "rollback", input).await;
        let mut expected = stored.clone();
        expected["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:old".into();
        assert_eq!(world.stored(WorkloadKind::Deployment, "web"), expected);
    }
    world.must(201, "POST", "jobs", body(json!({}))).await;
    assert_eq!(world.must(200, "GET", "jobs/ns:web", Value::Null).await["actions"], json!({}));
    world.must(404, "POST", "workloads/job:ns:web?action=redeploy", json!({})).await;
}

#[tokio::test]
async fn pods_can_be_found_by_their_workload() {
    let world = World::new();
    let controller = json!([{"kind": "Job", "name": "tick-1", "controller": true}]);
    let pod = json!({"metadata": {"name": "p", "namespace": "ns", "ownerReferences": controller},
        "spec": {"containers": [{"name": "a"}]}});
    let owner = json!([{"kind": "CronJob", "name": "tick", "controller": true}]);
    let job = json!({"metadata": {"name": "tick-1", "namespace": "ns", "ownerReferences": owner}});
    for (kind, object) in [(WorkloadKind::Pod, pod), (WorkloadKind::Job, job)] {
        world.memory[&kind].0.lock().unwrap().insert(key_pair(&Key::of(&object)), object);
    }
    assert_eq!(world.ids("pods?workloadId=cronjob:ns:tick").await, ["ns:p"]);
    assert_eq!(world.ids("jobs").await, Vec::<String>::new());
    let shown = world.must(200, "GET", "pods/ns:p", Value::Null).await;
    assert_eq!((&shown["workloadId"], &shown["type"]), (&json!("cronjob:ns:tick"), &json!("pod")));
}
