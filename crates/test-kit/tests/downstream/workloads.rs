//! Workloads of a project: all kinds alone and together, in the flattened form.

use serde_json::{Value, json};

use super::people::{CLUSTER, MEMBER, OWNER, People, READER};

struct Place {
    people: People,
    project: String,
}

impl Place {
    async fn start() -> Self {
        let people = People::start().await;
        let project = people.project("apps").await;
        people.namespace("apps", &project).await;
        Self { people, project }
    }
    fn at(&self, rest: &str) -> String {
        format!("/v3/projects/{}/{rest}", self.project)
    }
    async fn must(&self, code: u16, method: &str, rest: &str, body: Value) -> Value {
        self.people.must(code, method, &self.at(rest), &body).await
    }
    async fn get(&self, rest: &str) -> Value {
        self.must(200, "GET", rest, Value::Null).await
    }
    /// The object as the cluster has it.
    async fn stored(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(vec![]).unwrap();
        self.people.downstream.admin().request(request).await.unwrap()
    }
    async fn ids(&self, who: &str, rest: &str) -> Vec<String> {
        let ids = self.people.ids(who, &self.at(rest)).await;
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
async fn workloads_of_every_kind_are_made_listed_together_changed_and_removed() {
    let place = Place::start().await;
    let kinds = [
        ("deployment", "deployments", json!({"scale": 2})),
        ("daemonset", "daemonSets", json!({"daemonSetConfig": {"minReadySeconds": 1}})),
        ("statefulset", "statefulSets", json!({"statefulSetConfig": {"serviceName": "s"}})),
        ("replicaset", "replicaSets", json!({"replicaSetConfig": {"minReadySeconds": 1}})),
        ("job", "jobs", json!({"jobConfig": {"backoffLimit": 1}})),
        ("cronjob", "cronJobs", json!({"cronJobConfig": {"schedule": "* * * * *"}})),
    ];
    for (prefix, plural, more) in &kinds {
        let made = place.must(201, "POST", "workloads", body("web", more.clone())).await;
        let id = format!("{prefix}:apps:web");
        assert_eq!(made["id"], id);
        assert_eq!(made["type"].as_str().unwrap().to_lowercase(), *prefix);
        assert_eq!(
            (&made["baseType"], &made["projectId"]),
            (&json!("workload"), &json!(place.project))
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
            let shown = place.get(&path).await;
            assert_eq!(shown["containers"][0]["environment"], json!({"A": "1"}), "{path}");
            assert!(
                shown["links"]["self"].as_str().unwrap().ends_with(&format!("/workloads/{id}"))
            );
        }
        assert_eq!(place.ids(OWNER, plural).await, [id]);
    }
    let mut all: Vec<_> = kinds.iter().map(|(prefix, _, _)| format!("{prefix}:apps:web")).collect();
    all.sort();
    for who in [OWNER, READER] {
        assert_eq!(place.ids(who, "workloads").await, all, "{who}");
    }
    let path = place.at("workloads/deployment:apps:web");
    place.people.must_as(READER, 200, "GET", &path, &Value::Null).await;
    place.people.must_as(READER, 403, "PUT", &path, &json!({"scale": 1})).await;
    place.people.must_as(READER, 403, "POST", &format!("{path}?action=redeploy"), &json!({})).await;
    place.people.must_as(READER, 403, "POST", &place.at("workloads"), &body("x", json!({}))).await;
    place.people.must_as(MEMBER, 403, "GET", &place.at("workloads"), &Value::Null).await;
    for odd in [
        "workloads/apps:web",
        "workloads/pod:apps:web",
        "deployments/job:apps:web",
        "workloads/deployment:apps:none",
        "workloads/deployment:default:web",
    ] {
        place.must(404, "GET", odd, Value::Null).await;
    }

    let stored = place.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
    let label = json!({"workload.user.cattle.io/workloadselector": "deployment-apps-web"});
    assert_eq!(stored["spec"]["selector"]["matchLabels"], label);
    assert_eq!(stored["metadata"]["annotations"]["field.cattle.io/creatorId"], OWNER);
    let note = &stored["spec"]["template"]["metadata"]["annotations"]["field.cattle.io/ports"];
    assert!(note.as_str().unwrap().contains("\"dnsName\":\"web\""), "{note}");

    // A client sends all that it got, with one change.
    let mut sent = place.get("workloads/deployment:apps:web").await;
    sent["containers"][0]["image"] = "nginx:2".into();
    let changed = place.must(200, "PUT", "workloads/deployment:apps:web", sent).await;
    assert_eq!(
        (&changed["containers"][0]["image"], &changed["scale"]),
        (&json!("nginx:2"), &json!(2))
    );
    let mut expected = stored;
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2".into();
    let now = place.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
    assert_eq!(now["spec"], expected["spec"]);
    let refused =
        place.must(422, "PUT", "workloads/deployment:apps:web", json!({"containers": 1})).await;
    assert_eq!(refused["fieldName"], "containers");

    for (prefix, _, _) in &kinds {
        let path = place.at(&format!("workloads/{prefix}:apps:web"));
        let (status, answer) = place.people.ask(OWNER, "DELETE", &path, &Value::Null).await;
        assert!([200, 204].contains(&status), "{answer}");
    }
    assert_eq!(place.ids(OWNER, "workloads").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_is_paused_resumed_redeployed_and_rolled_back() {
    let place = Place::start().await;
    place.must(201, "POST", "workloads", body("web", json!({}))).await;
    let path = "workloads/deployment:apps:web";
    let act = async |code: u16, name: &str, input: Value| {
        place.must(code, "POST", &format!("{path}?action={name}"), input).await
    };
    let shown = place.get(path).await;
    for name in ["pause", "resume", "redeploy", "rollback"] {
        let url = shown["actions"][name].as_str().unwrap();
        assert!(url.ends_with(&format!("{path}?action={name}")), "{url}");
    }
    act(422, "resume", json!({})).await;
    act(200, "pause", json!({})).await;
    let shown = place.get(path).await;
    assert_eq!((&shown["paused"], &shown["state"]), (&json!(true), &json!("paused")));
    act(422, "pause", json!({})).await;
    act(200, "resume", json!({})).await;
    act(200, "redeploy", json!({})).await;
    let shown = place.get(path).await;
    assert!(shown["annotations"]["cattle.io/timestamp"].is_string(), "{shown}");
    assert_eq!(shown["paused"], false);

    // What the controllers of a cluster would make of an earlier revision.
    let stored = place.stored("/apis/apps/v1/namespaces/apps/deployments/web").await;
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
    let _: Value = place.people.downstream.admin().request(request.unwrap()).await.unwrap();
    assert_eq!(place.ids(OWNER, "workloads").await, ["deployment:apps:web"]);
    let revisions = place.get(&format!("{path}/revisions")).await;
    assert_eq!(revisions["data"][0]["id"], "replicaset:apps:web-1");
    act(422, "rollback", json!({})).await;
    act(422, "rollback", json!({"replicaSetId": "replicaset:apps:other"})).await;
    act(200, "rollback", json!({"replicaSetId": "replicaset:apps:web-1"})).await;
    let shown = place.get(path).await;
    assert_eq!(shown["containers"][0]["image"], "nginx:old");
    // Annotations of the template stay.
    assert!(shown["annotations"]["cattle.io/timestamp"].is_string(), "{shown}");
    place.must(201, "POST", "jobs", body("once", json!({}))).await;
    assert_eq!(place.get("workloads/job:apps:once").await["actions"], json!({}));
    place.must(404, "POST", "workloads/job:apps:once?action=redeploy", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_in_the_source_of_a_volume_comes_back_and_changes_nothing() {
    let place = Place::start().await;
    let volumes = json!([{"name": "v", "cinder": {"volumeID": "x", "readOnly": "false"}}]);
    let made =
        place.must(201, "POST", "workloads", body("disk", json!({"volumes": volumes}))).await;
    let source = json!({"volumeID": "x", "readOnly": false});
    assert_eq!(made["volumes"][0]["cinder"], source, "{made}");
    let path = "workloads/deployment:apps:disk";
    let shown = place.get(path).await;
    assert_eq!(shown["volumes"][0]["cinder"], source, "{shown}");
    let stored = "/apis/apps/v1/namespaces/apps/deployments/disk";
    let before = place.stored(stored).await;
    place.must(200, "PUT", path, shown).await;
    let after = place.stored(stored).await;
    assert_eq!(
        before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"],
        "{after}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_says_which_workload_it_is_of() {
    let place = Place::start().await;
    let made = place.must(201, "POST", "pods", body("alone", json!({}))).await;
    assert_eq!((&made["id"], &made["workloadId"]), (&json!("apps:alone"), &Value::Null));
    // Without its owner the pod would be collected.
    let set = place.must(201, "POST", "replicaSets", body("web-5d9", json!({}))).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-5d9-x", "labels": {"pod-template-hash": "5d9"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9",
                "uid": set["uuid"], "controller": true}]},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
    let request = http::Request::post("/api/v1/namespaces/apps/pods")
        .header("content-type", "application/json")
        .body(pod.to_string().into_bytes());
    let _: Value = place.people.downstream.admin().request(request.unwrap()).await.unwrap();
    let shown = place.get("pods/apps:web-5d9-x").await;
    assert_eq!(shown["workloadId"], "deployment:apps:web");
    assert_eq!(shown["containers"][0]["state"], "unknown");
    let of = place.get("pods?workloadId=deployment:apps:web").await;
    assert_eq!(of["data"].as_array().unwrap().len(), 1, "{of}");
    assert_eq!(of["data"][0]["id"], "apps:web-5d9-x");
    assert!(place.project.starts_with(CLUSTER));
}
