//! Identities, rights and tokens through the whole server: several users, one in-process server.

#![allow(clippy::unwrap_used)]

#[path = "rbac/attacks.rs"]
mod attacks;

use std::sync::Arc;
use std::time::Duration;

use apiserver::admission::AdmissionChain;
use apiserver::authentication::{
    BearerAuthenticator, StaticTokens, TokenChain, UnionAuthenticator,
};
use apiserver::authorization::{
    EscalationGuard, RbacAuthorizer, bootstrap, follow, rbac_resources,
};
use apiserver::service_accounts::{
    ServiceAccountTokens, SigningKey, TokenRequests, VerifyKeys, legacy,
};
use apiserver::{ApiServer, Registry, UserInfo};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kubernetes_api::kinds;
use kubernetes_api::reviews::{ReviewSources, review_resources};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

const ISSUER: &str = "https://kubernetes.default.svc";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const NAMESPACES: &str = "/api/v1/namespaces";

struct World {
    server: ApiServer,
    _followers: follow::RbacFollower,
    _folder: tempfile::TempDir,
}

struct TestResponse {
    code: u16,
    body: Value,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry = Registry::start(storage, Arc::new(AdmissionChain::default())).await.unwrap();
        let rbac = Arc::new(RbacAuthorizer::default());
        let pem = SigningKey::generate_pem();
        let key = Arc::new(SigningKey::from_pem(&pem).unwrap());
        let objects = Arc::new(registry.clone());
        let audiences = vec![ISSUER.to_owned()];

        let people = "t-root,root,,system:masters\nt-ann,ann,\nt-bob,bob,";
        let keys = VerifyKeys::from_pems([pem.as_str()]).unwrap();
        let tokens = Arc::new(TokenChain::new(vec![
            Arc::new(StaticTokens::parse(people).unwrap()),
            Arc::new(ServiceAccountTokens::new(ISSUER, keys, objects.clone())),
        ]));
        let bearer = BearerAuthenticator::new(tokens.clone(), audiences.clone());
        let requests = TokenRequests::new(ISSUER, audiences.clone(), key.clone(), objects);

        let mut resources = kinds::full_profile(&std::sync::Arc::default());
        let accounts = resources.iter_mut().find(|r| r.plural == "serviceaccounts").unwrap();
        accounts.subresources.retain(|sub| sub.name != "token");
        accounts.subresources.push(requests.subresource());
        let guard = Arc::new(EscalationGuard::new(rbac.clone(), rbac.clone()));
        resources.extend(rbac_resources(&guard));
        resources.extend(review_resources(&ReviewSources {
            authorizer: rbac.clone(),
            rules: rbac.clone(),
            tokens,
            audiences,
        }));
        registry.install(resources).await.unwrap();
        let followers =
            follow::start(&registry, &rbac, bootstrap::management_policy()).await.unwrap();
        tokio::spawn(legacy::reconcile_secrets(registry.clone(), key, "CA".to_owned()));
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(UnionAuthenticator::new(vec![Arc::new(bearer)], true)),
            authorizer: rbac,
            git_version: "v1.36.3".to_owned(),
        });
        let world = Self { server, _followers: followers, _folder: folder };
        for name in ["default", "r1", "r2"] {
            world.root(Method::POST, NAMESPACES, json!({"metadata": {"name": name}})).await;
        }
        world
    }

    /// As root, and the request must succeed.
    async fn root(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send(method, path, &[("authorization", "Bearer t-root")], body).await;
        assert!(answer.code < 300, "{path}: {}", answer.body);
        answer.body
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> TestResponse {
        let patch = method == Method::PATCH;
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let kind = if patch { "application/merge-patch+json" } else { "application/json" };
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", kind);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.server.handle(request.body(Full::from(body)).unwrap()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        TestResponse { code, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    async fn get(&self, path: &str, token: &str) -> TestResponse {
        let bearer = format!("Bearer {token}");
        self.send(Method::GET, path, &[("authorization", &bearer)], Value::Null).await
    }

    fn client(&self, name: &str) -> kube::Client {
        let user = UserInfo::new(name, &["system:authenticated"]);
        kube::Client::new(self.server.as_user(user), "r1")
    }

    /// A role with these rules in a namespace, bound to a user of that name.
    async fn grant(&self, namespace: &str, user: &str, rules: Value) {
        let role = json!({"metadata": {"name": user}, "rules": rules});
        self.root(Method::POST, &format!("{RBAC}/namespaces/{namespace}/roles"), role).await;
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"kind": "Role", "name": user},
            "subjects": [{"kind": "User", "name": user}],
        });
        let path = format!("{RBAC}/namespaces/{namespace}/rolebindings");
        self.root(Method::POST, &path, binding).await;
    }
}

