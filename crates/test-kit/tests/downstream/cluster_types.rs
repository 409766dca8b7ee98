//! Namespaces, volumes, storage classes, API services of a cluster.

use serde_json::{Value, json};

use super::users::{CLUSTER, GUEST, MEMBER, NOBODY, OWNER, READER, Users};

const NAMESPACES: &str = "/v3/clusters/c-one/namespaces";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_is_made_in_a_project_moved_and_removed() {
    let users = Users::start().await;
    let (one, two) = (users.project("one").await, users.project("two").await);
    let limit = json!({"limit": {"pods": "10"}});
    let body = json!({
        "name": "apps", "projectId": one, "description": "of the team", "labels": {"a": "b"},
        "resourceQuota": limit, "containerDefaultResourceLimit": {"limitsCpu": "1"},
    });
    let made = users.must(201, "POST", NAMESPACES, &body).await;
    for field in ["projectId", "description", "resourceQuota", "containerDefaultResourceLimit"] {
        assert_eq!(made[field], body[field], "{field}: {made}");
    }
    assert_eq!((&made["id"], &made["state"]), (&json!("apps"), &json!("active")));
    let own = format!("{NAMESPACES}/apps");
    let link = "https://drover.example/v3/cluster/c-one/namespaces/apps";
    assert_eq!(made["links"]["self"], link);
    assert_eq!(made["actions"]["move"], format!("{link}?action=move"));
    let labels = &users.must(200, "GET", &own, &Value::Null).await["labels"];
    assert_eq!(labels["field.cattle.io/projectId"], *one.rsplit(':').next().unwrap());

    // An update never moves an object; omitted labels are removed.
    let body = json!({
        "projectId": two, "labels": {"c": "d"}, "description": "ours",
        "annotations": {"field.cattle.io/projectId": two, "note": "x"},
    });
    let changed = users.must(200, "PUT", &own, &body).await;
    assert_eq!((&changed["projectId"], &changed["description"]), (&json!(one), &json!("ours")));
    assert_eq!((&changed["labels"]["a"], &changed["labels"]["c"]), (&Value::Null, &json!("d")));
    assert_eq!(changed["annotations"]["note"], "x");
    assert_eq!(changed["resourceQuota"], limit);

    let to = |project: &str| json!({ "projectId": project });
    let action = format!("{own}?action=move");
    users.must(204, "POST", &action, &to(&two)).await;
    let moved = users.must(200, "GET", &own, &Value::Null).await;
    assert_eq!(moved["projectId"], two);
    assert_eq!(moved["labels"]["field.cattle.io/projectId"], *two.rsplit(':').next().unwrap());
    for wrong in ["c-one:p-none", "local:p-x", "p-x", "c-one:../x", &format!("{one}:x")] {
        for (method, path, body) in [
            ("POST", action.as_str(), to(wrong)),
            ("POST", NAMESPACES, json!({"name": "other", "projectId": wrong})),
        ] {
            let response = users.must(422, method, path, &body).await;
            assert_eq!(response["code"], "InvalidReference", "{wrong}: {response}");
            assert_eq!(response["fieldName"], "projectId");
        }
    }
    users.must(204, "POST", &action, &to("")).await;
    let out = users.must(200, "GET", &own, &Value::Null).await;
    assert_eq!(out["projectId"], Value::Null);
    assert!(out["labels"].get("field.cattle.io/projectId").is_none(), "{out}");

    let list = users.ids(OWNER, &format!("{NAMESPACES}?name=apps")).await;
    assert_eq!(list, ["apps"]);
    let (status, response) = users.request(OWNER, "DELETE", &own, &Value::Null).await;
    assert!(status == 204 || response["state"] == "removing", "{status}: {response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_everybody_sees_and_does_what_their_roles_there_allow() {
    let users = Users::start().await;
    let project = users.project("one").await;
    users.namespace("apps", &project).await;
    let own = format!("{NAMESPACES}/apps");
    let body = json!({"labels": {"x": "y"}});
    assert!(users.ids(READER, NAMESPACES).await.contains(&"apps".to_owned()));
    for who in [MEMBER, GUEST] {
        assert_eq!(users.ids(who, NAMESPACES).await, Vec::<String>::new(), "{who}");
        users.must_as(who, 403, "GET", &own, &Value::Null).await;
    }
    for who in [READER, MEMBER, GUEST] {
        for (method, path, body) in [
            ("POST", NAMESPACES, json!({"name": "mine"})),
            ("PUT", own.as_str(), body.clone()),
            ("DELETE", own.as_str(), Value::Null),
        ] {
            let response = users.must_as(who, 403, method, path, &body).await;
            assert_eq!(response["code"], "Forbidden", "{who}: {response}");
        }
    }
    let action = format!("{own}?action=move");
    users.must_as(READER, 403, "POST", &action, &json!({"projectId": project})).await;
    users.must_as(MEMBER, 404, "POST", &action, &json!({"projectId": project})).await;
    // Users without a role in the cluster learn neither its contents nor whether it is reachable.
    for path in [NAMESPACES, &own, "/v3/clusters/c-one/storageclasses"] {
        for connected in [true, false] {
            users.connect(connected);
            users.must_as(NOBODY, 403, "GET", path, &Value::Null).await;
        }
    }
    users.connect(true);
    for path in ["/v3/clusters/c-two/namespaces", "/v3/clusters/c-two/namespaces/x"] {
        users.must(403, "GET", path, &Value::Null).await;
    }
    for id in ["a%2Fb", "a:b", "..", "a%00b", "A%20b", "%E2%98%83"] {
        let path = format!("{NAMESPACES}/{id}");
        assert!([404, 403].contains(&users.get(OWNER, &path).await.0), "{path}");
    }
    users.must(404, "GET", "/v3/clusters/C%20one/namespaces", &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_and_api_services_of_a_cluster_are_data_of_kubernetes() {
    let users = Users::start().await;
    let at = |plural: &str| format!("/v3/clusters/{CLUSTER}/{plural}");
    let class = json!({
        "name": "fast", "provisioner": "example.org/disk", "reclaimPolicy": "Retain",
        "parameters": {"kind": "ssd"}, "description": "fast ones",
    });
    let made = users.must(201, "POST", &at("storageClasses"), &class).await;
    for (field, sent) in class.as_object().unwrap() {
        assert_eq!(made[field], *sent, "{made}");
    }
    let volume = json!({
        "name": "disk.one", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassId": "fast", "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/data", "kind": "DirectoryOrCreate"},
    });
    let made = users.must(201, "POST", &at("persistentvolumes"), &volume).await;
    for (field, sent) in volume.as_object().unwrap() {
        assert_eq!(made[field], *sent, "{made}");
    }
    let cinder = json!({
        "name": "disk.two", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "cinder": {"volumeID": "v", "readOnly": "false"},
    });
    let shown = users.must(201, "POST", &at("persistentvolumes"), &cinder).await;
    assert_eq!(shown["cinder"], json!({"volumeID": "v", "readOnly": false}), "{shown}");
    let own = format!("{}/disk.two", at("persistentvolumes"));
    let shown = users.must(200, "GET", &own, &Value::Null).await;
    assert_eq!(shown["cinder"]["readOnly"], false, "{shown}");
    users.request(OWNER, "DELETE", &own, &Value::Null).await;
    let link = made["links"]["self"].as_str().unwrap();
    let shown = users.must(200, "GET", &at("storageclasses/fast"), &Value::Null).await;
    let volumes = shown["links"]["persistentVolumes"].as_str().unwrap();
    let found = users.ids(OWNER, volumes.strip_prefix("https://drover.example").unwrap()).await;
    assert_eq!(found, ["disk.one"], "{volumes}");
    let own = link.strip_prefix("https://drover.example").unwrap();
    let changed = users.must(200, "PUT", own, &json!({"capacity": {"storage": "2Gi"}})).await;
    assert_eq!(changed["capacity"]["storage"], "2Gi");
    assert_eq!(changed["hostPath"]["kind"], "DirectoryOrCreate");
    assert_eq!(users.ids(MEMBER, &at("persistentvolumes")).await, ["disk.one"]);
    users.must_as(MEMBER, 403, "DELETE", own, &Value::Null).await;
    users.request(OWNER, "DELETE", own, &Value::Null).await;

    let service = json!({
        "name": "v1.lamps.example.org", "group": "lamps.example.org", "version": "v1",
        "groupPriorityMinimum": 100, "versionPriority": 10, "insecureSkipTLSVerify": true,
        "service": {"namespace": "default", "name": "lamps", "port": 443},
    });
    let made = users.must(201, "POST", &at("apiServices"), &service).await;
    for (field, sent) in service.as_object().unwrap() {
        assert_eq!(made[field], *sent, "{made}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_does_not_respond_is_unavailable_and_concurrent_writes_are_atomic() {
    let users = Users::start().await;
    let project = users.project("one").await;
    users.namespace("apps", &project).await;
    let own = format!("{NAMESPACES}/apps");
    // Each writer changes another label of the same object.
    let changes = (0..4).map(|at| {
        let (users, own) = (&users, own.as_str());
        let body = json!({"description": format!("{at}"), "containerDefaultResourceLimit": {"limitsCpu": format!("{at}")}});
        async move { users.must(200, "PUT", own, &body).await }
    });
    futures::future::join_all(changes).await;
    let shown = users.must(200, "GET", &own, &Value::Null).await;
    assert_eq!(shown["description"], shown["containerDefaultResourceLimit"]["limitsCpu"]);

    users.connect(false);
    let maps = format!("/v3/projects/{project}/configmaps");
    let map = json!({"name": "m", "namespaceId": "apps"});
    for (method, path, body) in [
        ("GET", NAMESPACES, Value::Null),
        ("GET", own.as_str(), Value::Null),
        ("POST", NAMESPACES, json!({"name": "new"})),
        ("PUT", own.as_str(), json!({"description": "x"})),
        ("DELETE", own.as_str(), Value::Null),
        ("GET", maps.as_str(), Value::Null),
        ("POST", maps.as_str(), map),
    ] {
        let response = users.must(503, method, path, &body).await;
        assert_eq!(response["code"], "ClusterUnavailable", "{method} {path}: {response}");
    }
    users.connect(true);
    users.must(200, "GET", &own, &Value::Null).await;
}
