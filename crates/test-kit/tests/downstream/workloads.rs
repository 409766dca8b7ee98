//! Workloads of a project: all kinds alone and together, in the flattened form.

use serde_json::{Value, json};

use super::users::{CLUSTER, MEMBER, OWNER, READER, Users};

struct WorkloadWorld {
    users: Users,
    project: String,
}

impl WorkloadWorld {
    async fn start() -> Self {
        let users = Users::start().await;
        let project = users.project("apps").await;
        users.namespace("apps", &project).await;
        Self { users, project }
    }
    fn at(&self, rest: &str) -> String {
        format!("/v3/projects/{}/{rest}", self.project)
    }
    async fn must(&self, code: u16, method: &str, rest: &str, body: Value) -> Value {
        self.users.must(code, method, &self.at(rest), &body).await
    }
    async fn get(&self, rest: &str) -> Value {
        self.must(200, "GET", rest, Value::Null).await
    }
    /// The object in the cluster's API.
    async fn stored(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(vec![]).unwrap();
        self.users.downstream.admin().request(request).await.unwrap()
    }
    async fn ids(&self, who: &str, rest: &str) -> Vec<String> {
        let ids = self.users.ids(who, &self.at(rest)).await;
        ids.into_iter().filter(|id| id.contains(":apps:")).collect()
    }
}

fn body(name: &str, more: Value) -> Value {
    let containers = json!([{"name": "main", "image": "nginx", "environment": {"A": "1"},
        "ports": [{"containerPort": 80, "protocol": "TCP", "kind": "ClusterIP"}]}]);
    let mut body = json!({"name": name, "namespaceId": "apps", "containers": containers});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "the steps of one story, in their order")]
