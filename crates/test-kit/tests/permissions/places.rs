//! Two clusters and the people around them.

use api_management::{ClusterRoleTemplateBinding, User};
use bytes::Bytes;
use feature_kit::{RoleResolver, Clients, Membership, access};
use http::Request;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::PostParams;
use kube::{Api, Client};
use rest_view::{Caller, RestView};
use serde_json::{Value, json};
use test_kit::{World, eventually};

/// The cluster that the owner and the member have their roles in.
pub const CLUSTER_A: &str = "c-aaaaa";
/// The cluster in which they have none.
pub const CLUSTER_B: &str = "c-bbbbb";

/// A user who asks for nothing.
pub const OTHER: &str = "u-other";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Person {
    Admin,
    /// Has the role cluster-owner in cluster A.
    Owner,
    /// Has the role cluster-member in cluster A.
    Member,
    /// Has the global role `user`.
    Standard,
    /// Logged in, and has no role anywhere.
    Nobody,
    /// Did not log in.
    Anonymous,
}

/// In the order in which they ask: who may do least comes first, so that objects stay.
pub const PEOPLE: [Person; 6] = [
    Person::Anonymous,
    Person::Nobody,
    Person::Standard,
    Person::Member,
    Person::Owner,
    Person::Admin,
];

impl Person {
    /// The id of their user; empty for who has none.
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
pub struct Place {
    pub cluster: &'static str,
    /// `cluster:project`.
    pub project: String,
}

pub struct Places {
    pub world: World,
    pub view: RestView,
    pub a: Place,
    pub b: Place,
}

impl Places {
    /// `with`: last changes to the view.
    pub async fn start(with: impl FnOnce(RestView, &World) -> RestView) -> Self {
        let world = World::start().await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        let view = with(view, &world);
        for id in PEOPLE.map(Person::id).into_iter().chain([OTHER]) {
            add_user(&world.admin(), id).await;
        }
        let bindings: Api<ClusterRoleBinding> = Api::all(world.admin());
        let admin = access::admin_binding(Person::Admin.id());
        bindings.create(&PostParams::default(), &admin).await.unwrap();
        let place = |cluster| Place { cluster, project: String::new() };
        let (a, b) = (place(CLUSTER_A), place(CLUSTER_B));
        let mut places = Self { world, view, a, b };
        places.wait_for_admin().await;
        for cluster in [CLUSTER_A, CLUSTER_B] {
            places.world.create_cluster(cluster).await;
            places.world.token(cluster).await;
        }
        places.bind(CLUSTER_A).await;
        places.a.project = places.project_in(CLUSTER_A).await;
        places.b.project = places.project_in(CLUSTER_B).await;
        let role = json!({"globalRoleId": "user", "userId": Person::Standard.id()});
        places.must(201, "POST", "/v3/globalRoleBindings", &role).await;
        places
    }

    /// RBAC and the role graph each follow the binding by a watch of their own.
    async fn wait_for_admin(&self) {
        let person = Membership { user: Person::Admin.id(), groups: &[] };
        eventually("the administrator's rights", async || {
            let (status, answer) = self.get(Person::Admin, "/v3/users/u-other").await;
            let groups = self.world.graph.management_groups(person);
            let is_known = groups.iter().any(|group| group == access::GROUP_GLOBAL_ADMIN);
            if status == 200 && is_known { Ok(()) } else { Err((answer, groups)) }
        })
        .await;
    }

    /// Gives owner and member their roles in the cluster and waits until they have them.
    pub async fn bind(&self, cluster: &str) {
        let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(self.world.admin(), cluster);
        for (person, role) in [(Person::Owner, "cluster-owner"), (Person::Member, "cluster-member")]
        {
            let mut binding = ClusterRoleTemplateBinding {
                role_template_name: role.to_owned(),
                user_name: person.id().to_owned(),
                ..ClusterRoleTemplateBinding::default()
            };
            binding.metadata.name = Some(format!("of-{}", person.id()));
            eventually("a namespace to bind in", async || {
                api.create(&PostParams::default(), &binding).await.map(drop)
            })
            .await;
        }
        for person in [Person::Owner, Person::Member] {
            let (own, bindings) = (
                format!("/v3/clusters/{cluster}"),
                format!("/v3/clusterRoleTemplateBindings/{cluster}:of-u-owner"),
            );
            eventually("rights in the cluster", async || {
                let codes = [self.get(person, &own).await.0, self.get(person, &bindings).await.0];
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

    pub fn caller(&self, person: Person) -> (Caller, Client) {
        if person == Person::Anonymous {
            let group = "system:unauthenticated".to_owned();
            let client = self.world.api.client_as("system:anonymous", &[group]);
            return (Caller::anonymous(), client);
        }
        (Caller::user(person.id()), self.world.person(person.id()))
    }

    /// The status, and the body as it is sent.
    pub async fn text(&self, who: Person, method: &str, path: &str, body: &Value) -> (u16, String) {
        let (caller, client) = self.caller(who);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "drover.example");
        let answer = self.view.handle(request.body(body).unwrap(), &caller, &client).await;
        let text = String::from_utf8(answer.body().to_vec()).unwrap();
        (answer.status().as_u16(), text)
    }

    pub async fn ask(&self, who: Person, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.text(who, method, path, body).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    pub async fn get(&self, who: Person, path: &str) -> (u16, Value) {
        self.ask(who, "GET", path, &Value::Null).await
    }

    /// As an administrator; the answer must have this code.
    pub async fn must(&self, code: u16, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(Person::Admin, method, path, body).await;
        assert_eq!(status, code, "{method} {path} {body}: {answer}");
        answer
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