/// Retries until the attempt succeeds; the authorizer receives a write shortly after it.
async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    let tried = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match attempt().await {
                Ok(value) => return value,
                Err(state) => last = state,
            }
            tokio::task::yield_now().await;
        }
    });
    let tried = tried.await;
    tried.unwrap_or_else(|_| panic!("{what} did not come about; last: {last}"))
}

fn refusal(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("not a response of the API: {other}"),
    }
}

fn message(answer: &TestResponse) -> String {
    answer.body["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn rights_begin_and_end_with_a_binding() {
    let world = World::start().await;
    let api: Api<ConfigMap> = Api::namespaced(world.client("ann"), "r1");
    let (code, text) = refusal(api.list(&ListParams::default()).await.unwrap_err());
    assert_eq!(code, 403);
    assert_eq!(
        text,
        "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"r1\""
    );
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    world.grant("r1", "ann", rules).await;
    eventually("the right to list", async || {
        api.list(&ListParams::default()).await.map_err(|error| error.to_string())
    })
    .await;
    let other: Api<ConfigMap> = Api::namespaced(world.client("ann"), "r2");
    assert_eq!(refusal(other.list(&ListParams::default()).await.unwrap_err()).0, 403);
    let everywhere: Api<ConfigMap> = Api::all(world.client("ann"));
    assert_eq!(refusal(everywhere.list(&ListParams::default()).await.unwrap_err()).0, 403);

    let path = format!("{RBAC}/namespaces/r1/rolebindings/ann");
    world.root(Method::DELETE, &path, Value::Null).await;
    eventually("the loss of the right", async || match api.list(&ListParams::default()).await {
        Ok(_) => Err("still listing".to_owned()),
        Err(_) => Ok(()),
    })
    .await;
}

#[tokio::test]
async fn the_initial_policy_is_there_and_aggregates() {
    let world = World::start().await;
    let admin: Api<ClusterRole> = Api::all(kube::Client::new(
        world.server.as_user(UserInfo::new("root", &["system:masters"])),
        "default",
    ));
    let view = admin.get("view").await.unwrap();
    assert!(view.rules.unwrap().len() > 5);
    let extra = json!({
        "metadata": {
            "name": "crontabs",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": ["zz.example"], "resources": ["crontabs"], "verbs": ["get"]}],
    });
    world.root(Method::POST, &format!("{RBAC}/clusterroles"), extra).await;
    for name in ["view", "edit", "admin"] {
        eventually("the aggregated rule", async || {
            let rules = admin.get(name).await.unwrap().rules.unwrap();
            let has = |rule: &k8s_openapi::api::rbac::v1::PolicyRule| {
                rule.resources == Some(vec!["crontabs".to_owned()])
            };
            if rules.iter().any(has) { Ok(()) } else { Err(format!("{rules:?}")) }
        })
        .await;
    }
    let version = world.send(Method::GET, "/version", &[], Value::Null).await;
    assert_eq!(version.code, 200, "anonymous reads the version");
    let nodes = world.send(Method::GET, "/api/v1/nodes", &[], Value::Null).await;
    assert_eq!(
        message(&nodes),
        "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \
         \"\" at the cluster scope"
    );
    assert_eq!(nodes.code, 403);
    assert_eq!(world.get("/api/v1/nodes", "wrong").await.code, 401);
}

#[tokio::test]
async fn nobody_grants_rights_that_they_do_not_have() {
    let world = World::start().await;
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"],
         "resourceNames": []},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    ]);
    // Without `escalate` and `bind`, which a star contains.
    let mut narrowed = rules.clone();
    narrowed[0]["verbs"] = json!(["get", "create", "patch", "update", "list"]);
    world.grant("r1", "bob", narrowed).await;
    let roles: Api<Role> = Api::namespaced(world.client("bob"), "r1");
    let bindings: Api<RoleBinding> = Api::namespaced(world.client("bob"), "r1");
    let role = |name: &str, verb: &str| -> Role {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": [verb]}],
        }))
        .unwrap()
    };
    eventually("the right to create roles", async || {
        let made = roles.create(&PostParams::default(), &role("fine", "get")).await;
        made.map_err(|error| error.to_string())
    })
    .await;
    let (code, text) =
        refusal(roles.create(&PostParams::default(), &role("worse", "delete")).await.unwrap_err());
    assert_eq!(code, 403);
    assert_eq!(
        text,
        "roles.rbac.authorization.k8s.io \"worse\" is forbidden: user \"bob\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"delete\"]}"
    );
    let widen = Patch::Merge(json!({
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}],
    }));
    let patched = roles.patch("fine", &PatchParams::default(), &widen).await;
    assert_eq!(refusal(patched.unwrap_err()).0, 403);

    let bind = |name: &str, role: &str| -> RoleBinding {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
            },
        }))
        .unwrap()
    };
    let up = bindings.create(&PostParams::default(), &bind("up", "cluster-admin")).await;
    assert_eq!(refusal(up.unwrap_err()).0, 403);
    let nowhere = bindings.create(&PostParams::default(), &bind("up", "nope")).await;
    assert_eq!(
        refusal(nowhere.unwrap_err()),
        (404, "rolebindings.rbac.authorization.k8s.io \"nope\" not found".to_owned())
    );
    let other = Patch::Merge(json!({"roleRef": {"name": "zz"}}));
    let root =
        kube::Client::new(world.server.as_user(UserInfo::new("root", &["system:masters"])), "r1");
    let changed = Api::<RoleBinding>::namespaced(root, "r1")
        .patch("bob", &PatchParams::default(), &other)
        .await;
    let (code, text) = refusal(changed.unwrap_err());
    assert_eq!(code, 422);
    assert!(text.ends_with("cannot change roleRef"), "{text}");
}

