//! A cluster with users, and `/v3` for each of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_management::{ClusterRoleTemplateBinding, PolicyRule, RoleTemplate};
use api_meta::status::Status;
use apiserver::UserInfo;
use apiserver::body::respond;
use bytes::Bytes;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::rbac::{ours, rule};
use feature_kit::{Membership, RoleResolver};
use http::Request;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use rest_view::{Caller, RestView};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually, proxied};

pub const CLUSTER: &str = "c-one";
/// The built-in role with all rights in the cluster.
pub const OWNER: &str = "u-owner";
/// The built-in role of members: storage, but neither namespaces nor projects.
pub const MEMBER: &str = "u-member";
/// A role that reads projects, namespaces, and their contents.
pub const READER: &str = "u-reader";
/// A role that reads projects; further rights come from the cluster's own roles.
pub const GUEST: &str = "u-guest";
pub const NOBODY: &str = "u-nobody";

const READ: [&str; 3] = ["get", "list", "watch"];

pub struct Users {
    pub world: World,
    pub downstream: Arc<KubeApi>,
    /// The key of the cluster's agent.
    pub key: tunnel::AgentKey,
    view: RestView,
    connected: Arc<AtomicBool>,
}

impl Users {
    pub async fn start() -> Self {
        let world = World::start().await;
        let downstream = KubeApi::start(Profile::Cluster).await;
        let key = world.import(CLUSTER, &downstream).await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        let connected = Arc::new(AtomicBool::new(true));
        let users = Self { world, downstream, key, view, connected };
        let read_projects = ours(&["projects"], &READ);
        users.role("reader", vec![read_projects.clone(), rule("*", &["*"], &READ)]).await;
        users.role("guest", vec![read_projects]).await;
        let roles = [
            (OWNER, "cluster-owner"),
            (MEMBER, "cluster-member"),
            (READER, "reader"),
            (GUEST, "guest"),
        ];
        for (user, role) in roles {
            users.bind(user, role).await;
        }
        users
    }

    pub async fn role(&self, name: &str, rules: Vec<PolicyRule>) {
        let mut role = RoleTemplate {
            display_name: name.to_owned(),
            context: "cluster".to_owned(),
            rules,
            ..RoleTemplate::default()
        };
        role.metadata.name = Some(name.to_owned());
        Api::all(self.world.admin()).create(&PostParams::default(), &role).await.unwrap();
    }

    /// Binds the role, and waits until it is effective on both sides.
    pub async fn bind(&self, user: &str, role: &str) {
        let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(self.world.admin(), CLUSTER);
        let mut binding = ClusterRoleTemplateBinding {
            role_template_name: role.to_owned(),
            user_name: user.to_owned(),
            ..ClusterRoleTemplateBinding::default()
        };
        binding.metadata.name = Some(format!("{user}-{role}"));
        eventually("the role known", async || {
            api.create(&PostParams::default(), &binding).await.map_err(|error| error.to_string())
        })
        .await;
        let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> =
            Api::all(self.downstream.admin());
        eventually("rights on both sides", async || {
            let (status, response) = self.get(user, &format!("/v3/clusters/{CLUSTER}")).await;
            if status != 200 {
                return Err(response.to_string());
            }
            let found = bindings.get_opt(&format!("drover:cluster:{role}")).await.unwrap();
            found.map(drop).ok_or_else(|| "no binding downstream".to_owned())
        })
        .await;
    }

    /// Revokes the role that [`Self::bind`] granted, and waits until it is no longer effective in
    /// the cluster.
    pub async fn unbind(&self, user: &str, role: &str) {
        let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(self.world.admin(), CLUSTER);
        let name = format!("{user}-{role}");
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        eventually("the role removed", async || {
            let membership = Membership { user, groups: &[] };
            let groups = self.world.graph.cluster_groups(CLUSTER, membership);
            groups.is_empty().then_some(()).ok_or_else(|| format!("{groups:?}"))
        })
        .await;
    }

    /// Sets whether the cluster is reachable from now on.
    pub fn connect(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    /// A client like the server gives to the view: of the management API, and below
    /// `/k8s/clusters`, instead of the proxy, of the cluster, as the same user with the groups of
    /// their roles there.
    fn client(&self, user: &str) -> Client {
        let membership = Membership { user, groups: &[] };
        let everybody = ["system:authenticated".to_owned(), GROUP_PEOPLE.to_owned()];
        let name = user.to_owned();
        let as_user = move |groups: Vec<String>| {
            let groups = groups.into_iter().chain(everybody.clone()).collect();
            UserInfo { name: name.clone(), groups, ..UserInfo::default() }
        };
        let here = as_user(self.world.graph.management_groups(membership));
        let (graph, user) = (self.world.graph.clone(), user.to_owned());
        let (management, downstream) =
            (self.world.api.server.clone(), self.downstream.server.clone());
        let connected = self.connected.clone();
        let features = self.world.features.clone();
        let service = move |mut request: Request<kube::client::Body>| {
            let (management, downstream) = (management.clone(), downstream.clone());
            let (here, connected) = (here.clone(), connected.clone());
            // With the current roles.
            let membership = Membership { user: &user, groups: &[] };
            let there = as_user(graph.cluster_groups(CLUSTER, membership));
            let features = features.clone();
            async move {
                let prefix = format!("/k8s/clusters/{CLUSTER}");
                let uri = request.uri().to_string();
                let Some(below) = uri.strip_prefix(&prefix) else {
                    request.extensions_mut().insert(here);
                    return Ok::<_, Infallible>(management.handle(request).await);
                };
                if !connected.load(Ordering::Relaxed) {
                    return Ok(respond::status(&Status::unavailable("agent is not connected")));
                }
                *request.uri_mut() = below.parse().unwrap();
                Ok(proxied::send(&features, CLUSTER, &downstream, &there, request).await)
            }
        };
        Client::new(tower::service_fn(service), "default")
    }

    pub async fn request(&self, who: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.request_as(&Caller::user(who), method, path, body).await
    }
    pub async fn request_as(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let client = self.client(&caller.user_id);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "drover.example");
        let request = request.body(body).unwrap();
        let response = self.view.handle(request, caller, &client).await;
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }
    pub async fn get(&self, who: &str, path: &str) -> (u16, Value) {
        self.request(who, "GET", path, &Value::Null).await
    }
    /// A request as owner; the response must have this code.
    pub async fn must(&self, code: u16, method: &str, path: &str, body: &Value) -> Value {
        self.must_as(OWNER, code, method, path, body).await
    }
    pub async fn must_as(
        &self,
        who: &str,
        code: u16,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Value {
        let (status, response) = self.request(who, method, path, body).await;
        assert_eq!(status, code, "{who}: {method} {path} {body}: {response}");
        response
    }
    /// The ids of a list, in its order.
    pub async fn ids(&self, who: &str, path: &str) -> Vec<String> {
        let list = self.must_as(who, 200, "GET", path, &Value::Null).await;
        let data = list["data"].as_array().unwrap();
        data.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }
    pub async fn project(&self, name: &str) -> String {
        let body = json!({"name": name, "clusterId": CLUSTER});
        let made = self.must(201, "POST", "/v3/projects", &body).await;
        made["id"].as_str().unwrap().to_owned()
    }
    pub async fn namespace(&self, name: &str, project: &str) {
        let body = json!({"name": name, "projectId": project});
        self.must(201, "POST", &format!("/v3/clusters/{CLUSTER}/namespaces"), &body).await;
    }
}
