//! Roles in projects: who may give them, and what they give in the management API and in a cluster.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use api_management::{
    Cluster, ClusterRoleTemplateBinding, NamespaceAssignment, PolicyRule, Project,
    ProjectRoleTemplateBinding, RoleTemplate, condition, keys,
};
use apiserver::UserInfo;
use controller::ensure::Object;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::rbac::{ours, rule};
use feature_kit::{Membership, RoleResolver};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use rest_view::Caller;
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually, proxied, until};

const CLUSTER: &str = "c-abcde";
const OTHER_CLUSTER: &str = "c-other";

fn code(result: Result<impl Sized, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

async fn names_of<K: Object>(client: &Client) -> BTreeSet<String> {
    let api: Api<K> = Api::all(client.clone());
    let ours = ListParams::default().labels(keys::DOWNSTREAM_OWNED);
    let name =
        |object: &K| format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    api.list(&ours).await.unwrap().items.iter().map(name).collect()
}

/// A management plane with two clusters, and roles for projects.
struct Setup {
    world: World,
}

impl Setup {
    async fn start() -> Self {
        let world = World::start().await;
        for cluster in [CLUSTER, OTHER_CLUSTER] {
            world.create_cluster(cluster).await;
            world.token(cluster).await;
        }
        let setup = Self { world };
        setup.make_roles().await;
        setup
    }

    async fn make_roles(&self) {
        let bindings = || ours(&["projectroletemplatebindings"], &["*"]);
        self.role(
            "deployer",
            vec![
                rule("", &["configmaps"], &["*"]),
                rule("", &["namespaces"], &["create"]),
                rule("", &["persistentvolumes"], &["*"]),
                ours(&["projectroletemplatebindings"], &["get", "list"]),
            ],
        )
        .await;
        self.role("reader", vec![rule("", &["configmaps"], &["get"])]).await;
        self.role("manager", vec![bindings()]).await;
        let own = vec![ours(&["projects"], &["own"]), bindings(), rule("", &["secrets"], &["*"])];
        self.role("lead", own).await;
        self.role("notifying", vec![ours(&["notifiers"], &["*"])]).await;
    }

    async fn role(&self, name: &str, rules: Vec<PolicyRule>) {
        let mut template =
            RoleTemplate { context: "project".to_owned(), rules, ..RoleTemplate::default() };
        template.metadata.name = Some(name.to_owned());
        let templates: Api<RoleTemplate> = Api::all(self.world.admin());
        templates.create(&PostParams::default(), &template).await.unwrap();
        until("the role is known", true, async || self.world.graph.template(name).is_some()).await;
    }

    /// Name of a new project, once it has its namespace.
    async fn project(&self, client: &Client, cluster: &str, name: Option<&str>) -> String {
        let mut project = Project::default();
        project.spec.display_name = "shop".to_owned();
        match name {
            Some(name) => project.metadata.name = Some(name.to_owned()),
            None => project.metadata.generate_name = Some("p-".to_owned()),
        }
        let projects: Api<Project> = Api::namespaced(client.clone(), cluster);
        let made = eventually("a new project", async || {
            projects.create(&PostParams::default(), &project).await
        })
        .await;
        let (name, uid) = (made.name_any(), made.uid());
        let namespaces: Api<Namespace> = Api::all(self.world.admin());
        until("the project's namespace", true, async || {
            let found = namespaces.get_opt(&name).await.unwrap();
            found.is_some_and(|it| it.annotations().get(keys::PROJECT_UID) == uid.as_ref())
        })
        .await;
        name
    }

    async fn give(
        &self,
        client: &Client,
        project: &str,
        name: &str,
        role: &str,
        user: &str,
    ) -> Result<(), kube::Error> {
        let binding = binding(CLUSTER, project, name, role, user);
        let api: Api<ProjectRoleTemplateBinding> = Api::namespaced(client.clone(), project);
        api.create(&PostParams::default(), &binding).await.map(drop)
    }

    /// Gives a role as administrator, and waits until the user has it.
    async fn given(&self, project: &str, role: &str, user: &str) {
        self.give(&self.world.admin(), project, &format!("{role}-{user}"), role, user)
            .await
            .unwrap();
        let group = format!("drover:project:{project}:{role}");
        until("the role group", true, async || self.groups(user).contains(&group)).await;
    }

    fn groups(&self, user: &str) -> Vec<String> {
        self.world.graph.management_groups(Membership { user, groups: &[] })
    }

    fn client(&self, user: &str) -> Client {
        self.world.user_client(user)
    }

    async fn list(&self, user: &str, path: &str) -> (u16, BTreeSet<String>) {
        let view = feature_kit::view::rest_view(&self.world.features, &self.world.context);
        let request = Request::get(path).header("host", "drover.example");
        let request = request.body(bytes::Bytes::new()).unwrap();
        let response = view.handle(request, &Caller::user(user), &self.client(user)).await;
        let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let ids = body["data"].as_array().into_iter().flatten();
        let ids = ids.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect();
        (response.status().as_u16(), ids)
    }
}

fn binding(
    cluster: &str,
    project: &str,
    name: &str,
    role: &str,
    user: &str,
) -> ProjectRoleTemplateBinding {
    let mut binding = ProjectRoleTemplateBinding {
        project_name: format!("{cluster}:{project}"),
        role_template_name: role.to_owned(),
        user_name: user.to_owned(),
        ..ProjectRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    binding
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_names_a_role_for_projects_and_its_own_project() {
    let setup = Setup::start().await;
    let admin = setup.world.admin();
    let project = setup.project(&admin, CLUSTER, None).await;
    let give = async |role: &str| code(setup.give(&admin, &project, "b", role, "u-1").await);
    assert_eq!(give("no-such-role").await, 422);
    assert_eq!(give("cluster-member").await, 422);
    let templates: Api<RoleTemplate> = Api::all(admin.clone());
    let locked = Patch::Merge(json!({"locked": true}));
    templates.patch("manager", &PatchParams::default(), &locked).await.unwrap();
    assert_eq!(give("manager").await, 422);
    let api: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), &project);
    // Of another cluster, of none, in the namespace of a cluster, and with a path in the name.
    for named in [OTHER_CLUSTER, "c-nnnnn", "local", "..", "c-abcde/projects"] {
        let binding = binding(named, &project, "b", "deployer", "u-1");
        let created = api.create(&PostParams::default(), &binding).await;
        assert_eq!(code(created), 422, "{named}");
    }
    let elsewhere: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), CLUSTER);
    for name in [CLUSTER, &project] {
        let binding = binding(CLUSTER, name, "b", "deployer", "u-1");
        let created = elsewhere.create(&PostParams::default(), &binding).await;
        assert_eq!(code(created), 422, "{name}");
    }
    assert_eq!(give("deployer").await, 200);
    // A role that is in use in a project only stays.
    assert_eq!(code(templates.delete("deployer", &DeleteParams::default()).await), 409);
    // Nothing is given in a project that is being deleted.
    let projects: Api<Project> = Api::namespaced(admin.clone(), CLUSTER);
    projects.delete(&project, &DeleteParams::default()).await.unwrap();
    let refused = code(setup.give(&admin, &project, "late", "deployer", "u-1").await);
    assert!([403, 404, 422].contains(&refused), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gives_a_role_in_a_project_that_they_do_not_have() {
    let setup = Setup::start().await;
    let admin = setup.world.admin();
    let project = setup.project(&admin, CLUSTER, None).await;
    setup.given(&project, "manager", "u-manager").await;
    setup.given(&project, "reader", "u-manager").await;
    setup.given(&project, "lead", "u-lead").await;
    let give = async |user: &str, name: &str, role: &str| {
        code(setup.give(&setup.client(user), &project, name, role, "u-x").await)
    };
    until("the right to write bindings", 200, async || {
        let api: Api<ProjectRoleTemplateBinding> =
            Api::namespaced(setup.client("u-manager"), &project);
        code(api.list(&ListParams::default()).await)
    })
    .await;
    assert_eq!(give("u-manager", "a", "reader").await, 200);
    assert_eq!(give("u-manager", "b", "deployer").await, 403);
    assert_eq!(give("u-manager", "b", "lead").await, 403);
    assert_eq!(give("u-nobody", "b", "reader").await, 403);
    // An owner gives every role in the project, and no right outside of it that they lack.
    until("the owner's right", 200, async || give("u-lead", "c", "lead").await).await;
    assert_eq!(give("u-lead", "d", "notifying").await, 403);
    assert_eq!(give("u-lead", "e", "manager").await, 200);
    // What a role says in another project, or in another cluster, counts for nothing here.
    let other = setup.project(&admin, CLUSTER, None).await;
    let there = setup.give(&setup.client("u-lead"), &other, "b", "reader", "u-lead").await;
    assert_eq!(code(there), 403);
    // Who has a role in the cluster, or owns the cluster.
    let crtbs: Api<ClusterRoleTemplateBinding> = Api::namespaced(admin.clone(), CLUSTER);
    let mut owner = ClusterRoleTemplateBinding {
        role_template_name: "cluster-owner".to_owned(),
        user_name: "u-owner".to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    owner.metadata.name = Some("owner".to_owned());
    crtbs.create(&PostParams::default(), &owner).await.unwrap();
    until("the cluster owner's right", 200, async || give("u-owner", "f", "notifying").await).await;
    // A binding does not change.
    let bindings: Api<ProjectRoleTemplateBinding> =
        Api::namespaced(setup.client("u-manager"), &project);
    for change in [
        json!({"roleTemplateName": "lead"}),
        json!({"userName": "u-eve"}),
        json!({"projectName": format!("{CLUSTER}:{other}")}),
        json!({"userName": null, "serviceAccount": "default:default"}),
    ] {
        let patch = Patch::Merge(&change);
        let patched = bindings.patch("a", &PatchParams::default(), &patch).await;
        assert_eq!(code(patched), 422, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_sees_the_project_and_its_cluster_and_no_other() {
    let setup = Setup::start().await;
    let admin = setup.world.admin();
    let project = setup.project(&admin, CLUSTER, None).await;
    let other = setup.project(&admin, CLUSTER, None).await;
    let far = setup.project(&admin, OTHER_CLUSTER, None).await;
    setup.given(&project, "deployer", "u-1").await;
    setup.given(&other, "deployer", "u-2").await;
    setup.given(&other, "lead", "u-2").await;
    let get = async |user: &str, cluster: &str, project: &str| {
        let projects: Api<Project> = Api::namespaced(setup.client(user), cluster);
        code(projects.get(project).await)
    };
    let see = async |user: &str, cluster: &str| {
        code(Api::<Cluster>::all(setup.client(user)).get(cluster).await)
    };
    until("the project and its cluster", (200, 200), async || {
        (get("u-1", CLUSTER, &project).await, see("u-1", CLUSTER).await)
    })
    .await;
    assert_eq!(get("u-1", CLUSTER, &other).await, 403);
    assert_eq!(get("u-1", OTHER_CLUSTER, &far).await, 403);
    assert_eq!(see("u-1", OTHER_CLUSTER).await, 403);
    let change = Patch::Merge(json!({"spec": {"description": "mine"}}));
    let patch = async |user: &str, project: &str| {
        let projects: Api<Project> = Api::namespaced(setup.client(user), CLUSTER);
        code(projects.patch(project, &PatchParams::default(), &change).await)
    };
    assert_eq!(patch("u-1", &project).await, 403);
    until("an owner changes the project", 200, async || patch("u-2", &other).await).await;
    assert_eq!(patch("u-2", &project).await, 403);
    let clusters: Api<Cluster> = Api::all(setup.client("u-2"));
    assert_eq!(code(clusters.patch(CLUSTER, &PatchParams::default(), &change).await), 403);

    // Under /v3: the lists contain what can be read one by one.
    let id = |project: &str| format!("{CLUSTER}:{project}");
    let listed = async |user: &str, plural: &str| {
        let (status, ids) = setup.list(user, &format!("/v3/{plural}")).await;
        assert_eq!(status, 200);
        ids
    };
    let only = |id: String| BTreeSet::from([id]);
    until("the list of projects", only(id(&project)), async || listed("u-1", "projects").await)
        .await;
    assert_eq!(listed("u-1", "clusters").await, only(CLUSTER.to_owned()));
    let bindings = "projectRoleTemplateBindings";
    let own = format!("{project}:deployer-u-1");
    until("the list of bindings", true, async || {
        let ids = listed("u-1", bindings).await;
        ids.contains(&own) && ids.iter().all(|id| id.starts_with(&project))
    })
    .await;
    assert_eq!(listed("u-nobody", bindings).await, BTreeSet::new());

    // It ends with the binding, also on objects of the management API.
    let api: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), &project);
    api.delete("deployer-u-1", &DeleteParams::default()).await.unwrap();
    until("the end of the role", (Vec::new(), 403, 403), async || {
        (setup.groups("u-1"), get("u-1", CLUSTER, &project).await, see("u-1", CLUSTER).await)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_creates_a_project_owns_it_once() {
    let setup = Setup::start().await;
    let admin = setup.world.admin();
    let crtbs: Api<ClusterRoleTemplateBinding> = Api::namespaced(admin.clone(), CLUSTER);
    let mut member = ClusterRoleTemplateBinding {
        role_template_name: "cluster-member".to_owned(),
        user_name: "u-1".to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    member.metadata.name = Some("member".to_owned());
    crtbs.create(&PostParams::default(), &member).await.unwrap();
    let templates: Api<RoleTemplate> = Api::all(admin.clone());
    let default = Patch::Merge(json!({"projectCreatorDefault": true}));
    templates.patch("lead", &PatchParams::default(), &default).await.unwrap();
    let project = eventually("the right to create projects", async || {
        let mut new = Project::default();
        new.metadata.generate_name = Some("p-".to_owned());
        new.spec.display_name = "mine".to_owned();
        let projects: Api<Project> = Api::namespaced(setup.client("u-1"), CLUSTER);
        projects.create(&PostParams::default(), &new).await
    })
    .await
    .name_any();
    let group = format!("drover:project:{project}:lead");
    until("the creator owns the project", true, async || setup.groups("u-1").contains(&group))
        .await;
    let projects: Api<Project> = Api::namespaced(admin.clone(), CLUSTER);
    let is_made = async |name: &str| {
        let stored = projects.get(name).await.unwrap();
        condition::is_true(&stored.status.conditions, "CreatorMadeOwner")
    };
    until("the condition", true, async || is_made(&project).await).await;
    // Once: an administrator takes it away.
    let api: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), &project);
    api.delete("creator-lead", &DeleteParams::default()).await.unwrap();
    let touch = Patch::Merge(json!({"spec": {"description": "again"}}));
    projects.patch(&project, &PatchParams::default(), &touch).await.unwrap();
    until("the end of the role", false, async || setup.groups("u-1").contains(&group)).await;
    // Projects that the server made have no creator.
    let all = projects.list(&ListParams::default()).await.unwrap();
    let default = all.items.iter().find(|project| project.is_default()).unwrap().name_any();
    until("the condition of Default", true, async || is_made(&default).await).await;
    let there: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), &default);
    assert!(there.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(api.get_opt("creator-lead").await.unwrap().is_none());
}

/// A connected cluster, reached like through the proxy.
struct Downstream {
    setup: Setup,
    cluster: Arc<KubeApi>,
}

impl Downstream {
    async fn start() -> Self {
        let setup = Setup::start().await;
        let cluster = KubeApi::start(Profile::Cluster).await;
        setup.world.join(CLUSTER, &cluster).await;
        let clusters = setup.world.clusters();
        let applied = [
            "RolesApplied",
            "ProjectRolesApplied",
            "NamespaceProjectsRoleApplied",
            "ProjectSecretsRoleApplied",
        ];
        until("Drover's own roles, and the projects of namespaces", true, async || {
            let status = clusters.get(CLUSTER).await.unwrap().status;
            let is_true = |name: &&str| condition::is_true(&status.conditions, name);
            status.namespaces_assigned && applied.iter().all(is_true)
        })
        .await;
        Self { setup, cluster }
    }

    fn client(&self, user: &str) -> Client {
        let identity = match user {
            "" => UserInfo::new("root", &["system:masters"]),
            user => {
                let of = Membership { user, groups: &[] };
                let mut groups = self.setup.world.graph.cluster_groups(CLUSTER, of);
                groups.extend(["system:authenticated".to_owned(), GROUP_PEOPLE.to_owned()]);
                UserInfo { name: user.to_owned(), groups, ..UserInfo::default() }
            }
        };
        let (cluster, features) = (self.cluster.clone(), self.setup.world.features.clone());
        let service = move |request: Request<kube::client::Body>| {
            let (features, cluster) = (features.clone(), cluster.clone());
            let identity = identity.clone();
            async move {
                let server = &cluster.server;
                let sent = proxied::send(&features, CLUSTER, server, &identity, request).await;
                Ok::<_, Infallible>(sent)
            }
        };
        Client::new(tower::service_fn(service), "default")
    }

    async fn create_namespace(&self, user: &str, name: &str, project: Option<&str>) -> u16 {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let of = |project: &str| (keys::PROJECT_ID.to_owned(), format!("{CLUSTER}:{project}"));
        namespace.metadata.annotations = project.map(|project| [of(project)].into());
        let namespaces: Api<Namespace> = Api::all(self.client(user));
        code(namespaces.create(&PostParams::default(), &namespace).await)
    }

    async fn apply_namespace(&self, user: &str, name: &str, project: Option<&str>) -> u16 {
        let id = project.map(|project| format!("{CLUSTER}:{project}"));
        let body = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "annotations": {keys::PROJECT_ID: id}}});
        let namespaces: Api<Namespace> = Api::all(self.client(user));
        code(namespaces.patch(name, &PatchParams::apply("test"), &Patch::Apply(&body)).await)
    }

    async fn move_namespace(&self, name: &str, project: Option<&str>) {
        let id = project.map(|project| format!("{CLUSTER}:{project}"));
        let patch = Patch::Merge(json!({"metadata": {"annotations": {keys::PROJECT_ID: id}}}));
        let namespaces: Api<Namespace> = Api::all(self.client(""));
        namespaces.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    fn inside<K>(&self, user: &str, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(user), namespace)
    }

    async fn may_write(&self, user: &str, namespace: &str) -> u16 {
        let mut object = ConfigMap::default();
        object.metadata.generate_name = Some("x-".to_owned());
        code(self.inside(user, namespace).create(&PostParams::default(), &object).await)
    }

    /// All objects of Drover in the cluster.
    async fn objects(&self) -> BTreeSet<String> {
        let admin = self.cluster.admin();
        let (roles, bindings, inside) = tokio::join!(
            names_of::<ClusterRole>(&admin),
            names_of::<ClusterRoleBinding>(&admin),
            names_of::<RoleBinding>(&admin)
        );
        let kind = |kind: &str, names: BTreeSet<String>| -> Vec<String> {
            names.iter().map(|name| format!("{kind} {name}")).collect()
        };
        [kind("role", roles), kind("binding", bindings), kind("inside", inside)]
            .concat()
            .into_iter()
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_in_a_project_holds_in_its_namespaces_whatever_the_number_of_users() {
    let downstream = Downstream::start().await;
    let setup = &downstream.setup;
    let admin = setup.world.admin();
    let project = setup.project(&admin, CLUSTER, None).await;
    let other = setup.project(&admin, CLUSTER, None).await;
    let nothing = downstream.objects().await;
    setup.given(&project, "deployer", "u-1").await;
    setup.given(&other, "reader", "u-2").await;
    assert_eq!(downstream.create_namespace("", "web", Some(&project)).await, 200);
    assert_eq!(downstream.create_namespace("", "blog", Some(&other)).await, 200);
    assert_eq!(downstream.create_namespace("", "loose", None).await, 200);
    until("the right in the namespace", 200, async || downstream.may_write("u-1", "web").await)
        .await;
    assert_eq!(downstream.may_write("u-1", "blog").await, 403);
    assert_eq!(downstream.may_write("u-1", "loose").await, 403);
    assert_eq!(downstream.may_write("u-2", "web").await, 403);
    let see = async |user: &str, name: &str| {
        code(Api::<Namespace>::all(downstream.client(user)).get(name).await)
    };
    until("the namespace", 200, async || see("u-1", "web").await).await;
    until("the reader's namespace", 200, async || see("u-2", "blog").await).await;
    assert_eq!((see("u-1", "blog").await, see("u-2", "web").await), (403, 403));
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> =
        Api::all(downstream.client("u-1"));
    until("the shared volumes", 200, async || code(volumes.list(&ListParams::default()).await))
        .await;
    let deleted = volumes.delete("x", &DeleteParams::default()).await;
    assert_eq!(code(deleted), 403, "only reads are shared");

    // Nothing so far depends on these.
    for name in ["role /drover:cluster:reader", "inside blog/drover:project:reader"] {
        until(name, true, async || downstream.objects().await.contains(name)).await;
    }
    // More users change nothing in the cluster.
    let before = downstream.objects().await;
    for n in 0..20 {
        setup.given(&project, "deployer", &format!("u-more{n}")).await;
    }
    assert_eq!(downstream.may_write("u-more7", "web").await, 200);
    assert_eq!(downstream.objects().await, before);

    // Drift is repaired.
    let bindings: Api<RoleBinding> = Api::namespaced(downstream.cluster.admin(), "web");
    bindings.delete("drover:project:deployer", &DeleteParams::default()).await.unwrap();
    until("the binding is back", 200, async || downstream.may_write("u-1", "web").await).await;
    let roles: Api<ClusterRole> = Api::all(downstream.cluster.admin());
    let name = format!("drover:namespaces:{project}");
    let all = Patch::Merge(json!({"rules": [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}]}));
    roles.patch(&name, &PatchParams::default(), &all).await.unwrap();
    until("the role is back", 403, async || see("u-1", "loose").await).await;

    // It follows the namespace, and ends with the binding.
    downstream.move_namespace("web", Some(&other)).await;
    until("the end in a namespace that was moved", (403, 403), async || {
        (downstream.may_write("u-1", "web").await, see("u-1", "web").await)
    })
    .await;
    downstream.move_namespace("web", Some(&project)).await;
    until("the right is back", 200, async || downstream.may_write("u-1", "web").await).await;
    let prtbs: Api<ProjectRoleTemplateBinding> = Api::namespaced(admin.clone(), &project);
    prtbs.delete("deployer-u-1", &DeleteParams::default()).await.unwrap();
    until("the end of the role", 403, async || downstream.may_write("u-1", "web").await).await;
    assert_eq!(downstream.may_write("u-more7", "web").await, 200);

    // Nothing is left of a project and its roles.
    let projects: Api<Project> = Api::namespaced(admin.clone(), CLUSTER);
    for name in [&project, &other] {
        projects.delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("nothing is left", nothing, async || downstream.objects().await).await;
    assert_eq!(see("u-more7", "web").await, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_create_namespaces_in_their_project_only() {
    let downstream = Downstream::start().await;
    let setup = &downstream.setup;
    let admin = setup.world.admin();
    let project = setup.project(&admin, CLUSTER, None).await;
    let other = setup.project(&admin, CLUSTER, None).await;
    setup.given(&project, "deployer", "u-1").await;
    setup.given(&other, "reader", "u-1").await;
    until("the right to create", 200, async || {
        downstream.create_namespace("u-1", "mine", Some(&project)).await
    })
    .await;
    until("the right in the new namespace", 200, async || {
        downstream.may_write("u-1", "mine").await
    })
    .await;
    assert_eq!(downstream.create_namespace("u-1", "theirs", Some(&other)).await, 403);
    assert_eq!(downstream.create_namespace("u-1", "free", None).await, 403);
    assert_eq!(downstream.apply_namespace("u-1", "free", None).await, 403);
    assert_eq!(downstream.apply_namespace("u-1", "free", Some("p-nnnnn")).await, 403);
    let namespaces: Api<Namespace> = Api::all(downstream.cluster.admin());
    assert!(namespaces.get_opt("free").await.unwrap().is_none());
    // Of another cluster, so of none of this one's projects.
    let mut foreign = Namespace::default();
    foreign.metadata.name = Some("foreign".to_owned());
    let id = (keys::PROJECT_ID.to_owned(), format!("{OTHER_CLUSTER}:{project}"));
    foreign.metadata.annotations = Some([id].into());
    let own: Api<Namespace> = Api::all(downstream.client("u-1"));
    assert_eq!(code(own.create(&PostParams::default(), &foreign).await), 403);
    // It is in the project at once, and its members do not take it out.
    assert_eq!(downstream.create_namespace("u-1", "applied", Some(&project)).await, 200);
    let assignments: Api<NamespaceAssignment> = Api::namespaced(admin.clone(), CLUSTER);
    until("its project", Some(project.clone()), async || {
        let found = assignments.get_opt("applied").await.unwrap();
        found.and_then(|it| it.spec.assigned).map(|it| it.project)
    })
    .await;
    until("the right in it", 200, async || downstream.may_write("u-1", "applied").await).await;
    let out = Patch::Merge(json!({"metadata": {"annotations": {keys::PROJECT_ID: null}}}));
    assert_eq!(code(own.patch("applied", &PatchParams::default(), &out).await), 403);
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "shop"}}}));
    until("the right to change it", 200, async || {
        code(own.patch("applied", &PatchParams::default(), &label).await)
    })
    .await;
    assert_eq!(code(own.delete("applied", &DeleteParams::default()).await), 200);
    // Whom the cluster itself allows to create namespaces is not limited to projects.
    let rbac = "rbac.authorization.k8s.io";
    let role: ClusterRole = serde_json::from_value(json!({"metadata": {"name": "creators"},
        "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}]}))
    .unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "creators"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "creators"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "u-1"}]}))
    .unwrap();
    let there = downstream.cluster.admin();
    Api::all(there.clone()).create(&PostParams::default(), &role).await.unwrap();
    Api::all(there).create(&PostParams::default(), &binding).await.unwrap();
    until("the cluster's own right", 200, async || {
        downstream.create_namespace("u-1", "free", None).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_of_a_name_that_was_used_gives_nothing_to_its_earlier_members() {
    let downstream = Downstream::start().await;
    let setup = &downstream.setup;
    let admin = setup.world.admin();
    let name = "p-bcdfg";
    setup.project(&admin, CLUSTER, Some(name)).await;
    setup.given(name, "lead", "u-1").await;
    setup.given(name, "deployer", "u-1").await;
    assert_eq!(downstream.create_namespace("", "web", Some(name)).await, 200);
    until("the right in the namespace", 200, async || downstream.may_write("u-1", "web").await)
        .await;
    let projects: Api<Project> = Api::namespaced(admin.clone(), CLUSTER);
    projects.delete(name, &DeleteParams::default()).await.unwrap();
    until("the end of all roles", Vec::<String>::new(), async || setup.groups("u-1")).await;
    setup.project(&admin, CLUSTER, Some(name)).await;
    assert_eq!(downstream.create_namespace("", "new", Some(name)).await, 200);
    setup.given(name, "deployer", "u-2").await;
    until("the new member's right", 200, async || downstream.may_write("u-2", "new").await).await;
    assert_eq!(setup.groups("u-1"), Vec::<String>::new());
    assert_eq!(downstream.may_write("u-1", "new").await, 403);
    assert_eq!(downstream.may_write("u-2", "web").await, 403, "it left with the earlier project");
    let get: Api<Project> = Api::namespaced(setup.client("u-1"), CLUSTER);
    assert_eq!(code(get.get(name).await), 403);
}
