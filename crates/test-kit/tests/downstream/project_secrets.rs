//! Secrets of whole projects: rights on them, and their copies in the project's namespaces.

use std::collections::BTreeMap;

use api_management::{Cluster, ClusterRoleTemplateBinding, Project, condition, keys};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::eventually;

use super::project_types::{certificate, holds};
use super::users::{CLUSTER, GUEST, MEMBER, NOBODY, OWNER, READER, Users};

/// Creates a Secret of a project, as soon as its namespace and the owner's rights in it exist.
async fn make(users: &Users, project: &str, plural: &str, body: &Value) -> Value {
    let path = format!("/v3/projects/{project}/{plural}");
    eventually("the project's namespace", async || {
        match users.request(OWNER, "POST", &path, body).await {
            (201, made) => Ok(made),
            (status @ (403 | 422), response) => Err((status, response)),
            other => panic!("{other:?}"),
        }
    })
    .await
}

fn name_of(project: &str) -> &str {
    project.split_once(':').unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_a_project_are_readable_by_users_with_the_right_in_its_cluster() {
    let users = Users::start().await;
    let (one, two) = (users.project("one").await, users.project("two").await);
    let (certificate, key) = certificate();
    let docker = json!({"r.example": {"username": "ann", "password": "p"}});
    let bodies = [
        ("basicAuths", json!({"name": "basic", "username": "ann", "password": "p"}), "password"),
        ("sshAuths", json!({"name": "ssh", "privateKey": "KEY"}), "privateKey"),
        ("certificates", json!({"name": "tls", "certs": certificate, "key": key}), "key"),
        ("secrets", json!({"name": "plain", "data": {"k": "dg=="}, "description": "d"}), ""),
    ];
    let at = |project: &str, rest: &str| format!("/v3/projects/{project}/{rest}");
    for (plural, body, secret) in &bodies {
        let made = make(&users, &one, plural, body).await;
        let id = format!("{}:{}", name_of(&one), body["name"].as_str().unwrap());
        holds(&made, body, &[secret]);
        assert_eq!((&made["id"], &made["projectId"]), (&json!(id), &json!(one)));
        assert_eq!((&made["namespaceId"], &made["baseType"]), (&Value::Null, &json!("secret")));
        let own = at(&one, &format!("{plural}/{id}"));
        let shown = eventually("the reader's right", async || {
            let (status, response) = users.get(READER, &own).await;
            if status == 200 { Ok(response) } else { Err(response) }
        });
        holds(&shown.await, body, &[secret]);
        users.must_as(READER, 403, "PUT", &own, &json!({"description": "x"})).await;
        users.must_as(READER, 403, "POST", &at(&one, plural), &json!({"name": "x"})).await;
        users.must_as(GUEST, 403, "GET", &own, &Value::Null).await;
        assert!(users.ids(GUEST, &at(&one, plural)).await.is_empty());
        for who in [MEMBER, NOBODY] {
            users.must_as(who, 403, "GET", &own, &Value::Null).await;
            users.must_as(who, 403, "GET", &at(&one, plural), &Value::Null).await;
        }
        // It is in no other project, whatever the path says.
        for method in ["GET", "PUT", "DELETE"] {
            let elsewhere = at(&two, &format!("{plural}/{id}"));
            users.must(404, method, &elsewhere, &json!({})).await;
        }
        assert!(users.ids(OWNER, &at(&two, plural)).await.is_empty());
    }
    let made = json!({"name": "docker", "registries": docker});
    make(&users, &one, "dockerCredentials", &made).await;
    let secrets: Api<Secret> = Api::namespaced(users.world.admin(), name_of(&one));
    let stored = secrets.get("docker").await.unwrap();
    let config: Value =
        serde_json::from_slice(&stored.data.unwrap()[".dockerconfigjson"].0).unwrap();
    assert_eq!(config["auths"]["r.example"]["auth"], STANDARD.encode("ann:p"));
    let id = format!("{}:tls", name_of(&one));
    let tls = at(&one, &format!("certificates/{id}"));
    let shown = users.must(200, "GET", &tls, &Value::Null).await;
    assert_eq!((&shown["version"], &shown["algorithm"]), (&json!("3"), &json!("ECDSA")), "{shown}");
    // A Secret of another kind is not found, whatever its name; `secrets` has all.
    users.must(404, "GET", &at(&one, &format!("sshauths/{id}")), &Value::Null).await;
    assert_eq!(users.ids(OWNER, &at(&one, "certificates")).await, [id]);
    assert_eq!(users.ids(OWNER, &at(&one, "secrets")).await.len(), 5);

    for (wrong, code) in [
        (json!({"name": "x", "namespaceId": "default"}), "InvalidOption"),
        (json!({"name": "x", "projectId": two}), "InvalidReference"),
    ] {
        let response = users.must(422, "POST", &at(&one, "secrets"), &wrong).await;
        assert_eq!(response["code"], code, "{response}");
    }
    an_owner_of_another_cluster_sees_nothing_of_it(&users, &one).await;
}

async fn an_owner_of_another_cluster_sees_nothing_of_it(users: &Users, project: &str) {
    const STRANGER: &str = "u-stranger";
    users.world.create_cluster("c-two").await;
    let bindings: Api<ClusterRoleTemplateBinding> = Api::namespaced(users.world.admin(), "c-two");
    let mut binding = ClusterRoleTemplateBinding {
        role_template_name: "cluster-owner".to_owned(),
        user_name: STRANGER.to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    binding.metadata.name = Some("stranger".to_owned());
    eventually("the namespace of the cluster", async || {
        let made = bindings.create(&PostParams::default(), &binding).await;
        made.map_err(|error| error.to_string())
    })
    .await;
    eventually("the stranger's own cluster", async || {
        let clusters: Api<Cluster> = Api::all(users.world.user_client(STRANGER));
        clusters.get("c-two").await.map_err(|error| error.to_string())
    })
    .await;
    let path = format!("/v3/projects/{project}/secrets");
    users.must_as(STRANGER, 403, "GET", &path, &Value::Null).await;
    let direct: Api<Secret> = Api::namespaced(users.world.user_client(STRANGER), name_of(project));
    for response in
        [direct.list(&ListParams::default()).await.map(drop), direct.get("plain").await.map(drop)]
    {
        assert!(matches!(response, Err(kube::Error::Api(status)) if status.code == 403));
    }
}

/// The values of `k` in Secrets of these names, by `namespace/name`.
async fn copies(users: &Users, names: &[&str]) -> BTreeMap<String, String> {
    let all: Api<Secret> = Api::all(users.downstream.admin());
    let list = all.list(&ListParams::default()).await.unwrap();
    let shown = list.items.into_iter().filter(|secret| names.contains(&&*secret.name_any()));
    shown
        .map(|secret| {
            let key = format!("{}/{}", secret.namespace().unwrap(), secret.name_any());
            let value = secret.data.unwrap_or_default().remove("k").unwrap_or_default();
            (key, String::from_utf8(value.0).unwrap())
        })
        .collect()
}

async fn copied(users: &Users, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    eventually(&format!("{expected:?}"), async || {
        let found = copies(users, &["x", "y"]).await;
        if found == expected { Ok(()) } else { Err(found) }
    })
    .await;
}

async fn says(users: &Users, project: &str, status: &str, words: &str) {
    let api: Api<Project> = Api::namespaced(users.world.admin(), CLUSTER);
    eventually("what the project says", async || {
        let project = api.get(name_of(project)).await.unwrap();
        let said = condition::find(&project.status.conditions, "SecretsCopied").cloned();
        match said {
            Some(said) if said.status == status && said.message.contains(words) => Ok(()),
            said => Err(said),
        }
    })
    .await;
}

fn with(value: &str) -> Value {
    json!({"stringData": {"k": value}})
}

fn named(name: &str, value: &str) -> Value {
    json!({"name": name, "stringData": {"k": value}, "labels": {"team": "shop"}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "the steps of one story, in their order")]
async fn a_projects_secret_is_in_each_of_its_namespaces_and_in_no_other() {
    let users = Users::start().await;
    let (one, two) = (users.project("one").await, users.project("two").await);
    for (namespace, project) in [("a1", &one), ("a2", &one), ("b1", &two)] {
        users.namespace(namespace, project).await;
    }
    let made = make(&users, &one, "secrets", &named("x", "1")).await;
    let own = format!("/v3/projects/{one}/secrets/{}", made["id"].as_str().unwrap());
    copied(&users, &[("a1/x", "1"), ("a2/x", "1")]).await;
    let in_a1: Api<Secret> = Api::namespaced(users.downstream.admin(), "a1");
    let copy = in_a1.get("x").await.unwrap();
    assert_eq!(copy.labels()[keys::DOWNSTREAM_OWNED], "project-secret");
    assert_eq!(copy.labels()["team"], "shop");
    assert_eq!(copy.annotations()[keys::COPY_OF], format!("{one}:x"));
    assert_eq!(copy.annotations()["secret.user.cattle.io/secret"], "true");
    assert_eq!(copy.owner_references()[0].name, "cattle-system");
    says(&users, &one, "True", "").await;

    // Changed there, changed here, deleted there.
    users.must(200, "PUT", &own, &with("2")).await;
    copied(&users, &[("a1/x", "2"), ("a2/x", "2")]).await;
    let patch = Patch::Merge(json!({"stringData": {"k": "mine"}}));
    in_a1.patch("x", &PatchParams::default(), &patch).await.unwrap();
    copied(&users, &[("a1/x", "2"), ("a2/x", "2")]).await;
    in_a1.delete("x", &DeleteParams::default()).await.unwrap();
    copied(&users, &[("a1/x", "2"), ("a2/x", "2")]).await;

    // Namespaces join, move and leave.
    users.namespace("a3", &one).await;
    copied(&users, &[("a1/x", "2"), ("a2/x", "2"), ("a3/x", "2")]).await;
    make(&users, &two, "secrets", &named("x", "two")).await;
    copied(&users, &[("a1/x", "2"), ("a2/x", "2"), ("a3/x", "2"), ("b1/x", "two")]).await;
    let go = async |namespace: &str, project: Value| {
        let action = format!("/v3/clusters/{CLUSTER}/namespaces/{namespace}?action=move");
        users.must(204, "POST", &action, &json!({"projectId": project})).await;
    };
    go("a3", json!(two)).await;
    copied(&users, &[("a1/x", "2"), ("a2/x", "2"), ("a3/x", "two"), ("b1/x", "two")]).await;
    go("a3", Value::Null).await;
    copied(&users, &[("a1/x", "2"), ("a2/x", "2"), ("b1/x", "two")]).await;

    // A Secret of a user remains, also when its namespace joins the project; so does a copy that a
    // user takes over.
    let in_a2: Api<Secret> = Api::namespaced(users.downstream.admin(), "a2");
    let theirs: Secret = serde_json::from_value(json!({
        "metadata": {"name": "y"}, "stringData": {"k": "user"},
    }))
    .unwrap();
    in_a2.create(&PostParams::default(), &theirs).await.unwrap();
    let made = make(&users, &one, "secrets", &named("y", "project")).await;
    let other = format!("/v3/projects/{one}/secrets/{}", made["id"].as_str().unwrap());
    let x = [("a1/x", "2"), ("a2/x", "2"), ("b1/x", "two")];
    copied(&users, &[&x[..], &[("a1/y", "project"), ("a2/y", "user")]].concat()).await;
    says(&users, &one, "False", "secret \"y\" is not copied into namespace \"a2\"").await;
    users.must(200, "PUT", &other, &with("newer")).await;
    copied(&users, &[&x[..], &[("a1/y", "newer"), ("a2/y", "user")]].concat()).await;
    in_a2.delete("y", &DeleteParams::default()).await.unwrap();
    // A change triggers another reconciliation at once.
    users.must(200, "PUT", &other, &with("newest")).await;
    copied(&users, &[&x[..], &[("a1/y", "newest"), ("a2/y", "newest")]].concat()).await;
    says(&users, &one, "True", "").await;
    let unmark = Patch::Merge(json!({"metadata": {"labels": {keys::DOWNSTREAM_OWNED: null}}}));
    in_a2.patch("y", &PatchParams::default(), &unmark).await.unwrap();
    says(&users, &one, "False", "namespace \"a2\"").await;
    users.must(204, "DELETE", &other, &Value::Null).await;
    copied(&users, &[&x[..], &[("a2/y", "newest")]].concat()).await;
    says(&users, &one, "True", "").await;
    in_a2.delete("y", &DeleteParams::default()).await.unwrap();

    // An immutable copy is created again. Secrets for one cluster only, or not created by the view,
    // remain.
    users.must(204, "DELETE", &own, &Value::Null).await;
    let mut fixed = named("x", "fixed");
    fixed["immutable"] = true.into();
    make(&users, &one, "secrets", &fixed).await;
    copied(&users, &[("a1/x", "fixed"), ("a2/x", "fixed"), ("b1/x", "two")]).await;
    users.must(204, "DELETE", &own, &Value::Null).await;
    let auth = json!({"name": "x", "username": "ann", "password": "p"});
    make(&users, &one, "basicAuths", &auth).await;
    copied(&users, &[("a1/x", ""), ("a2/x", ""), ("b1/x", "two")]).await;
    assert_eq!(in_a1.get("x").await.unwrap().type_.unwrap(), "kubernetes.io/basic-auth");
    let by_hand: Api<Secret> = Api::namespaced(users.world.admin(), name_of(&one));
    by_hand.create(&PostParams::default(), &theirs).await.unwrap();
    let account = json!({"name": "account", "accountName": "default"});
    users
        .request(OWNER, "POST", &format!("/v3/projects/{one}/serviceaccounttokens"), &account)
        .await;
    make(&users, &one, "secrets", &named("last", "1")).await;
    eventually("the last one's copy", async || in_a1.get("last").await).await;
    copied(&users, &[("a1/x", ""), ("a2/x", ""), ("b1/x", "two")]).await;
    assert!(in_a1.get_opt("account").await.unwrap().is_none());
}

/// Disconnects the agent, which stops all controllers of the cluster.
async fn away(users: &Users) {
    users.world.disconnect(CLUSTER, &users.key);
    let controllers = &users.world.context.scope.controllers;
    eventually("the end of the copying", async || {
        let running = controllers.all();
        let found = running
            .iter()
            .any(|(scope, running)| scope == CLUSTER && running.name == "project-secrets");
        if found { Err("it runs") } else { Ok(()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_catch_up_when_their_cluster_is_back_and_are_deleted_with_project_and_cluster() {
    let users = Users::start().await;
    let (one, two) = (users.project("one").await, users.project("two").await);
    for (namespace, project) in [("a1", &one), ("b1", &two)] {
        users.namespace(namespace, project).await;
    }
    let made = make(&users, &one, "secrets", &named("x", "1")).await;
    let own = format!("/v3/projects/{one}/secrets/{}", made["id"].as_str().unwrap());
    make(&users, &two, "secrets", &named("x", "two")).await;
    copied(&users, &[("a1/x", "1"), ("b1/x", "two")]).await;

    away(&users).await;
    users.must(200, "PUT", &own, &with("2")).await;
    make(&users, &one, "secrets", &named("y", "1")).await;
    let by_id = format!("/v3/projects/{two}/secrets/{}:x", name_of(&two));
    users.must(204, "DELETE", &by_id, &Value::Null).await;
    copied(&users, &[("a1/x", "1"), ("b1/x", "two")]).await;
    users.world.connect(&users.key, None, users.downstream.admin()).await.unwrap();
    copied(&users, &[("a1/x", "2"), ("a1/y", "1")]).await;

    // An up-to-date copy is not written again.
    let in_a1: Api<Secret> = Api::namespaced(users.downstream.admin(), "a1");
    let version = async || in_a1.get("x").await.unwrap().resource_version();
    let settled = version().await;
    away(&users).await;
    users.world.connect(&users.key, None, users.downstream.admin()).await.unwrap();
    make(&users, &two, "secrets", &named("y", "two")).await;
    copied(&users, &[("a1/x", "2"), ("a1/y", "1"), ("b1/y", "two")]).await;
    assert_eq!(version().await, settled);

    // The right to copy is restored when a user removed it.
    let roles: Api<ClusterRole> = Api::all(users.downstream.admin());
    roles.delete("drover:project-secrets", &DeleteParams::default()).await.unwrap();
    users.must(200, "PUT", &own, &with("3")).await;
    copied(&users, &[("a1/x", "3"), ("a1/y", "1"), ("b1/y", "two")]).await;

    users.must(204, "DELETE", &format!("/v3/projects/{one}"), &Value::Null).await;
    copied(&users, &[("b1/y", "two")]).await;

    users.world.remove(CLUSTER).await;
    copied(&users, &[]).await;
    let ours = ListParams::default().labels(keys::DOWNSTREAM_OWNED);
    eventually("no right of Drover", async || {
        let left = roles.list(&ours).await.unwrap().items;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}
