//! Attacks on rights in one process: each test is named after what an attacker would have gained.

#![allow(clippy::unwrap_used)]

use api_management::{Cluster, ClusterRoleTemplateBinding, PolicyRule, RoleTemplate, table, types};
use feature_kit::{Membership, RoleResolver};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use test_kit::{World, until};

const CLUSTER: &str = "c-alpha";
const MANAGER: &str = "u-manager";

fn code(result: Result<impl Sized, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

fn objects(client: Client, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = (api_management::GROUP, api_management::VERSION);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

async fn create(
    api: &Api<DynamicObject>,
    kind: &str,
    mut object: Value,
) -> Result<DynamicObject, kube::Error> {
    object["apiVersion"] = api_management::API_VERSION.into();
    object["kind"] = kind.into();
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

fn groups(world: &World, user: &str) -> Vec<String> {
    world.graph.management_groups(Membership { user, groups: &[] })
}

/// A role template for clusters, and a binding that grants it to a user.
async fn role(world: &World, name: &str, rules: Vec<PolicyRule>, user: &str) {
    let mut template =
        RoleTemplate { context: "cluster".to_owned(), rules, ..RoleTemplate::default() };
    template.metadata.name = Some(name.to_owned());
    let templates: Api<RoleTemplate> = Api::all(world.admin());
    templates.create(&PostParams::default(), &template).await.unwrap();
    bind(&world.admin(), &format!("{name}-{user}"), name, user).await.unwrap();
    until("the role", true, async || groups(world, user).iter().any(|group| group.ends_with(name)))
        .await;
}

async fn bind(client: &Client, name: &str, role: &str, user: &str) -> Result<(), kube::Error> {
    let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(client.clone(), CLUSTER);
    let mut binding = ClusterRoleTemplateBinding {
        role_template_name: role.to_owned(),
        user_name: user.to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    api.create(&PostParams::default(), &binding).await.map(drop)
}

fn rule(resources: &[&str], verbs: &[&str]) -> PolicyRule {
    feature_kit::rbac::ours(resources, verbs)
}

async fn with_cluster() -> World {
    let world = World::start().await;
    world.create_cluster(CLUSTER).await;
    world.token(CLUSTER).await;
    world
}

/// Name of a new project, once it has its namespace.
async fn project(world: &World) -> String {
    let projects = objects(world.admin(), "Project", Some(CLUSTER));
    let new = json!({"metadata": {"generateName": "p-"}, "spec": {"displayName": "x"}});
    let name = create(&projects, "Project", new).await.unwrap().name_any();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.admin());
    until("the project's namespace", true, async || {
        namespaces.get_opt(&name).await.unwrap().is_some()
    })
    .await;
    name
}

/// Grants a user a right in all of the management API, by its own RBAC.
async fn allow(world: &World, user: &str, resources: &[&str]) {
    let rules =
        json!([{"apiGroups": [api_management::GROUP], "resources": resources, "verbs": ["*"]}]);
    let metadata = json!({"name": format!("{user}-writes")});
    let role: ClusterRole =
        serde_json::from_value(json!({"metadata": metadata, "rules": rules})).unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": role.name_any()},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
    .unwrap();
    Api::all(world.admin()).create(&PostParams::default(), &role).await.unwrap();
    Api::all(world.admin()).create(&PostParams::default(), &binding).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_of_members_does_not_become_owner_by_editing_a_binding() {
    let world = with_cluster().await;
    let all = rule(&["clusterroletemplatebindings"], &["*"]);
    role(&world, "members-manager", vec![all], MANAGER).await;
    // For a user of an identity provider who has never logged in here.
    let admins = objects(world.admin(), "ClusterRoleTemplateBinding", Some(CLUSTER));
    let absent = json!({"metadata": {"name": "absent"}, "clusterName": CLUSTER,
        "roleTemplateName": "cluster-owner", "userPrincipalName": "github_user://12345"});
    create(&admins, "ClusterRoleTemplateBinding", absent).await.unwrap();
    let own = objects(world.user_client(MANAGER), "ClusterRoleTemplateBinding", Some(CLUSTER));
    until("the right to write bindings", 200, async || code(own.get("absent").await)).await;
    let refused = bind(&world.user_client(MANAGER), "mine", "cluster-owner", MANAGER).await;
    assert_eq!(code(refused), 403);
    let before = groups(&world, MANAGER);
    for (name, change) in [
        ("absent", json!({"userPrincipalName": format!("local://{MANAGER}")})),
        ("absent", json!({"userName": MANAGER})),
        ("absent", json!({"userName": MANAGER, "userPrincipalName": null})),
        ("absent", json!({"userPrincipalName": null, "groupName": "system:authenticated"})),
        ("members-manager-u-manager", json!({"roleTemplateName": "cluster-owner"})),
        ("members-manager-u-manager", json!({"userPrincipalName": "local://u-other"})),
        ("members-manager-u-manager", json!({"clusterName": "local"})),
        ("members-manager-u-manager", json!({"userName": null, "groupName": "everybody"})),
    ] {
        let patched = own.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
        assert_eq!(code(patched), 422, "{name} {change}");
    }
    // Fields without rights may change, and users who may delete a binding still may.
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    own.patch("absent", &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    own.delete("absent", &Default::default()).await.unwrap();
    assert_eq!(groups(&world, MANAGER), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_fills_in_whom_a_binding_of_any_kind_left_open() {
    let world = with_cluster().await;
    let project = project(&world).await;
    let role = json!({"metadata": {"name": "of-projects"}, "context": "project"});
    let templates = objects(world.admin(), "RoleTemplate", None);
    create(&templates, "RoleTemplate", role).await.unwrap();
    let bindings = types::tables().filter_map(|found| match found.stored {
        table::Stored::Kind { kind, .. } if kind.ends_with("Binding") => Some((found, kind)),
        _ => None,
    });
    let mut count = 0;
    for (found, kind) in bindings {
        let is_in_project = kind == "ProjectRoleTemplateBinding";
        let namespace = if is_in_project { project.as_str() } else { CLUSTER };
        let api = objects(world.admin(), kind, found.namespaced.then_some(namespace));
        let role = if is_in_project { "of-projects" } else { "cluster-member" };
        let mut object = json!({"metadata": {"name": "of-ann"}, "roleTemplateName": role,
            "clusterName": CLUSTER, "projectName": format!("{CLUSTER}:{project}"),
            "userName": "u-ann", "globalRoleName": "user",
            "targetProjectName": format!("{CLUSTER}:{project}")});
        if kind == "PodSecurityPolicyTemplateProjectBinding" {
            object["podSecurityPolicyTemplateName"] = "restricted".into();
        }
        create(&api, kind, object).await.unwrap();
        for field in api_management::bindings::fixed_fields(kind) {
            for other in [json!("u-eve"), Value::Null] {
                let stored = serde_json::to_value(api.get("of-ann").await.unwrap()).unwrap();
                if stored[&field].is_null() && other.is_null() {
                    continue;
                }
                let patch = Patch::Merge(json!({&field: other}));
                let patched = api.patch("of-ann", &PatchParams::default(), &patch).await;
                let after = serde_json::to_value(api.get("of-ann").await.unwrap()).unwrap();
                assert_eq!(after[&field], stored[&field], "{kind}.{field} to {other}");
                // Omitted fields that follow from the namespace are defaulted.
                let is_default = field == "clusterName" && other.is_null();
                assert_eq!(code(patched), if is_default { 200 } else { 422 }, "{kind}.{field}");
                count += 1;
            }
        }
    }
    assert!(count > 15, "{count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_of_roles_does_not_become_owner_by_editing_a_role() {
    let world = with_cluster().await;
    role(&world, "readers", vec![rule(&["nodes"], &["get"])], MANAGER).await;
    allow(&world, MANAGER, &["roletemplates", "globalroles", "globalrolebindings"]).await;
    let templates = objects(world.user_client(MANAGER), "RoleTemplate", None);
    until("the right to write roles", 200, async || {
        let change = Patch::Merge(json!({"displayName": "Readers"}));
        code(templates.patch("readers", &PatchParams::default(), &change).await)
    })
    .await;
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    for change in [
        json!({"rules": everything}),
        json!({"roleTemplateNames": ["cluster-owner"]}),
        json!({"external": true}),
        json!({"locked": true}),
        json!({"context": "project"}),
    ] {
        let patch = Patch::Merge(&change);
        let patched = templates.patch("readers", &PatchParams::default(), &patch).await;
        assert_eq!(code(patched), 403, "{change}");
    }
    let wide = json!({"metadata": {"name": "wide"}, "context": "cluster", "rules": everything});
    assert_eq!(code(create(&templates, "RoleTemplate", wide.clone()).await), 403);
    let roles = objects(world.user_client(MANAGER), "GlobalRole", None);
    assert_eq!(code(create(&roles, "GlobalRole", wide).await), 403);
    let bindings = objects(world.user_client(MANAGER), "GlobalRoleBinding", None);
    let mine =
        json!({"metadata": {"name": "mine"}, "globalRoleName": "admin", "userName": MANAGER});
    assert_eq!(code(create(&bindings, "GlobalRoleBinding", mine).await), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_for_one_object_does_not_make_an_owner_of_the_cluster() {
    let world = with_cluster().await;
    let named = |name: &str| PolicyRule {
        api_groups: vec!["*".to_owned()],
        resource_names: vec![name.to_owned()],
        ..rule(&["*"], &["*"])
    };
    role(&world, "one-object", vec![named("one-configmap")], "u-narrow").await;
    role(&world, "this-cluster", vec![named(CLUSTER)], "u-named").await;
    let change = Patch::Merge(json!({"spec": {"description": "mine"}}));
    let patch = async |user: &str| {
        let clusters: Api<Cluster> = Api::all(world.user_client(user));
        code(clusters.patch(CLUSTER, &PatchParams::default(), &change).await)
    };
    // The rule that names the cluster applies to it; both can read it.
    until("rights on the cluster", 200, async || patch("u-named").await).await;
    let narrow: Api<Cluster> = Api::all(world.user_client("u-narrow"));
    until("a look at the cluster", 200, async || code(narrow.get(CLUSTER).await)).await;
    assert_eq!(patch("u-narrow").await, 403);
    assert_eq!(code(narrow.delete(CLUSTER, &Default::default()).await), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_becomes_owner_by_naming_themselves_creator_of_a_cluster() {
    let world = with_cluster().await;
    let clusters: Api<Cluster> = Api::all(world.admin());
    // The server made it, so it has no creator.
    let creator = json!({"metadata": {"annotations": {"field.cattle.io/creatorId": MANAGER}}});
    let patched = clusters.patch("local", &PatchParams::default(), &Patch::Merge(&creator)).await;
    let annotations = patched.unwrap().annotations().clone();
    assert_eq!(annotations.get("field.cattle.io/creatorId"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_binding_is_left_to_the_next_role_of_its_name() {
    let world = with_cluster().await;
    let templates: Api<RoleTemplate> = Api::all(world.admin());
    let bindings: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), CLUSTER);
    // Watches that are behind must not decide: each request follows the response before at once.
    for round in 0..50 {
        let name = format!("role-{round}");
        let mut template =
            RoleTemplate { context: "cluster".to_owned(), ..RoleTemplate::default() };
        template.metadata.name = Some(name.clone());
        templates.create(&PostParams::default(), &template).await.unwrap();
        until("the role is known", true, async || world.graph.template(&name).is_some()).await;

        bind(&world.admin(), "b", &name, MANAGER).await.unwrap();
        let used = templates.delete(&name, &DeleteParams::default()).await;
        assert_eq!(code(used), 409, "round {round}: a role in use was deleted");
        bindings.delete("b", &DeleteParams::default()).await.unwrap();
        templates.delete(&name, &DeleteParams::default()).await.unwrap();
        let bound = bind(&world.admin(), "b", &name, MANAGER).await;
        assert_eq!(code(bound), 422, "round {round}: a role that was deleted was given");
    }
}
