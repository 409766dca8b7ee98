//! Rights of controllers, members, owners, administrators, and users without roles.

#![allow(clippy::unwrap_used)]

use api_management::{Cluster, ClusterRoleTemplateBinding, Node, RoleTemplate, Setting, User};
use feature_kit::{Clients, Membership, RoleResolver};
use identity::{Authenticate, Presented, Refused, Secret};
use k8s_openapi::api::core::v1::Secret as KubeSecret;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use test_kit::{KubeApi, Profile, World, eventually};

use feature_identity::{LoginError, LoginRequest, TokenRequest, bootstrap};

fn code(result: Result<impl Sized, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

async fn bind(client: &Client, cluster: &str, name: &str, role: &str, user: &str) -> u16 {
    let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(client.clone(), cluster);
    let mut binding = ClusterRoleTemplateBinding {
        role_template_name: role.to_owned(),
        user_name: user.to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    code(api.create(&PostParams::default(), &binding).await)
}

async fn has_group(world: &World, user: &str, group: &str) {
    eventually("the role group", async || {
        let groups = world.graph.management_groups(Membership { user, groups: &[] });
        if groups.iter().any(|g| g == group) { Ok(()) } else { Err(groups) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_controller_may_change_a_spec_or_grant_itself_anything() {
    let world = World::start().await;
    world.create_cluster("c-abcde").await;
    world.token("c-abcde").await;
    let spec = Patch::Merge(json!({"spec": {"description": "mine"}}));
    for identity in feature_kit::runtime::identities(&world.features) {
        let client = world.api.controller(&identity);
        let clusters: Api<Cluster> = Api::all(client.clone());
        let patched = clusters.patch("c-abcde", &PatchParams::default(), &spec).await;
        assert_eq!(code(patched), 403, "{}", identity.name);
        let settings: Api<Setting> = Api::all(client.clone());
        let value = Patch::Merge(json!({"value": "x"}));
        let patched = settings.patch("ui-brand", &PatchParams::default(), &value).await;
        assert_eq!(code(patched), 403, "{}", identity.name);
        let users: Api<User> = Api::all(client.clone());
        let created = users.create(&PostParams::default(), &User::default()).await;
        // The directory creates those who come from an identity provider for the first time.
        let expected = if identity.name == "directory" { 422 } else { 403 };
        assert_eq!(code(created), expected, "{}", identity.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_see_their_cluster_owners_change_it_and_others_see_nothing() {
    let world = World::start().await;
    world.create_cluster("c-one").await;
    world.create_cluster("c-two").await;
    world.token("c-one").await;
    assert_eq!(bind(&world.admin(), "c-one", "m", "cluster-member", "u-member").await, 200);
    assert_eq!(bind(&world.admin(), "c-one", "o", "cluster-owner", "u-owner").await, 200);
    has_group(&world, "u-member", "drover:cluster:c-one:cluster-member").await;
    has_group(&world, "u-owner", "drover:cluster:c-one:cluster-owner").await;
    let get = async |user: &str, cluster: &str| {
        code(Api::<Cluster>::all(world.user_client(user)).get(cluster).await)
    };
    eventually("rights on the cluster", async || {
        let codes = (get("u-member", "c-one").await, get("u-owner", "c-one").await);
        if codes == (200, 200) { Ok(()) } else { Err(codes) }
    })
    .await;
    assert_eq!(get("u-member", "c-two").await, 403);
    assert_eq!(get("u-nobody", "c-one").await, 403);
    let patch = Patch::Merge(json!({"spec": {"description": "x"}}));
    let change = async |user: &str| {
        let clusters: Api<Cluster> = Api::all(world.user_client(user));
        code(clusters.patch("c-one", &PatchParams::default(), &patch).await)
    };
    assert_eq!((change("u-member").await, change("u-owner").await), (403, 200));
    let nodes: Api<Node> = Api::namespaced(world.user_client("u-member"), "c-one");
    eventually("rights in the cluster's namespace", async || {
        match code(nodes.list(&ListParams::default()).await) {
            200 => Ok(()),
            code => Err(code),
        }
    })
    .await;
    // A member cannot make another user an owner; an owner can.
    assert_eq!(
        bind(&world.user_client("u-member"), "c-one", "x", "cluster-owner", "u-x").await,
        403
    );
    eventually("an owner's right to make another", async || {
        match bind(&world.user_client("u-owner"), "c-one", "y", "cluster-owner", "u-y").await {
            200 => Ok(()),
            code => Err(code),
        }
    })
    .await;
    assert_eq!(bind(&world.admin(), "c-one", "z", "no-such-role", "u-z").await, 422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_ends_with_its_binding_on_both_sides() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import("c-abcde", &downstream).await;
    let roles: Api<ClusterRole> = Api::all(downstream.admin());
    let bindings: Api<ClusterRoleBinding> = Api::all(downstream.admin());
    let name = "drover:cluster:cluster-member";
    assert!(roles.get_opt(name).await.unwrap().is_none());
    bind(&world.admin(), "c-abcde", "m", "cluster-member", "u-1").await;
    let binding = eventually("the role downstream", async || {
        bindings.get_opt(name).await.unwrap().ok_or("not there")
    })
    .await;
    let subjects = binding.subjects.unwrap();
    assert_eq!(subjects[0].name, "drover:cluster:c-abcde:cluster-member");

    // A second member changes nothing downstream.
    bind(&world.admin(), "c-abcde", "m2", "cluster-member", "u-2").await;
    has_group(&world, "u-2", "drover:cluster:c-abcde:cluster-member").await;
    let again = bindings.get(name).await.unwrap();
    assert_eq!(again.metadata.resource_version, binding.metadata.resource_version);

    // Manual changes there are reverted.
    let nothing = Patch::Merge(json!({"rules": []}));
    roles.patch(name, &PatchParams::default(), &nothing).await.unwrap();
    eventually("the rules back", async || {
        let rules = roles.get(name).await.unwrap().rules.unwrap_or_default();
        if rules.is_empty() { Err("empty") } else { Ok(()) }
    })
    .await;

    let crtbs: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), "c-abcde");
    for binding in ["m", "m2"] {
        crtbs.delete(binding, &DeleteParams::default()).await.unwrap();
    }
    eventually("the role is deleted downstream", async || {
        let groups = world.graph.cluster_groups("c-abcde", Membership { user: "u-1", groups: &[] });
        let there = roles.get_opt(name).await.unwrap().is_some();
        if !there && groups.is_empty() { Ok(()) } else { Err((there, groups)) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_creator_of_a_cluster_owns_it() {
    let world = World::start().await;
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-mine".to_owned());
    let maker = world.api.client_as("u-maker", &["system:masters".to_owned()]);
    Api::<Cluster>::all(maker).create(&PostParams::default(), &cluster).await.unwrap();
    has_group(&world, "u-maker", "drover:cluster:c-mine:cluster-owner").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_roles_and_used_roles_cannot_be_deleted() {
    let world = World::start().await;
    world.create_cluster("c-one").await;
    world.token("c-one").await;
    let templates: Api<RoleTemplate> = Api::all(world.admin());
    let deleted = templates.delete("cluster-owner", &DeleteParams::default()).await;
    assert_eq!(code(deleted), 403);
    let mut own = RoleTemplate { context: "cluster".to_owned(), ..RoleTemplate::default() };
    own.metadata.name = Some("readers".to_owned());
    templates.create(&PostParams::default(), &own).await.unwrap();
    eventually("the role usable", async || {
        match bind(&world.admin(), "c-one", "r", "readers", "u-1").await {
            200 => Ok(()),
            code => Err(code),
        }
    })
    .await;
    has_group(&world, "u-1", "drover:cluster:c-one:readers").await;
    let deleted = templates.delete("readers", &DeleteParams::default()).await;
    assert_eq!(code(deleted), 409);
}

fn login(password: &Secret) -> LoginRequest {
    LoginRequest {
        username: "admin".to_owned(),
        password: password.clone(),
        description: String::new(),
        kubeconfig: None,
        address: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_administrator_is_made_once_and_may_do_everything() {
    let world = World::start().await;
    let cut_short = bootstrap(&world.admin(), None).await.unwrap();
    let first = bootstrap(&world.admin(), None).await.unwrap();
    assert_eq!(cut_short.user_id, first.user_id);
    first.confirm().await.unwrap();
    let password = first.generated.clone().unwrap();
    let given = Some(Secret::new("another password"));
    let again = bootstrap(&world.admin(), given).await.unwrap();
    assert!(again.user_id.is_none() && again.generated.is_none());

    let id = first.user_id.clone().unwrap();
    eventually("the administrator known", async || {
        let person = Membership { user: &id, groups: &[] };
        let known = world.graph.is_global_admin(person)
            && world.directory.user_by_username("admin").is_some();
        if known { Ok(()) } else { Err("not yet") }
    })
    .await;
    let issued = world.directory.login(login(&password)).await.unwrap();
    let presented = Presented { token: issued.key.clone(), source: identity::TokenSource::Header };
    let identity = world.directory.authenticate(&presented).await.unwrap();
    assert_eq!(identity.user_id, id);
    assert_eq!(identity.principal_ids, [format!("local://{id}")]);
    let settings: Api<Setting> = Api::all(world.user_client(&id));
    let change = Patch::Merge(json!({"value": "mine"}));
    assert_eq!(code(settings.patch("ui-brand", &PatchParams::default(), &change).await), 200);
    let stranger: Api<Setting> = Api::all(world.user_client("u-x"));
    assert_eq!(code(stranger.get("ui-brand").await), 200);
    let denied = stranger.patch("ui-brand", &PatchParams::default(), &change).await;
    assert_eq!(code(denied), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_ends_when_its_token_is_revoked_and_wrong_passwords_fail_alike() {
    let world = World::start().await;
    let first = bootstrap(&world.admin(), Some(Secret::new("correct horse battery"))).await;
    let id = first.unwrap().user_id.unwrap();
    eventually("the user known", async || {
        world.directory.user_by_username("admin").ok_or("not yet")
    })
    .await;
    let right = login(&Secret::new("correct horse battery"));
    let issued = world.directory.login(right).await.unwrap();
    assert_eq!(issued.token.ttl_millis, 960 * 60_000);
    let stored = serde_json::to_string(&issued.token).unwrap();
    assert!(!stored.contains(issued.key.key.expose()));
    let wrong = world.directory.login(login(&Secret::new("wrong"))).await.unwrap_err();
    assert_eq!(wrong, LoginError::Wrong);
    let mut unknown = login(&Secret::new("wrong"));
    unknown.username = "nobody".to_owned();
    assert_eq!(world.directory.login(unknown).await.unwrap_err(), LoginError::Wrong);

    let presented = Presented { token: issued.key.clone(), source: identity::TokenSource::Header };
    assert!(world.directory.authenticate(&presented).await.is_ok());
    world.directory.revoke(&issued.key.name).await.unwrap();
    eventually("the token refused", async || {
        match world.directory.authenticate(&presented).await {
            Err(Refused::Unknown) => Ok(()),
            other => Err(other),
        }
    })
    .await;

    // A token is valid from its creation on.
    let request = TokenRequest {
        user_id: id,
        kind: "api",
        description: String::new(),
        ttl_millis: 0,
        cluster: Some("c-1".to_owned()),
        project: None,
        derived: true,
        auth_provider: "local".to_owned(),
    };
    let issued = world.directory.issue(request).await.unwrap();
    let presented = Presented { token: issued.key, source: identity::TokenSource::Header };
    let identity = world.directory.authenticate(&presented).await.unwrap();
    assert_eq!(identity.cluster.as_deref(), Some("c-1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_nowhere_in_user_objects_and_login_names_are_unique() {
    let world = World::start().await;
    let users: Api<User> = Api::all(world.admin());
    let user = |name: &str, password: &str| {
        let mut user = User {
            username: "alice".to_owned(),
            password: password.to_owned(),
            ..<User as Default>::default()
        };
        user.metadata.name = Some(name.to_owned());
        user
    };
    let plain = users.create(&PostParams::default(), &user("u-a", "secret-password")).await;
    assert_eq!(code(plain), 422);
    users.create(&PostParams::default(), &user("u-a", "")).await.unwrap();
    eventually("the name taken", async || {
        world.directory.user_by_username("alice").ok_or("not yet")
    })
    .await;
    assert_eq!(code(users.create(&PostParams::default(), &user("u-b", "")).await), 422);
    let new = Secret::new("a long enough password");
    world.directory.set_password("u-a", new.clone()).await.unwrap();
    let short = world.directory.set_password("u-a", Secret::new("short")).await;
    assert!(short.is_err());
    let mut request = login(&new);
    request.username = "alice".to_owned();
    world.directory.login(request).await.unwrap();
    // Users without rights cannot read hashes.
    let secrets: Api<KubeSecret> =
        Api::namespaced(world.user_client("u-a"), "cattle-local-user-passwords");
    assert_eq!(code(secrets.get("u-a").await), 403);
    users.delete("u-a", &DeleteParams::default()).await.unwrap();
    let secrets: Api<KubeSecret> = Api::namespaced(world.admin(), "cattle-local-user-passwords");
    eventually("the hash is deleted with the user", async || {
        match secrets.get_opt("u-a").await.unwrap() {
            None => Ok(()),
            Some(_) => Err("still there"),
        }
    })
    .await;
}