#[tokio::test]
async fn impersonation_is_authorised_or_refused_and_never_ignored() {
    let world = World::start().await;
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let send_review =
        async |headers: &[(&str, &str)]| world.send(Method::POST, whoami, headers, json!({})).await;
    let root = ("authorization", "Bearer t-root");
    let ann = ("authorization", "Bearer t-ann");
    let name = |answer: &TestResponse| answer.body["status"]["userInfo"]["username"].clone();

    assert_eq!(name(&send_review(&[ann]).await), "ann");
    let as_jane =
        send_review(&[root, ("Impersonate-User", "jane"), ("Impersonate-Group", "g1")]).await;
    assert_eq!(
        as_jane.body["status"]["userInfo"],
        json!({"username": "jane", "groups": ["g1", "system:authenticated"]})
    );
    let refused = send_review(&[ann, ("impersonate-USER", "bob")]).await;
    assert_eq!(
        (refused.code, message(&refused).as_str()),
        (
            403,
            "users \"bob\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API \
             group \"\" at the cluster scope"
        )
    );
    for headers in [
        [root, ("Impersonate-Group", "system:masters")].as_slice(),
        &[root, ("Impersonate-User", "")],
        &[root, ("Impersonate-User", "jane"), ("Impersonate-User", "root")],
    ] {
        assert_eq!(send_review(headers).await.code, 400, "{headers:?}");
    }
    let hidden = [ann, ("Impersonate-User", "root"), ("Connection", "Impersonate-User")];
    assert_eq!(send_review(&hidden).await.code, 403);
    let proxied = [ann, ("X-Remote-User", "root"), ("X-Remote-Group", "system:masters")];
    assert_eq!(name(&send_review(&proxied).await), "ann");
    let twice = [ann, root];
    assert_eq!(send_review(&twice).await.code, 401);
}

