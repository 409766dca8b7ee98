//! Names in the management API: choosing a name gives no user the objects of another one.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use api_management::{
    Cluster, ClusterRoleTemplateBinding, Project, RoleTemplate, User, condition, keys,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use test_kit::{World, eventually};

/// Concurrent writers of one name.
const WRITERS: usize = 16;

fn code(result: &Result<impl Sized, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

fn namespace(name: &str) -> Namespace {
    Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    }
}

fn user(id: &str, username: &str) -> User {
    let mut user = User { username: username.to_owned(), ..<User as Default>::default() };
    user.metadata.name = Some(id.to_owned());
    user
}

async fn reason(world: &World, cluster: &str) -> String {
    let found = world.clusters().get(cluster).await.unwrap().status.conditions;
    let found = condition::find(&found, "BackingNamespaceCreated");
    found.map(|condition| condition.reason.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_concurrent_creates_of_one_login_name_make_one_user() {
    let world = World::start().await;
    let users: Api<User> = Api::all(world.admin());
    for round in 0..4 {
        let username = format!("ann-{round}");
        let requests = (0..WRITERS).map(|writer| {
            let (users, user) = (users.clone(), user(&format!("u-r{round}w{writer}"), &username));
            tokio::spawn(async move { users.create(&PostParams::default(), &user).await })
        });
        let responses = join_all(requests).await;
        let codes: Vec<u16> =
            responses.iter().map(|response| code(response.as_ref().unwrap())).collect();
        assert_eq!(codes.iter().filter(|&&code| code == 200).count(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| [200, 422].contains(code)), "{codes:?}");
        let all = users.list(&ListParams::default()).await.unwrap();
        let named = all.items.iter().filter(|user| user.username == username).count();
        assert_eq!(named, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_users_do_not_come_to_one_login_name_by_being_renamed_at_once() {
    let world = World::start().await;
    let users: Api<User> = Api::all(world.admin());
    for writer in 0..WRITERS {
        let user = user(&format!("u-w{writer}"), &format!("name-{writer}"));
        users.create(&PostParams::default(), &user).await.unwrap();
    }
    let requests = (0..WRITERS).map(|writer| {
        let users = users.clone();
        let rename = Patch::Merge(json!({"username": "requested"}));
        tokio::spawn(async move {
            users.patch(&format!("u-w{writer}"), &PatchParams::default(), &rename).await
        })
    });
    let responses = join_all(requests).await;
    let renamed: Vec<User> =
        responses.into_iter().filter_map(|response| response.unwrap().ok()).collect();
    assert_eq!(renamed.len(), 1);
    // The name that the user had before is free again, and so is that of a deleted one.
    let old = renamed[0].name_any().replace("u-w", "name-");
    for (id, username) in [("u-next", old.as_str()), ("u-last", "requested")] {
        if username == "requested" {
            users.delete(&renamed[0].name_any(), &DeleteParams::default()).await.unwrap();
        }
        eventually("the name free", async || {
            users.create(&PostParams::default(), &user(id, username)).await.map(drop)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_a_version_without_claims_keep_their_login_names() {
    let world = World::start().await;
    let users: Api<User> = Api::all(world.admin());
    users.create(&PostParams::default(), &user("u-old", "ann")).await.unwrap();
    let claims: Api<ConfigMap> = Api::namespaced(world.admin(), keys::UNIQUE_NAMES_NS);
    let of_ann = async || {
        let all = claims.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().find(|claim| claim.data.as_ref().unwrap()["name"] == "ann")
    };
    let claim = of_ann().await.unwrap();
    claims.delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
    let touch = Patch::Merge(json!({"description": "changed"}));
    users.patch("u-old", &PatchParams::default(), &touch).await.unwrap();
    eventually("the claim of the user", async || match of_ann().await {
        Some(claim) if claim.data.as_ref().unwrap()["holder"] == "u-old" => Ok(()),
        other => Err(other),
    })
    .await;
    let other = users.create(&PostParams::default(), &user("u-new", "ann")).await;
    assert_eq!(code(&other), 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_concurrent_creates_of_one_display_name_make_one_cluster() {
    let world = World::start().await;
    let requests = (0..WRITERS).map(|writer| {
        let clusters = world.clusters();
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some(format!("c-w{writer}"));
        cluster.spec.display_name = "prod".to_owned();
        tokio::spawn(async move { clusters.create(&PostParams::default(), &cluster).await })
    });
    let responses = join_all(requests).await;
    let made = responses.iter().filter(|response| response.as_ref().unwrap().is_ok()).count();
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_a_namespace_does_not_get_the_cluster_of_its_name() {
    let world = World::start().await;
    let namespaces: Api<Namespace> = Api::all(world.admin());
    namespaces.create(&PostParams::default(), &namespace("prod")).await.unwrap();
    world.create_cluster("prod").await;
    eventually("the name taken", async || match reason(&world, "prod").await.as_str() {
        "NameTaken" => Ok(()),
        other => Err(other.to_owned()),
    })
    .await;
    let clusters: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), "prod");
    assert!(clusters.list(&ListParams::default()).await.unwrap().items.is_empty());
    // The cluster is removed without objects that are not its own.
    world.remove("prod").await;
    let kept = namespaces.get("prod").await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_none());
    // When the namespace has been deleted, the next one of its name belongs to the cluster.
    world.create_cluster("prod").await;
    namespaces.delete("prod", &DeleteParams::default()).await.unwrap();
    world.token("prod").await;
    let own = namespaces.get("prod").await.unwrap();
    assert_eq!(own.owner_references()[0].kind, "Cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creator_of_projects_does_not_get_the_namespaces_of_others() {
    let world = World::start().await;
    world.create_cluster("c-alpha").await;
    world.create_cluster("c-beta").await;
    world.token("c-alpha").await;
    world.token("c-beta").await;
    let mut project = Project::default();
    project.spec.display_name = "mine".to_owned();
    let in_alpha: Api<Project> = Api::namespaced(world.admin(), "c-alpha");
    for name in ["prod", "u-x7k2p", "cattle-fleet-system", "p-chosen", "c-beta"] {
        project.metadata.name = Some(name.to_owned());
        let made = in_alpha.create(&PostParams::default(), &project).await;
        assert_eq!(code(&made), 422, "{name}");
    }
    project.metadata = ObjectMeta { generate_name: Some("p-".to_owned()), ..ObjectMeta::default() };
    let made = in_alpha.create(&PostParams::default(), &project).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(world.admin());
    let first = eventually("the project's namespace", async || {
        namespaces.get(&made.name_any()).await.map_err(|error| error.to_string())
    })
    .await;
    // A namespace of the same name in another cluster gets none of its rights.
    project.metadata = ObjectMeta { name: Some(made.name_any()), ..ObjectMeta::default() };
    let in_beta: Api<Project> = Api::namespaced(world.admin(), "c-beta");
    in_beta.create(&PostParams::default(), &project).await.unwrap();
    eventually("the name taken", async || {
        let found = in_beta.get(&made.name_any()).await.unwrap().status.conditions;
        let found = condition::find(&found, "BackingNamespaceCreated").cloned();
        found.filter(|found| found.reason == "NameTaken").ok_or("not yet")
    })
    .await;
    // Nor does a later one of the same cluster.
    in_alpha.delete(&made.name_any(), &DeleteParams::default()).await.unwrap();
    in_beta.delete(&made.name_any(), &DeleteParams::default()).await.unwrap();
    in_alpha.create(&PostParams::default(), &project).await.unwrap();
    eventually("a namespace of its own", async || match namespaces.get(&made.name_any()).await {
        Ok(next) if next.uid() != first.uid() => Ok(()),
        other => Err(other.map(|namespace| namespace.uid())),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_of_two_clusters_never_share_their_rights() {
    let world = World::start().await;
    let templates: Api<RoleTemplate> = Api::all(world.admin());
    for role in ["eu-look", "look"] {
        let mut template =
            RoleTemplate { context: "cluster".to_owned(), ..RoleTemplate::default() };
        template.metadata.name = Some(role.to_owned());
        templates.create(&PostParams::default(), &template).await.unwrap();
    }
    for (cluster, role, user) in [("prod2", "eu-look", "u-one"), ("prod2-eu", "look", "u-two")] {
        world.create_cluster(cluster).await;
        world.token(cluster).await;
        // The name that an earlier version used.
        let labels = [("drover.io/membership".to_owned(), cluster.to_owned())];
        let metadata = ObjectMeta {
            name: Some(format!("old-of-{user}")),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let old = ClusterRole { metadata, ..ClusterRole::default() };
        Api::all(world.admin()).create(&PostParams::default(), &old).await.unwrap();
        let mut binding = ClusterRoleTemplateBinding {
            role_template_name: role.to_owned(),
            user_name: user.to_owned(),
            ..ClusterRoleTemplateBinding::default()
        };
        binding.metadata.name = Some("b".to_owned());
        let bindings: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), cluster);
        eventually("the binding", async || {
            bindings.create(&PostParams::default(), &binding).await.map(drop)
        })
        .await;
    }
    let expected: BTreeSet<String> =
        ["drover:cluster:prod2:eu-look", "drover:cluster:prod2-eu:look"].map(str::to_owned).into();
    let ours = ListParams::default().labels("drover.io/membership");
    eventually("one role and one binding for each, and no old one", async || {
        let roles: Api<ClusterRole> = Api::all(world.admin());
        let bindings: Api<ClusterRoleBinding> = Api::all(world.admin());
        let names = |items: Vec<String>| -> BTreeSet<String> { items.into_iter().collect() };
        let roles = roles.list(&ours).await.unwrap();
        let roles = names(roles.items.iter().map(ResourceExt::name_any).collect());
        let bindings = bindings.list(&ours).await.unwrap();
        let bindings = names(bindings.items.iter().map(ResourceExt::name_any).collect());
        if roles == expected && bindings == expected { Ok(()) } else { Err((roles, bindings)) }
    })
    .await;
    for (user, own, other) in [("u-one", "prod2", "prod2-eu"), ("u-two", "prod2-eu", "prod2")] {
        let clusters: Api<Cluster> = Api::all(world.user_client(user));
        let codes = (code(&clusters.get(own).await), code(&clusters.get(other).await));
        assert_eq!(codes, (200, 403), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_generated_name_of_a_project_is_that_of_a_project_of_another_cluster() {
    let world = World::start().await;
    let project = |name: &str, prefix: Option<&str>| {
        let mut project = Project::default();
        project.metadata.name = Some(name.to_owned());
        project.metadata.generate_name = prefix.map(str::to_owned);
        project.spec.display_name = "shop".to_owned();
        project
    };
    for cluster in ["c-one", "c-two"] {
        world.create_cluster(cluster).await;
    }
    let projects = |cluster: &str| -> Api<Project> { Api::namespaced(world.admin(), cluster) };
    let options = PostParams::default();
    eventually("the first project", async || {
        projects("c-one").create(&options, &project("p-bcdfg", None)).await
    })
    .await;
    // As if it had been generated: an API server that hears of 409 generates another one.
    eventually("the refusal", async || {
        let made = projects("c-two").create(&options, &project("p-bcdfg", Some("p-"))).await;
        match code(&made) {
            409 => Ok(()),
            other => {
                let _ = projects("c-two").delete("p-bcdfg", &DeleteParams::default()).await;
                Err(other)
            }
        }
    })
    .await;
    let made = projects("c-two").create(&options, &project("p-bcdfh", Some("p-"))).await.unwrap();
    assert_eq!(made.name_any(), "p-bcdfh");
}
