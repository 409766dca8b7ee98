//! Global roles in one process: what they give, and that nobody gives more than they have.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use api_management::{GlobalRole, GlobalRoleBinding, User, keys};
use feature_kit::{Clients, Membership, RoleResolver, runtime};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use test_kit::{World, until};

/// Has the global role that the test gives.
const ANN: &str = "u-ann";
/// How often a name of a deleted user is used again.
const REUSES: usize = 5;
/// Has the global role `admin`.
const ROOT: &str = "u-root";

fn code(result: Result<impl Sized, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

fn text(result: Result<impl Debug, kube::Error>) -> String {
    match result {
        Err(kube::Error::Api(status)) => status.message.clone(),
        other => panic!("{other:?}"),
    }
}

fn objects(client: Client, kind: &str) -> Api<DynamicObject> {
    let (group, version) = (api_management::GROUP, api_management::VERSION);
    Api::all_with(client, &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

async fn create(client: Client, kind: &str, mut object: Value) -> Result<(), kube::Error> {
    object["apiVersion"] = api_management::API_VERSION.into();
    object["kind"] = kind.into();
    let object = serde_json::from_value(object).unwrap();
    objects(client, kind).create(&PostParams::default(), &object).await.map(drop)
}

async fn change(client: Client, kind: &str, name: &str, patch: Value) -> Result<(), kube::Error> {
    let patch = Patch::Merge(&patch);
    objects(client, kind).patch(name, &PatchParams::default(), &patch).await.map(drop)
}

async fn bind(client: Client, name: &str, role: &str, user: &str) -> Result<(), kube::Error> {
    let binding = json!({"metadata": {"name": name}, "globalRoleName": role, "userName": user});
    create(client, "GlobalRoleBinding", binding).await
}

async fn user(world: &World, name: &str) {
    let user = json!({"metadata": {"name": name}, "username": name, "enabled": true});
    create(world.admin(), "User", user).await.unwrap();
}

/// Gives the user a global role, and waits until requests have it.
async fn give(world: &World, role: &str, user: &str) {
    bind(world.admin(), &format!("{role}-{user}"), role, user).await.unwrap();
    let group = format!("drover:global:{role}");
    until("the group of the role", true, async || {
        let groups = world.graph.management_groups(Membership { user, groups: &[] });
        groups.contains(&group)
    })
    .await;
}

async fn world() -> World {
    let world = World::start().await;
    for name in [ANN, ROOT] {
        user(&world, name).await;
    }
    give(&world, "admin", ROOT).await;
    world
}

async fn set(world: &World, user: &str) -> u16 {
    let patch = json!({"value": "14"});
    code(change(world.user_client(user), "Setting", "password-min-length", patch).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_global_role_gives_its_rights_until_it_is_taken_and_drift_is_repaired() {
    let world = world().await;
    assert_eq!(set(&world, ANN).await, 403);
    give(&world, "settings-manage", ANN).await;
    until("the right", 200, async || set(&world, ANN).await).await;

    let roles: Api<ClusterRole> = Api::all(world.admin());
    let name = "drover:global:settings-manage";
    roles.patch(name, &PatchParams::default(), &Patch::Merge(json!({"rules": []}))).await.unwrap();
    until("the rules restored", 1, async || {
        roles.get(name).await.unwrap().rules.unwrap_or_default().len()
    })
    .await;
    roles.delete(name, &DeleteParams::default()).await.unwrap();
    until("the role restored", true, async || roles.get_opt(name).await.unwrap().is_some()).await;

    let bindings: Api<GlobalRoleBinding> = Api::all(world.admin());
    let binding = format!("settings-manage-{ANN}");
    bindings.delete(&binding, &DeleteParams::default()).await.unwrap();
    until("no right", 403, async || set(&world, ANN).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_on_secrets_hold_only_where_global_data_is() {
    let world = world().await;
    give(&world, "user", ANN).await;
    let make = async |namespace: &str| {
        let api: Api<Secret> = Api::namespaced(world.user_client(ANN), namespace);
        let mut secret = Secret::default();
        secret.metadata.generate_name = Some("mine-".to_owned());
        code(api.create(&PostParams::default(), &secret).await)
    };
    until("a Secret of global data", 200, async || make("cattle-global-data").await).await;
    for elsewhere in ["default", "kube-system", "cattle-system"] {
        assert_eq!(make(elsewhere).await, 403, "{elsewhere}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_of_users_gives_only_what_the_manager_has() {
    let world = world().await;
    give(&world, "users-manage", ANN).await;
    give(&world, "user", ANN).await;
    user(&world, "u-bob").await;
    let give_as_ann =
        async |name: &str, role: &str| bind(world.user_client(ANN), name, role, "u-bob").await;
    until("what Ann has", 200, async || code(give_as_ann("one", "user").await)).await;
    assert_eq!(code(give_as_ann("two", "users-manage").await), 200);
    let refused = text(give_as_ann("three", "admin").await);
    assert!(refused.contains("only administrators make administrators"), "{refused}");
    let refused = text(give_as_ann("four", "settings-manage").await);
    assert!(refused.contains("Resources:[\"settings\"]"), "{refused}");
    assert_eq!(code(give_as_ann("five", "restricted-admin").await), 403);
    let refused = text(bind(world.admin(), "six", "no-such", "u-bob").await);
    assert!(refused.contains("no such global role"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restricted_administrator_owns_all_clusters_but_the_servers() {
    let world = world().await;
    let owner = |cluster: &str| format!("drover:cluster:{cluster}:cluster-owner");
    let owns = |user: &str, cluster: &str| {
        let groups = world.graph.cluster_groups(cluster, Membership { user, groups: &[] });
        groups.contains(&owner(cluster))
    };
    // Whoever has rules like those of the role is none, and makes none.
    let like = world.admin();
    let like: Api<GlobalRole> = Api::all(like);
    let mut rules = like.get("restricted-admin").await.unwrap();
    rules.metadata = Default::default();
    rules.metadata.name = Some("like-it".to_owned());
    rules.builtin = false;
    like.create(&PostParams::default(), &rules).await.unwrap();
    give(&world, "like-it", ANN).await;
    let default = json!({"newUserDefault": true});
    until("what Ann has", 200, async || {
        code(change(world.user_client(ANN), "GlobalRole", "like-it", default.clone()).await)
    })
    .await;
    assert!(!owns(ANN, "c-abcde"));
    let refused = text(bind(world.user_client(ANN), "own", "restricted-admin", ANN).await);
    assert!(refused.contains("owns all clusters"), "{refused}");
    let refused =
        text(change(world.user_client(ANN), "GlobalRole", "restricted-admin", default).await);
    assert!(refused.contains("owns all clusters"), "{refused}");

    give(&world, "restricted-admin", ANN).await;
    until("the clusters", true, async || owns(ANN, "c-abcde")).await;
    assert!(!owns(ANN, "local") && owns(ROOT, "local"));
    user(&world, "u-bob").await;
    until("one who makes others", 200, async || {
        code(bind(world.user_client(ANN), "other", "restricted-admin", "u-bob").await)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_global_roles_writes_no_rule_that_the_writer_lacks() {
    let world = world().await;
    give(&world, "restricted-admin", ANN).await;
    let write = async |name: &str, group: &str, resource: &str| {
        let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": ["*"]}]);
        create(
            world.user_client(ANN),
            "GlobalRole",
            json!({"metadata": {"name": name}, "rules": rules}),
        )
        .await
    };
    until("what Ann has", 200, async || {
        code(write("mine", api_management::GROUP, "settings").await)
    })
    .await;
    assert_eq!(code(write("wide", "*", "*").await), 403);
    assert_eq!(code(write("secrets", "", "secrets").await), 403);
    let wide = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let widened = change(world.user_client(ANN), "GlobalRole", "mine", json!({"rules": wide}));
    assert_eq!(code(widened.await), 403);
    // Nor are rules taken from a role that has more.
    let narrowed = change(world.user_client(ANN), "GlobalRole", "admin", json!({"rules": []}));
    assert_eq!(code(narrowed.await), 403);
    let default =
        change(world.user_client(ANN), "GlobalRole", "admin", json!({"newUserDefault": true}));
    assert_eq!(code(default.await), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_over_a_user_who_has_more() {
    let world = world().await;
    give(&world, "users-manage", ANN).await;
    user(&world, "u-bob").await;
    let principals = json!({"principalIds": ["openldap_user://cn=ann"]});
    until("Bob changed", 200, async || {
        code(change(world.user_client(ANN), "User", "u-bob", principals.clone()).await)
    })
    .await;
    for patch in [principals, json!({"enabled": false}), json!({"username": "ann"})] {
        let refused = text(change(world.user_client(ANN), "User", ROOT, patch.clone()).await);
        assert!(refused.contains("roles that you do not have"), "{patch}: {refused}");
    }
    let users = objects(world.user_client(ANN), "User");
    assert_eq!(code(users.delete(ROOT, &DeleteParams::default()).await), 403);
    let described = change(world.user_client(ANN), "User", ROOT, json!({"displayName": "Root"}));
    assert_eq!(code(described.await), 200);
    // A user of a name to which roles are bound already would have them.
    bind(world.admin(), "early", "admin", "u-later").await.unwrap();
    until("the early binding", true, async || {
        world.graph.is_global_admin(Membership { user: "u-later", groups: &[] })
    })
    .await;
    let later = json!({"metadata": {"name": "u-later"}, "username": "later", "enabled": true});
    assert_eq!(code(create(world.user_client(ANN), "User", later).await), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_tokens_makes_none_for_others() {
    let world = world().await;
    give(&world, "restricted-admin", ANN).await;
    let make = async |name: &str, user: &str| {
        let metadata = json!({"name": name, "annotations": {keys::TOKEN_HASHED: "true"}});
        let token = json!({"metadata": metadata, "userId": user, "token": "$a-hash"});
        create(world.user_client(ANN), "Token", token).await
    };
    until("a token of one's own", 200, async || code(make("token-mine", ANN).await)).await;
    let refused = text(make("token-root", ROOT).await);
    assert!(refused.contains("only by the user it belongs to"), "{refused}");
    let given = change(world.user_client(ANN), "Token", "token-mine", json!({"userId": ROOT}));
    assert!([403, 422].contains(&code(given.await)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_giver_of_first_roles_gives_only_those_of_new_users() {
    let world = world().await;
    let giver = world.api.controller(&feature_identity::directory::identity());
    assert_eq!(code(bind(giver.clone(), "a", "user", "u-new").await), 200);
    assert_eq!(code(bind(giver.clone(), "b", "admin", "u-new").await), 403);
    let refused = text(bind(giver, "c", "settings-manage", "u-new").await);
    assert!(refused.contains("only the roles that new users have"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_roles_are_restored_and_stay_and_a_role_in_use_cannot_be_deleted() {
    let world = world().await;
    let roles: Api<GlobalRole> = Api::all(world.admin());
    let whole = roles.get("user").await.unwrap();
    assert!(whole.builtin && whole.new_user_default);
    roles.replace("user", &PostParams::default(), &whole).await.unwrap();
    let refused = text(roles.delete("user", &DeleteParams::default()).await);
    assert!(refused.contains("built in"), "{refused}");
    let patch = json!({"rules": [], "newUserDefault": false, "description": "ours"});
    change(world.admin(), "GlobalRole", "user", patch).await.unwrap();
    runtime::seed(&world.features, &world.admin()).await.unwrap();
    let restored = roles.get("user").await.unwrap();
    assert_eq!(restored.rules, whole.rules);
    assert!(!restored.new_user_default, "administrators choose the roles of new users");
    assert_eq!(restored.description, "ours");

    create(world.admin(), "GlobalRole", json!({"metadata": {"name": "own"}, "rules": whole.rules}))
        .await
        .unwrap();
    give(&world, "own", ANN).await;
    let refused = text(roles.delete("own", &DeleteParams::default()).await);
    assert!(refused.contains(&format!("globalrolebinding \"own-{ANN}\"")), "{refused}");

    // Bindings end with their user, and so does the use of the role.
    let users: Api<User> = Api::all(world.admin());
    users.delete(ANN, &DeleteParams::default()).await.unwrap();
    let bindings: Api<GlobalRoleBinding> = Api::all(world.admin());
    until("no binding", true, async || {
        bindings.get_opt(&format!("own-{ANN}")).await.unwrap().is_none()
    })
    .await;
    // A user of the same name has nothing of the first, however early the name is used again.
    let again = json!({"metadata": {"name": ANN}, "username": "ann-again"});
    for _ in 0..REUSES {
        until("the name is free", true, async || {
            create(world.admin(), "User", again.clone()).await.is_ok()
        })
        .await;
        let all = bindings.list(&ListParams::default()).await.unwrap();
        let inherited: Vec<_> = all.iter().filter(|one| one.user_name == ANN).collect();
        assert!(inherited.is_empty(), "{inherited:?}");
        give(&world, "own", ANN).await;
        users.delete(ANN, &DeleteParams::default()).await.unwrap();
    }
    until("no binding", true, async || {
        bindings.get_opt(&format!("own-{ANN}")).await.unwrap().is_none()
    })
    .await;
    roles.delete("own", &DeleteParams::default()).await.unwrap();
    let cluster_roles: Api<ClusterRole> = Api::all(world.admin());
    until("nothing of the role", true, async || {
        cluster_roles.get_opt("drover:global:own").await.unwrap().is_none()
    })
    .await;
}
