//! Objects in the namespaces of a project.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::users::{CLUSTER, GUEST, MEMBER, NOBODY, OWNER, READER, Users};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_shows_the_objects_in_its_namespaces_and_no_others() {
    let users = Users::start().await;
    let (one, two) = (users.project("one").await, users.project("two").await);
    for (namespace, project) in [("a1", &one), ("a2", &one), ("b1", &two)] {
        users.namespace(namespace, project).await;
        let path = format!("/v3/projects/{project}/configMaps");
        let body = json!({"name": "app.conf", "namespaceId": namespace, "data": {"k": "v"}});
        let made = users.must(201, "POST", &path, &body).await;
        assert_eq!(made["id"], format!("{namespace}:app.conf"));
        assert_eq!(
            (&made["projectId"], &made["data"], &made["namespaceId"]),
            (&json!(project), &body["data"], &json!(namespace))
        );
    }
    let at = |project: &str, rest: &str| format!("/v3/projects/{project}/configmaps{rest}");
    let is = |ids: Vec<String>, expected: &[&str]| {
        let ids: Vec<_> = ids.into_iter().filter(|id| id.ends_with(":app.conf")).collect();
        assert_eq!(ids, expected);
    };
    is(users.ids(OWNER, &at(&one, "")).await, &["a1:app.conf", "a2:app.conf"]);
    is(users.ids(OWNER, &at(&one, "?namespaceId=a2")).await, &["a2:app.conf"]);
    is(users.ids(OWNER, &at(&one, "?namespaceId=b1")).await, &[]);
    is(users.ids(READER, &at(&two, "")).await, &["b1:app.conf"]);
    // Outside of the project: not found by id, and no object can be created there.
    let elsewhere = at(&one, "/b1:app.conf");
    for method in ["GET", "PUT", "DELETE"] {
        users.must(404, method, &elsewhere, &json!({"data": {}})).await;
    }
    for namespace in ["b1", "default", "none"] {
        let body = json!({"name": "x", "namespaceId": namespace, "projectId": two});
        let response = users.must(422, "POST", &at(&one, ""), &body).await;
        assert_eq!(
            (&response["code"], &response["fieldName"]),
            (&json!("InvalidReference"), &json!("namespaceId"))
        );
    }
    let own = at(&one, "/a1:app.conf");
    let body = json!({"data": {"k": "w"}, "labels": {"x": "y"}});
    let changed = users.must(200, "PUT", &own, &body).await;
    assert_eq!((&changed["data"], &changed["labels"]["x"]), (&body["data"], &json!("y")));
    users.must_as(READER, 200, "GET", &own, &Value::Null).await;
    users.must_as(READER, 403, "PUT", &own, &body).await;
    for who in [MEMBER, NOBODY] {
        users.must_as(who, 403, "GET", &at(&one, ""), &Value::Null).await;
        users.must_as(who, 403, "GET", &own, &Value::Null).await;
    }
    // Fields that the view adds are not in the cluster.
    let stored: Value = users
        .downstream
        .admin()
        .request(
            http::Request::get("/api/v1/namespaces/a1/configmaps/app.conf").body(vec![]).unwrap(),
        )
        .await
        .unwrap();
    assert_eq!((&stored["data"]["k"], stored.get("projectId")), (&json!("w"), None));

    // A namespace takes its objects along.
    let action = format!("/v3/clusters/{CLUSTER}/namespaces/a2?action=move");
    users.must(204, "POST", &action, &json!({"projectId": two})).await;
    is(users.ids(OWNER, &at(&one, "")).await, &["a1:app.conf"]);
    is(users.ids(OWNER, &at(&two, "")).await, &["a2:app.conf", "b1:app.conf"]);
    users.must(404, "GET", &at(&one, "/a2:app.conf"), &Value::Null).await;
    users.must(200, "GET", &at(&two, "/a2:app.conf"), &Value::Null).await;
    users.must(204, "DELETE", &own, &Value::Null).await;
    users.must(404, "GET", &own, &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_some_namespaces_see_the_contents_of_those() {
    let users = Users::start().await;
    let project = users.project("one").await;
    let path = format!("/v3/projects/{project}/configMaps");
    // More than are read individually.
    for at in 0..20 {
        let namespace = format!("n{at:02}");
        users.namespace(&namespace, &project).await;
        users.must(201, "POST", &path, &json!({"name": "m", "namespaceId": namespace})).await;
    }
    let mine = |ids: Vec<String>| ids.into_iter().filter(|id| id.ends_with(":m")).count();
    assert_eq!(mine(users.ids(OWNER, &path).await), 20);
    assert_eq!(users.ids(GUEST, &path).await, Vec::<String>::new());
    let names: Vec<String> = (0..18).map(|at| format!("n{at:02}")).collect();
    let admin = users.downstream.admin();
    let subject = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": GUEST}]);
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "guest"});
    let make = async |kind: &str, namespace: Option<&str>, body: Value| {
        let gvk = kube::core::GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let resource = kube::api::ApiResource::from_gvk(&gvk);
        let api: Api<kube::api::DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(admin.clone(), namespace, &resource),
            None => Api::all_with(admin.clone(), &resource),
        };
        let mut body = body;
        body["metadata"] = json!({"name": "guest"});
        body["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        body["kind"] = kind.into();
        let object = serde_json::from_value(body).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    };
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"], "resourceNames": names}]);
    make("ClusterRole", None, json!({"rules": rules})).await;
    make("ClusterRoleBinding", None, json!({"roleRef": role("ClusterRole"), "subjects": subject}))
        .await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    // One of them has a role in a namespace that they may not see.
    for namespace in ["n01", "n17", "n19"] {
        make("Role", Some(namespace), json!({"rules": rules})).await;
        make("RoleBinding", Some(namespace), json!({"roleRef": role("Role"), "subjects": subject}))
            .await;
    }
    let seen = test_kit::eventually("the guest's rights", async || {
        let ids = users.ids(GUEST, &path).await;
        let ids: Vec<String> = ids.into_iter().filter(|id| id.ends_with(":m")).collect();
        if ids.is_empty() { Err(ids) } else { Ok(ids) }
    })
    .await;
    assert_eq!(seen, ["n01:m", "n17:m"]);
    users.must_as(GUEST, 404, "GET", &format!("{path}/n19:m"), &Value::Null).await;
    users.must_as(GUEST, 403, "GET", &format!("{path}/n02:m"), &Value::Null).await;
}

