//! Against a real API server in process: rights, conflicts of names, removals, all by its own
//! rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::{GROUP_AUTHENTICATED, GROUP_MASTERS, InvalidCredential};
use apiserver::authentication::{TokenAuthenticator, TokenUser};
use apiserver::authorization::{RbacAuthorizer, RbacKind};
use apiserver::{ApiServer, Authenticator, Registry, UserInfo};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use kubernetes_api::reviews::{ReviewSources, review_resources};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use super::world::{Reply, depot, widget};
use crate::{ApiVersion, Caller, KubeResource, KubeStore, RestView};

struct Nobody;

impl Authenticator for Nobody {
    fn authenticate<'a>(
        &'a self,
        _: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

impl TokenAuthenticator for Nobody {
    fn authenticate_token<'a>(
        &'a self,
        _: &'a str,
        _: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.io")},
        "spec": {
            "group": "example.io", "scope": scope,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                      "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": open, "status": open,
                }}},
            }],
        },
    })
}

pub(super) struct Cluster {
    pub server: ApiServer,
    pub rbac: Arc<RbacAuthorizer>,
    pub view: RestView,
    _folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts the API server with the types of the test and their rights.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry = Registry::start(storage, Arc::new(AdmissionChain::default())).await.unwrap();
        let rbac = Arc::new(RbacAuthorizer::default());
        let sources = ReviewSources {
            authorizer: rbac.clone(),
            rules: rbac.clone(),
            tokens: Arc::new(Nobody),
            audiences: Vec::new(),
        };
        let mut resources = review_resources(&sources);
        let definitions = [
            definition("Depot", "depots", "Cluster"),
            definition("Widget", "widgets", "Namespaced"),
        ];
        for definition in &definitions {
            let stays = Arc::<AtomicBool>::default();
            resources.extend(kubernetes_api::custom::resources_of(definition, &stays, |_| {
                unreachable!("no definition here has a scale")
            }));
        }
        registry.install(resources).await.unwrap();
        let server = ApiServer::new(apiserver::server::Parts {
            registry,
            authenticator: Arc::new(Nobody),
            authorizer: rbac.clone(),
            git_version: "v1.31.0".to_owned(),
        });
        let resource = |plural: &str, kind: &str, namespaced| {
            KubeResource::new("example.io", "v1", plural, kind, namespaced)
        };
        let widgets = KubeStore::new(resource("widgets", "Widget", true))
            .in_namespaces_of(resource("depots", "Depot", false));
        let versions = [
            ApiVersion::new("example.io", "v3", "/v3"),
            ApiVersion::new("depot.example.io", "v3", "/v3/depot").inside("depot"),
        ];
        let view = RestView::new(versions, [depot(), widget().store(Arc::new(widgets))]);
        let cluster = Self { server, rbac, view, _folder: folder };
        cluster.allow_reviews();
        cluster
    }

    /// As the role `system:basic-user` does.
    fn allow_reviews(&self) {
        let rule = json!({"apiGroups": ["authorization.k8s.io"], "verbs": ["create"],
                          "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]});
        let role = json!({"metadata": {"name": "basic-user"}, "rules": [rule]});
        self.rbac.put(RbacKind::ClusterRole, &role);
        let group = json!({"kind": "Group", "name": GROUP_AUTHENTICATED,
                           "apiGroup": "rbac.authorization.k8s.io"});
        let binding = json!({
            "metadata": {"name": "basic-user"}, "subjects": [group],
            "roleRef": {"kind": "ClusterRole", "name": "basic-user",
                        "apiGroup": "rbac.authorization.k8s.io"},
        });
        self.rbac.put(RbacKind::ClusterRoleBinding, &binding);
    }

    /// Takes back what [`Cluster::allow`] gave.
    pub fn forbid(&self, user: &str, resource: &str, namespace: &str, name: &str) {
        let title = format!("{user}-{resource}-{namespace}-{name}");
        let kind = match namespace {
            "" => RbacKind::ClusterRoleBinding,
            _ => RbacKind::RoleBinding,
        };
        self.rbac.remove(kind, namespace, &title);
    }

    /// Lets `user` do `verbs` on `resource`, in `namespace` or everywhere, on `name` or on all.
    pub fn allow(&self, user: &str, verbs: &[&str], resource: &str, namespace: &str, name: &str) {
        let mut rule =
            json!({"apiGroups": ["example.io"], "resources": [resource], "verbs": verbs});
        if !name.is_empty() {
            rule["resourceNames"] = json!([name]);
        }
        let title = format!("{user}-{resource}-{namespace}-{name}");
        let (role_kind, binding_kind) = match namespace {
            "" => (RbacKind::ClusterRole, RbacKind::ClusterRoleBinding),
            _ => (RbacKind::Role, RbacKind::RoleBinding),
        };
        let metadata = json!({"name": title, "namespace": namespace});
        self.rbac.put(role_kind, &json!({"metadata": metadata, "rules": [rule]}));
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": metadata,
            "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
            "roleRef": {"kind": role_kind.kind(), "name": title, "apiGroup": group},
        });
        self.rbac.put(binding_kind, &binding);
    }

    /// A client of the API server; `admin` has all rights.
    pub fn client(&self, user: &str) -> kube::Client {
        let groups: &[&str] = match user {
            "admin" => &[GROUP_MASTERS, GROUP_AUTHENTICATED],
            _ => &[GROUP_AUTHENTICATED],
        };
        kube::Client::new(self.server.as_user(UserInfo::new(user, groups)), "default")
    }

    /// Sends a request to the view as `user`; a null body is none.
    pub async fn call(&self, user: &str, method: &str, path: &str, body: Value) -> Reply {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "h");
        self.send(user, request.body(body).unwrap()).await
    }

    /// Sends any request to the view as `user`.
    pub async fn send(&self, user: &str, request: Request<Bytes>) -> Reply {
        self.send_as(&Caller::user(user), request).await
    }

    /// Sends any request to the view as `caller`.
    pub async fn send_as(&self, caller: &Caller, request: Request<Bytes>) -> Reply {
        let response = self.view.handle(request, caller, &self.client(&caller.user_id)).await;
        let (parts, bytes) = response.into_parts();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body, bytes }
    }

    /// Creates a depot as administrator, and returns its id.
    pub async fn depot(&self, name: &str) -> String {
        let reply = self.call("admin", "POST", "/v3/depots", json!({"name": name})).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.body["id"].as_str().unwrap().to_owned()
    }

    /// Creates a widget in a depot as administrator, and returns its id.
    pub async fn widget(&self, depot: &str, name: &str) -> String {
        let body = json!({"name": name, "depotId": depot});
        let reply = self.call("admin", "POST", "/v3/widgets", body).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.body["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_resource_lives_from_create_to_delete() {
    let cluster = Cluster::start().await;
    let depot = cluster.depot("north").await;
    assert!(depot.starts_with("d-") && depot.len() == 7, "{depot}");
    let widget = cluster.widget(&depot, "One").await;
    assert!(widget.starts_with(&format!("{depot}:w-")), "{widget}");

    let path = format!("/v3/widgets/{widget}");
    let sent = json!({"color": "red", "labels": {"zone": "a"}, "dimensions": {"height": 3}});
    let reply = cluster.call("admin", "PUT", &path, sent).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.body["name"], "One");
    assert_eq!(reply.body["labels"]["cattle.io/creator"], "norman");
    assert_eq!(reply.body["creatorId"], "admin");

    let below = format!("/v3/depots/{depot}/widgets");
    let reply = cluster.call("admin", "GET", &below, Value::Null).await;
    assert_eq!(reply.ids(), [widget.as_str()]);
    let reply = cluster.call("admin", "DELETE", &path, Value::Null).await;
    assert_eq!(reply.status, 204);
    let reply = cluster.call("admin", "GET", &path, Value::Null).await;
    assert_eq!((reply.status, reply.code()), (404, "NotFound"));
}