#[tokio::test]
async fn a_token_authenticates_as_its_service_account_until_that_is_deleted() {
    let world = World::start().await;
    let accounts = format!("{NAMESPACES}/r1/serviceaccounts");
    world.root(Method::POST, &accounts, json!({"metadata": {"name": "sa1"}})).await;
    let request = world.root(Method::POST, &format!("{accounts}/sa1/token"), json!({})).await;
    let token = request["status"]["token"].as_str().unwrap().to_owned();

    let bearer = format!("Bearer {token}");
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = world.send(Method::POST, whoami, &[("authorization", &bearer)], json!({})).await;
    let info = &me.body["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:r1:sa1");
    assert_eq!(
        info["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:r1", "system:authenticated"])
    );
    let review = world
        .root(
            Method::POST,
            "/apis/authentication.k8s.io/v1/tokenreviews",
            json!({"spec": {"token": token}}),
        )
        .await;
    assert_eq!(review["status"]["authenticated"], true);

    let view = json!({
        "metadata": {"name": "view"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "sa1"}],
    });
    world.root(Method::POST, &format!("{RBAC}/namespaces/r1/rolebindings"), view).await;
    eventually("the account's right", async || {
        let answer = world.get(&format!("{NAMESPACES}/r1/configmaps"), &token).await;
        if answer.code == 200 { Ok(()) } else { Err(message(&answer)) }
    })
    .await;
    let review = world
        .root(
            Method::POST,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": {
                "user": "system:serviceaccount:r1:sa1",
                "resourceAttributes": {"namespace": "r1", "verb": "get", "resource": "pods"},
            }}),
        )
        .await;
    assert_eq!(
        review["status"]["reason"],
        "RBAC: allowed by RoleBinding \"view/r1\" of ClusterRole \"view\" to ServiceAccount \
         \"sa1/r1\""
    );
    world.root(Method::DELETE, &format!("{accounts}/sa1"), Value::Null).await;
    assert_eq!(world.get("/api", &token).await.code, 401);
    let missing = [("authorization", "Bearer t-root")];
    let missing =
        world.send(Method::POST, &format!("{accounts}/sa1/token"), &missing, json!({})).await;
    assert_eq!(
        (missing.code, message(&missing).as_str()),
        (404, "serviceaccounts \"sa1\" not found")
    );
}

#[tokio::test]
async fn a_token_secret_is_filled_and_is_deleted_with_its_account() {
    use base64::Engine as _;
    let world = World::start().await;
    let accounts = format!("{NAMESPACES}/r1/serviceaccounts");
    let secrets = format!("{NAMESPACES}/r1/secrets");
    world.root(Method::POST, &accounts, json!({"metadata": {"name": "sa1"}})).await;
    let secret = json!({
        "metadata": {
            "name": "lt", "annotations": {"kubernetes.io/service-account.name": "sa1"},
        },
        "type": "kubernetes.io/service-account-token",
    });
    world.root(Method::POST, &secrets, secret).await;
    let one = format!("{secrets}/lt");
    let token = eventually("the token", async || {
        let secret = world.get(&one, "t-root").await.body;
        secret["data"]["token"].as_str().map(str::to_owned).ok_or(secret.to_string())
    })
    .await;
    let token = base64::engine::general_purpose::STANDARD.decode(token).unwrap();
    let token = String::from_utf8(token).unwrap();
    assert_eq!(world.get("/api", &token).await.code, 200);
    world.root(Method::DELETE, &format!("{accounts}/sa1"), Value::Null).await;
    eventually("the end of the secret", async || {
        let answer = world.get(&one, "t-root").await;
        if answer.code == 404 { Ok(()) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert_eq!(world.get("/api", &token).await.code, 401);
}

#[tokio::test]
async fn a_write_that_would_create_needs_the_right_to_create() {
    let world = World::start().await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    ]);
    world.grant("r1", "ann", rules).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client("ann"), "r1");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let params = PatchParams::apply("ann");
    let refused = "configmaps \"a\" is forbidden: User \"ann\" cannot create resource \
                   \"configmaps\" in API group \"\" in the namespace \"r1\"";
    eventually("a refusal for want of that right", async || {
        let tried = maps.patch("a", &params, &Patch::Apply(&config)).await;
        match refusal(tried.unwrap_err()) {
            (403, text) if text == refused => Ok(()),
            (code, text) => Err(format!("{code} {text}")),
        }
    })
    .await;
    let leases: Api<Lease> = Api::namespaced(world.client("ann"), "r1");
    let lease = Lease {
        metadata: ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() },
        ..Lease::default()
    };
    let tried = leases.replace("a", &PostParams::default(), &lease).await;
    let (code, text) = refusal(tried.unwrap_err());
    assert_eq!(code, 403);
    assert!(text.contains("cannot create resource \"leases\""), "{text}");

    world.root(Method::POST, "/api/v1/namespaces/r1/configmaps", config.clone()).await;
    maps.patch("a", &params, &Patch::Apply(&config)).await.unwrap();
}