/// A certificate and its key, without the surrounding whitespace that input loses.
pub fn certificate() -> (String, String) {
    let now = std::time::SystemTime::now();
    let authority = pki::CertificateAuthority::generate("authority", now).unwrap();
    let issued = authority.issue_serving("web.example", &["web.example".to_owned()], now).unwrap();
    (issued.certificate_pem.trim().to_owned(), issued.key_pem.trim().to_owned())
}

/// Whether the response has all sent fields, except those that are never shown.
pub fn holds(response: &Value, sent: &Value, secret: &[&str]) {
    for (field, value) in sent.as_object().unwrap() {
        if secret.contains(&field.as_str()) {
            assert!(response.get(field).is_none(), "{field}: {response}");
        } else {
            assert!(includes(&response[field], value), "{field}: {value} in {response}");
        }
    }
}

/// Nested types come with their defaults.
fn includes(response: &Value, sent: &Value) -> bool {
    match (response, sent) {
        (Value::Object(response), Value::Object(sent)) => sent
            .iter()
            .all(|(key, value)| response.get(key).is_some_and(|found| includes(found, value))),
        (Value::Array(response), Value::Array(sent)) => {
            response.len() == sent.len() && response.iter().zip(sent).all(|(a, s)| includes(a, s))
        }
        _ => response == sent,
    }
}