#[tokio::test]
async fn refusals_pass_through_in_the_words_of_the_api_server() {
    let cluster = Cluster::start().await;
    let depot = cluster.depot("north").await;
    let path = format!("/v3/depots/{depot}");
    for (method, body) in
        [("GET", Value::Null), ("PUT", json!({"name": "x"})), ("DELETE", Value::Null)]
    {
        let reply = cluster.call("eve", method, &path, body).await;
        assert_eq!((reply.status, reply.code()), (403, "Forbidden"), "{method}");
        let message = reply.body["message"].as_str().unwrap();
        assert!(message.contains("User \"eve\" cannot"), "{message}");
    }
    let reply = cluster.call("eve", "POST", "/v3/depots", json!({"name": "x"})).await;
    assert_eq!(reply.status, 403);
    // Callers who may read but not change get another refusal than callers who may not read.
    cluster.allow("eve", &["get"], "depots", "", &depot);
    assert_eq!(cluster.call("eve", "GET", &path, Value::Null).await.status, 200);
    assert_eq!(cluster.call("eve", "DELETE", &path, Value::Null).await.status, 403);
}

#[tokio::test]
async fn a_list_shows_exactly_what_the_caller_may_see() {
    let cluster = Cluster::start().await;
    let (north, south) = (cluster.depot("north").await, cluster.depot("south").await);
    let first = cluster.widget(&north, "One").await;
    let second = cluster.widget(&north, "Two").await;
    let third = cluster.widget(&south, "Three").await;
    let lists = async |user: &str, path: &str| {
        let reply = cluster.call(user, "GET", path, Value::Null).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let mut ids: Vec<String> = reply.ids().into_iter().map(str::to_owned).collect();
        ids.sort();
        ids
    };
    let sorted = |ids: &[&String]| {
        let mut ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(lists("admin", "/v3/widgets").await, sorted(&[&first, &second, &third]));
    assert_eq!(lists("eve", "/v3/depots").await, Vec::<String>::new());
    assert_eq!(lists("eve", "/v3/widgets").await, Vec::<String>::new());

    // One depot by name, and everything in its namespace.
    cluster.allow("ann", &["get"], "depots", "", &north);
    cluster.allow("ann", &["get", "list"], "widgets", &north, "");
    assert_eq!(lists("ann", "/v3/depots").await, sorted(&[&north]));
    assert_eq!(lists("ann", "/v3/widgets").await, sorted(&[&first, &second]));
    assert_eq!(lists("ann", &format!("/v3/widgets?depotId={south}")).await, sorted(&[]));

    // One depot, and in it one widget by name.
    cluster.allow("bob", &["get"], "depots", "", &north);
    let (_, name) = second.split_once(':').unwrap();
    cluster.allow("bob", &["get"], "widgets", &north, name);
    assert_eq!(lists("bob", "/v3/widgets").await, sorted(&[&second]));
    assert_eq!(lists("bob", &format!("/v3/depots/{north}/widgets")).await, sorted(&[&second]));
}

#[tokio::test]
async fn concurrent_updates_of_different_fields_all_succeed() {
    let cluster = Cluster::start().await;
    let depot = cluster.depot("north").await;
    let widget = cluster.widget(&depot, "One").await;
    let path = format!("/v3/widgets/{widget}");
    let updates = [json!({"color": "red"}), json!({"weight": 7}), json!({"size": "large"})];
    let replies = futures::future::join_all(
        updates.into_iter().map(|body| cluster.call("admin", "PUT", &path, body)),
    )
    .await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    let shown = cluster.call("admin", "GET", &path, Value::Null).await.body;
    let found = (&shown["color"], &shown["weight"], &shown["size"]);
    assert_eq!(found, (&json!("red"), &json!(7), &json!("large")));
}
