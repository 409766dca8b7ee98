//! Two clusters and their users.

use api_management::{ClusterRoleTemplateBinding, GlobalRoleBinding, User};
use bytes::Bytes;
use feature_kit::{Clients, Membership, RoleResolver, access};
use http::Request;
use kube::api::PostParams;
use kube::{Api, Client};
use rest_view::{Caller, RestView};
use serde_json::{Value, json};
use test_kit::{World, eventually};

/// The cluster that the owner and the member have their roles in.
pub const CLUSTER_A: &str = "c-aaaaa";
/// The cluster in which they have no role.
pub const CLUSTER_B: &str = "c-bbbbb";

/// A user who makes no requests.
pub const OTHER: &str = "u-other";

/// The user of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestUser {
    Admin,
    /// Has the role cluster-owner in cluster A.
    Owner,
    /// Has the role cluster-member in cluster A.
    Member,
    /// Has the global role `user`.
    Standard,
    /// Logged in, without any role.
    Nobody,
    /// Not logged in.
    Anonymous,
}

/// In the order of their requests: those with the fewest rights first, so that objects are not
/// deleted early.
pub const USERS: [TestUser; 6] = [
    TestUser::Anonymous,
    TestUser::Nobody,
    TestUser::Standard,
    TestUser::Member,
    TestUser::Owner,
    TestUser::Admin,
];

impl TestUser {
    /// The id of the user; empty for anonymous requests.
    pub fn id(self) -> &'static str {
        match self {
            Self::Admin => "u-admin",
            Self::Owner => "u-owner",
            Self::Member => "u-member",
            Self::Standard => "u-standard",
            Self::Nobody => "u-nobody",
            Self::Anonymous => "",
        }
    }
}

/// A cluster and a project in it, which has its namespace.
pub struct TestCluster {
    pub cluster: &'static str,
    /// `cluster:project`.
    pub project: String,
}

pub struct Setup {
    pub world: World,
    pub view: RestView,
    pub a: TestCluster,
    pub b: TestCluster,
}

impl Setup {
    /// `with`: final changes to the view's configuration.
    pub async fn start(with: impl FnOnce(RestView, &World) -> RestView) -> Self {
        let world = World::start().await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        let view = with(view, &world);
        for id in USERS.map(TestUser::id).into_iter().chain([OTHER]) {
            add_user(&world.admin(), id).await;
        }
        let bindings: Api<GlobalRoleBinding> = Api::all(world.admin());
        let admin = access::admin_binding(TestUser::Admin.id());
        bindings.create(&PostParams::default(), &admin).await.unwrap();
        let test_cluster = |cluster| TestCluster { cluster, project: String::new() };
        let (a, b) = (test_cluster(CLUSTER_A), test_cluster(CLUSTER_B));
        let mut setup = Self { world, view, a, b };
        setup.wait_for_admin().await;
        for cluster in [CLUSTER_A, CLUSTER_B] {
            setup.world.create_cluster(cluster).await;
            setup.world.token(cluster).await;
        }
        setup.bind(CLUSTER_A).await;
        setup.a.project = setup.project_in(CLUSTER_A).await;
        setup.b.project = setup.project_in(CLUSTER_B).await;
        let role = json!({"globalRoleId": "user", "userId": TestUser::Standard.id()});
        setup.must(201, "POST", "/v3/globalRoleBindings", &role).await;
        setup
    }

    /// RBAC and the role graph each observe the binding by a watch of their own.
    async fn wait_for_admin(&self) {
        let membership = Membership { user: TestUser::Admin.id(), groups: &[] };
        eventually("the administrator's rights", async || {
            let (status, response) = self.get(TestUser::Admin, "/v3/users/u-other").await;
            let groups = self.world.graph.management_groups(membership);
            let is_known = groups.iter().any(|group| group == access::GROUP_GLOBAL_ADMIN);
            if status == 200 && is_known { Ok(()) } else { Err((response, groups)) }
        })
        .await;
    }

    /// Binds owner and member to their roles in the cluster and waits until the roles are
    /// effective.
    pub async fn bind(&self, cluster: &str) {
        let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(self.world.admin(), cluster);
        for (user, role) in
            [(TestUser::Owner, "cluster-owner"), (TestUser::Member, "cluster-member")]
        {
            let mut binding = ClusterRoleTemplateBinding {
                role_template_name: role.to_owned(),
                user_name: user.id().to_owned(),
                ..ClusterRoleTemplateBinding::default()
            };
            binding.metadata.name = Some(format!("of-{}", user.id()));
            eventually("a namespace to bind in", async || {
                api.create(&PostParams::default(), &binding).await.map(drop)
            })
            .await;
        }
        for user in [TestUser::Owner, TestUser::Member] {
            let (own, bindings) = (
                format!("/v3/clusters/{cluster}"),
                format!("/v3/clusterRoleTemplateBindings/{cluster}:of-u-owner"),
            );
            eventually("rights in the cluster", async || {
                let codes = [self.get(user, &own).await.0, self.get(user, &bindings).await.0];
                if codes == [200, 200] { Ok(()) } else { Err(codes) }
            })
            .await;
        }
    }

    async fn project_in(&self, cluster: &str) -> String {
        let body = json!({"clusterId": cluster, "name": "probed"});
        let made = self.must(201, "POST", "/v3/projects", &body).await;
        let id = made["id"].as_str().unwrap().to_owned();
        let (_, namespace) = id.split_once(':').unwrap();
        let path = format!("/api/v1/namespaces/{namespace}");
        eventually("the project's namespace", async || {
            let request = Request::get(&path).body(Vec::new()).unwrap();
            self.world.admin().request::<Value>(request).await.map(drop)
        })
        .await;
        id
    }

    pub fn caller(&self, user: TestUser) -> (Caller, Client) {
        if user == TestUser::Anonymous {
            let group = "system:unauthenticated".to_owned();
            let client = self.world.api.client_as("system:anonymous", &[group]);
            return (Caller::anonymous(), client);
        }
        (Caller::user(user.id()), self.world.user_client(user.id()))
    }

    /// The status, and the body as it is sent.
    pub async fn text(
        &self,
        who: TestUser,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, String) {
        let (caller, client) = self.caller(who);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "drover.example");
        let response = self.view.handle(request.body(body).unwrap(), &caller, &client).await;
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        (response.status().as_u16(), text)
    }

    pub async fn request(
        &self,
        who: TestUser,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let (status, text) = self.text(who, method, path, body).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    pub async fn get(&self, who: TestUser, path: &str) -> (u16, Value) {
        self.request(who, "GET", path, &Value::Null).await
    }

    /// A request as administrator; the response must have this code.
    pub async fn must(&self, code: u16, method: &str, path: &str, body: &Value) -> Value {
        let (status, response) = self.request(TestUser::Admin, method, path, body).await;
        assert_eq!(status, code, "{method} {path} {body}: {response}");
        response
    }
}

async fn add_user(client: &Client, id: &str) {
    if id.is_empty() {
        return;
    }
    let mut user =
        User { username: id.trim_start_matches("u-").to_owned(), ..<User as Default>::default() };
    user.metadata.name = Some(id.to_owned());
    Api::<User>::all(client.clone()).create(&PostParams::default(), &user).await.unwrap();
}