async fn stored(users: &Users, path: &str) -> Value {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    users.downstream.admin().request(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "the steps of one story, in their order")]
async fn services_ingresses_claims_and_autoscalers_survive_a_round_trip() {
    let users = Users::start().await;
    let project = users.project("one").await;
    users.namespace("apps", &project).await;
    let at = |plural: &str| format!("/v3/projects/{project}/{plural}");
    let make = async |plural: &str, mut body: Value| {
        body["namespaceId"] = "apps".into();
        let made = users.must(201, "POST", &at(plural), &body).await;
        holds(&made, &body, &[]);
        let own = at(&format!("{plural}/apps:{}", body["name"].as_str().unwrap()));
        holds(&users.must(200, "GET", &own, &Value::Null).await, &body, &[]);
        made
    };
    make(
        "services",
        json!({
            "name": "web", "kind": "NodePort", "selector": {"app": "web"}, "description": "the web",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        }),
    )
    .await;
    make("dnsRecords", json!({"name": "pods", "selector": {"app": "web"}})).await;
    make("dnsRecords", json!({"name": "outside", "hostname": "db.example.org"})).await;
    let spec = stored(&users, "/api/v1/namespaces/apps/services/outside").await;
    assert_eq!(spec["spec"]["type"], "ExternalName");
    let spec = stored(&users, "/api/v1/namespaces/apps/services/pods").await;
    assert_eq!(
        (&spec["spec"]["clusterIP"], &spec["spec"]["type"]),
        (&json!("None"), &json!("ClusterIP"))
    );
    for (body, code) in [
        (json!({"name": "none"}), "MissingRequired"),
        (json!({"name": "both", "hostname": "a.b", "selector": {"a": "b"}}), "InvalidOption"),
        (json!({"name": "ip", "ipAddresses": ["192.0.2.1"]}), "InvalidOption"),
        (json!({"name": "work", "targetWorkloadIds": ["deployment:apps:web"]}), "InvalidOption"),
    ] {
        let mut body = body;
        body["namespaceId"] = "apps".into();
        let response = users.must(422, "POST", &at("dnsrecords"), &body).await;
        assert_eq!(response["code"], code, "{response}");
    }
    let changed = json!({"selector": {"app": "web"}});
    users.must(422, "PUT", &at("dnsrecords/apps:outside"), &changed).await;

    make(
        "persistentVolumeClaims",
        json!({
            "name": "data", "accessModes": ["ReadWriteOnce"], "storageClassId": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        }),
    )
    .await;
    let claims = users.must(200, "GET", &at("persistentvolumeclaims"), &Value::Null).await;
    assert_eq!(claims["data"][0]["state"], "pending", "{claims}");

    let made = make("ingresses", json!({
        "name": "web.example", "ingressClassName": "main",
        "rules": [{"host": "web.example", "paths": [
            {"path": "/", "pathType": "Prefix", "serviceId": "apps:web", "targetPort": 80},
            {"path": "/named", "pathType": "Exact", "serviceId": "apps:web", "targetPort": "http"},
        ]}],
        "defaultBackend": {"serviceId": "apps:web", "targetPort": 80},
        "tls": [{"certificateId": "apps:tls", "hosts": ["web.example"]}],
    })).await;
    assert_eq!((&made["state"], &made["transitioning"]), (&json!("initializing"), &json!("yes")));
    let one = json!({"rules": [{"host": "x.example", "paths": [{"path": "/x", "serviceId": "apps:web", "targetPort": 80}]}]});
    let changed = users.must(200, "PUT", &at("ingresses/apps:web.example"), &one).await;
    assert_eq!(changed["rules"][0]["paths"][0]["pathType"], "ImplementationSpecific");
    assert_eq!(changed["tls"][0]["certificateId"], "apps:tls", "left alone: {changed}");
    for (rules, code) in [
        (json!([{"paths": [{"serviceId": "other:web", "targetPort": 80}]}]), "InvalidReference"),
        (
            json!([{"paths": [{"workloadIds": ["deployment:apps:web"], "targetPort": 80}]}]),
            "InvalidOption",
        ),
    ] {
        let response = users
            .must(422, "PUT", &at("ingresses/apps:web.example"), &json!({"rules": rules}))
            .await;
        assert_eq!(response["code"], code, "{response}");
    }

    make("horizontalPodAutoscalers", json!({
        "name": "web", "workloadId": "deployment:apps:web", "minReplicas": 2, "maxReplicas": 5,
        "metrics": [
            {"type": "Resource", "name": "cpu", "target": {"type": "Utilization", "utilization": 60}},
            {"type": "Pods", "name": "requests", "selector": {"matchLabels": {"a": "b"}},
             "target": {"type": "AverageValue", "averageValue": "10"}},
            {"type": "Object", "name": "load", "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"},
             "target": {"type": "Value", "value": "3"}},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    })).await;
    let wrong = json!({"name": "x", "namespaceId": "apps", "workloadId": "deployment:other:web", "maxReplicas": 2});
    let response = users.must(422, "POST", &at("horizontalpodautoscalers"), &wrong).await;
    assert_eq!(
        (&response["code"], &response["fieldName"]),
        (&json!("InvalidReference"), &json!("workloadId"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "the steps of one story, in their order")]
async fn secrets_of_a_namespace_are_shown_by_their_kind_without_what_is_secret() {
    let users = Users::start().await;
    let project = users.project("one").await;
    users.namespace("apps", &project).await;
    let (certificate, key) = certificate();
    let at = |plural: &str| format!("/v3/projects/{project}/{plural}");
    let bodies = [
        (
            "namespacedBasicAuths",
            json!({"name": "basic", "username": "ann", "password": "p w"}),
            vec!["password"],
        ),
        ("namespacedSshAuths", json!({"name": "ssh", "privateKey": "KEY"}), vec!["privateKey"]),
        (
            "namespacedCertificates",
            json!({"name": "tls", "certs": certificate, "key": key}),
            vec!["key"],
        ),
        (
            "namespacedDockerCredentials",
            json!({"name": "docker", "registries": {"r.example": {"username": "ann", "email": "a@b"}}}),
            vec![],
        ),
        (
            "namespacedSecrets",
            json!({"name": "plain", "data": {"k": "dg=="}, "description": "d"}),
            vec![],
        ),
    ];
    for (plural, mut body, secret) in bodies {
        body["namespaceId"] = "apps".into();
        let made = users.must(201, "POST", &at(plural), &body).await;
        holds(&made, &body, &secret);
        let id = made["id"].as_str().unwrap().to_owned();
        assert_eq!(made["baseType"], "namespacedSecret");
        let own = at(&format!("{plural}/{id}"));
        holds(&users.must_as(READER, 200, "GET", &own, &Value::Null).await, &body, &secret);
        let list = users.ids(OWNER, &at(plural)).await;
        match plural {
            "namespacedSecrets" => assert!(list.len() >= 5, "{list:?}"),
            _ => assert_eq!(list, std::slice::from_ref(&id)),
        }
        if plural != "namespacedSecrets" {
            // An object of another kind is not found, whatever its name.
            let other = if plural == "namespacedSshAuths" {
                "namespacedBasicAuths"
            } else {
                "namespacedSshAuths"
            };
            for method in ["GET", "PUT", "DELETE"] {
                users.must(404, method, &at(&format!("{other}/{id}")), &json!({})).await;
            }
        }
    }
    let text = async |name: &str, key: &str| {
        let secret = stored(&users, &format!("/api/v1/namespaces/apps/secrets/{name}")).await;
        let bytes = secret["data"][key].as_str().unwrap_or_else(|| panic!("{secret}"));
        String::from_utf8(STANDARD.decode(bytes).unwrap()).unwrap()
    };
    assert_eq!(text("basic", "password").await, "p w");
    assert_eq!(text("ssh", "ssh-privatekey").await, "KEY\n");
    users
        .must(200, "PUT", &at("namespacedbasicauths/apps:basic"), &json!({"username": "bob"}))
        .await;
    assert_eq!(
        (text("basic", "username").await, text("basic", "password").await),
        ("bob".into(), "p w".into())
    );

    let docker = at("namespaceddockercredentials/apps:docker");
    let with = |entry: Value| json!({"registries": {"r.example": entry}});
    users.must(200, "PUT", &docker, &with(json!({"username": "ann", "password": "secret"}))).await;
    users.must(200, "PUT", &docker, &with(json!({"username": "ann"}))).await;
    let config: Value = serde_json::from_str(&text("docker", ".dockerconfigjson").await).unwrap();
    let entry = &config["auths"]["r.example"];
    assert_eq!(
        (&entry["password"], &entry["auth"]),
        (&json!("secret"), &json!("YW5uOnNlY3JldA=="))
    );
    users.must(200, "PUT", &docker, &with(json!({"username": "bob"}))).await;
    let config: Value = serde_json::from_str(&text("docker", ".dockerconfigjson").await).unwrap();
    assert_eq!(
        config["auths"]["r.example"],
        json!({"username": "bob"}),
        "no password of somebody else"
    );

    let shown = users.must(200, "GET", &at("namespacedcertificates/apps:tls"), &Value::Null).await;
    assert_eq!((&shown["version"], &shown["algorithm"]), (&json!("3"), &json!("ECDSA")), "{shown}");
    assert!(shown["subjectAlternativeNames"].to_string().contains("web.example"), "{shown}");
    assert!(shown["expiresAt"].as_str().unwrap().ends_with('Z'));
    let kinds = users.must(200, "GET", &at("namespacedsecrets"), &Value::Null).await;
    let kinds: Vec<_> =
        kinds["data"].as_array().unwrap().iter().map(|s| s["kind"].clone()).collect();
    assert!(kinds.contains(&json!("sshAuth")) && kinds.contains(&json!("Opaque")), "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_has_no_apps_and_none_can_be_created() {
    let users = Users::start().await;
    let apps = format!("/v3/projects/{}/apps", users.project("one").await);
    let list = users.must_as(OWNER, 200, "GET", &apps, &Value::Null).await;
    assert_eq!((&list["type"], &list["data"]), (&json!("collection"), &json!([])));
    users.must_as(OWNER, 404, "GET", &format!("{apps}/p-1:demo"), &Value::Null).await;
    let app = json!({"name": "demo", "externalId": "catalog://?catalog=a&template=b&version=1"});
    users.must_as(OWNER, 405, "POST", &apps, &app).await;
    users.must_as(NOBODY, 403, "GET", &apps, &Value::Null).await;
    users.must_as(NOBODY, 403, "GET", &format!("{apps}/p-1:demo"), &Value::Null).await;
}