async fn workloads_of_every_kind_are_created_listed_together_changed_and_deleted() {
    let world = WorkloadWorld::start().await;
    let kinds = [
        ("deployment", "deployments", json!({"scale": 2})),
        ("daemonset", "daemonSets", json!({"daemonSetConfig": {"minReadySeconds": 1}})),
        ("statefulset", "statefulSets", json!({"statefulSetConfig": {"serviceName": "s"}})),
        ("replicaset", "replicaSets", json!({"replicaSetConfig": {"minReadySeconds": 1}})),
        ("job", "jobs", json!({"jobConfig": {"backoffLimit": 1}})),
        ("cronjob", "cronJobs", json!({"cronJobConfig": {"schedule": "* * * * *"}})),
    ];
    for (prefix, plural, more) in &kinds {
        let made = world.must(201, "POST", "workloads", body("web", more.clone())).await;
        let id = format!("{prefix}:apps:web");
        assert_eq!(made["id"], id);
        assert_eq!(made["type"].as_str().unwrap().to_lowercase(), *prefix);
        assert_eq!(
            (&made["baseType"], &made["projectId"]),
            (&json!("workload"), &json!(world.project))
        );
        for (key, value) in more.as_object().unwrap() {
            let sent = value.as_object();
            let same = sent.map_or(made[key] == *value, |sent| {
                sent.iter().all(|(inner, value)| made[key][inner] == *value)
            });
            assert!(same, "{key}: {made}");
        }
        // By its own type, with and without the kind in the id.
        for path in
            [format!("{plural}/{id}"), format!("{plural}/apps:web"), format!("workloads/{id}")]
        {
            let shown = world.get(&path).await;
            assert_eq!(shown["containers"][0]["environment"], json!({"A": "1"}), "{path}");
            assert!(
                shown["links"]["self"].as_str().unwrap().ends_with(&format!("/workloads/{id}"))
            );
        }
        assert_eq!(world.ids(OWNER, plural).await, [id]);
    }
    let mut all: Vec<_> = kinds.iter().map(|(prefix, _, _)| format!("{prefix}:apps:web")).collect();
    all.sort();
    for who in [OWNER, READER] {
        assert_eq!(world.ids(who, "workloads").await, all, "{who}");
    }
    let path = world.at("workloads/deployment:apps:web");
    world.users.must_as(READER, 200, "GET", &path, &Value::Null).await;
    world.users.must_as(READER, 403, "PUT", &path, &json!({"scale": 1})).await;
    world.users.must_as(READER, 403, "POST", &format!("{path}?action=redeploy"), &json!({})).await;
    world.users.must_as(READER, 403, "POST", &world.at("workloads"), &body("x", json!({}))).await;
    world.users.must_as(MEMBER, 403, "GET", &world.at("workloads"), &Value::Null).await;
    for odd in [
        "workloads/apps:web",
        "workloads/pod:apps:web",
        "deployments/job:apps:web",
        "workloads/deployment:apps:none",
        "workloads/deployment:default:web",
    ] {
        world.must(404, "GET", odd, Value::Null).await;
    }

    let stored = world.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
    let label = json!({"workload.user.cattle.io/workloadselector": "deployment-apps-web"});
    assert_eq!(stored["spec"]["selector"]["matchLabels"], label);
    assert_eq!(stored["metadata"]["annotations"]["field.cattle.io/creatorId"], OWNER);
    let note = &stored["spec"]["template"]["metadata"]["annotations"]["field.cattle.io/ports"];
    assert!(note.as_str().unwrap().contains("\"dnsName\":\"web\""), "{note}");

    // A client sends the whole response back, with one change.
    let mut sent = world.get("workloads/deployment:apps:web").await;
    sent["containers"][0]["image"] = "nginx:2".into();
    let changed = world.must(200, "PUT", "workloads/deployment:apps:web", sent).await;
    assert_eq!(
        (&changed["containers"][0]["image"], &changed["scale"]),
        (&json!("nginx:2"), &json!(2))
    );
    let mut expected = stored;
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2".into();
    let now = world.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
    assert_eq!(now["spec"], expected["spec"]);
    let refused =
        world.must(422, "PUT", "workloads/deployment:apps:web", json!({"containers": 1})).await;
    assert_eq!(refused["fieldName"], "containers");

    for (prefix, _, _) in &kinds {
        let path = world.at(&format!("workloads/{prefix}:apps:web"));
        let (status, response) = world.users.request(OWNER, "DELETE", &path, &Value::Null).await;
        assert!([200, 204].contains(&status), "{response}");
    }
    assert_eq!(world.ids(OWNER, "workloads").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_is_paused_resumed_redeployed_and_rolled_back() {
    let world = WorkloadWorld::start().await;
    world.must(201, "POST", "workloads", body("web", json!({}))).await;
    let path = "workloads/deployment:apps:web";
    let act = async |code: u16, name: &str, input: Value| {
        world.must(code, "POST", &format!("{path}?action={name}"), input).await
    };
    let shown = world.get(path).await;
    for name in ["pause", "resume", "redeploy", "rollback"] {
        let url = shown["actions"][name].as_str().unwrap();
        assert!(url.ends_with(&format!("{path}?action={name}")), "{url}");
    }
    act(422, "resume", json!({})).await;
    act(200, "pause", json!({})).await;
    let shown = world.get(path).await;
    assert_eq!((&shown["paused"], &shown["state"]), (&json!(true), &json!("paused")));
    act(422, "pause", json!({})).await;
    act(200, "resume", json!({})).await;
    act(200, "redeploy", json!({})).await;
    let shown = world.get(path).await;
    assert!(shown["annotations"]["cattle.io/timestamp"].is_string(), "{shown}");
    assert_eq!(shown["paused"], false);

    // The ReplicaSet that a cluster's controllers would have created for an earlier revision.
    let stored = world.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
    let mut template = stored["spec"]["template"].clone();
    template["spec"]["containers"][0]["image"] = "nginx:old".into();
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": stored["metadata"]["uid"], "controller": true}]},
        "spec": {"selector": stored["spec"]["selector"], "template": template}});
    let request = http::Request::post("/apis/apps/v1/namespaces/apps/replicasets")
        .header("content-type", "application/json")
        .body(set.to_string().into_bytes());
    let _: Value = world.users.downstream.admin().request(request.unwrap()).await.unwrap();
    assert_eq!(world.ids(OWNER, "workloads").await, ["deployment:apps:web"]);
    let revisions = world.get(&format!("{path}/revisions")).await;
    assert_eq!(revisions["data"][0]["id"], "replicaset:apps:web-1");
    act(422, "rollback", json!({})).await;
    act(422, "rollback", json!({"replicaSetId": "replicaset:apps:other"})).await;
    act(200, "rollback", json!({"replicaSetId": "replicaset:apps:web-1"})).await;
    let shown = world.get(path).await;
    assert_eq!(shown["containers"][0]["image"], "nginx:old");
    // Annotations of the template remain.
    assert!(shown["annotations"]["cattle.io/timestamp"].is_string(), "{shown}");
    world.must(201, "POST", "jobs", body("once", json!({}))).await;
    assert_eq!(world.get("workloads/job:apps:once").await["actions"], json!({}));
    world.must(404, "POST", "workloads/job:apps:once?action=redeploy", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_in_the_source_of_a_volume_comes_back_and_changes_nothing() {
    let world = WorkloadWorld::start().await;
    let volumes = json!([{"name": "v", "cinder": {"volumeID": "x", "readOnly": "false"}}]);
    let made =
        world.must(201, "POST", "workloads", body("disk", json!({"volumes": volumes}))).await;
    let source = json!({"volumeID": "x", "readOnly": false});
    assert_eq!(made["volumes"][0]["cinder"], source, "{made}");
    let path = "workloads/deployment:apps:disk";
    let shown = world.get(path).await;
    assert_eq!(shown["volumes"][0]["cinder"], source, "{shown}");
    let stored = "/apis/apps/v1/namespaces/apps/deployments/disk";
    let before = world.stored(stored).await;
    world.must(200, "PUT", path, shown).await;
    let after = world.stored(stored).await;
    assert_eq!(
        before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"],
        "{after}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_names_its_workload() {
    let world = WorkloadWorld::start().await;
    let made = world.must(201, "POST", "pods", body("alone", json!({}))).await;
    assert_eq!((&made["id"], &made["workloadId"]), (&json!("apps:alone"), &Value::Null));
    // Without its owner the pod would be garbage collected.
    let set = world.must(201, "POST", "replicaSets", body("web-5d9", json!({}))).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-5d9-x", "labels": {"pod-template-hash": "5d9"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9",
                "uid": set["uuid"], "controller": true}]},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
    let request = http::Request::post("/api/v1/namespaces/apps/pods")
        .header("content-type", "application/json")
        .body(pod.to_string().into_bytes());
    let _: Value = world.users.downstream.admin().request(request.unwrap()).await.unwrap();
    let shown = world.get("pods/apps:web-5d9-x").await;
    assert_eq!(shown["workloadId"], "deployment:apps:web");
    assert_eq!(shown["containers"][0]["state"], "unknown");
    let of = world.get("pods?workloadId=deployment:apps:web").await;
    assert_eq!(of["data"].as_array().unwrap().len(), 1, "{of}");
    assert_eq!(of["data"][0]["id"], "apps:web-5d9-x");
    assert!(world.project.starts_with(CLUSTER));
}
