//! Explanations of rights, over a real management API and a cluster with an API server of its own.

#![allow(clippy::unwrap_used)]

use api_management::{ClusterRoleTemplateBinding, User};
use feature_access::explain;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::route::Caller;
use feature_kit::{Membership, Request, RoleResolver};
use http::StatusCode;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::PostParams;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually};

const CLUSTER: &str = "c-abcde";
const RBAC: &str = "rbac.authorization.k8s.io";

async fn bind(world: &World, name: &str, role: &str, user: &str) {
    let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), CLUSTER);
    let mut binding = ClusterRoleTemplateBinding {
        role_template_name: role.to_owned(),
        user_name: user.to_owned(),
        ..ClusterRoleTemplateBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    api.create(&PostParams::default(), &binding).await.unwrap();
    eventually("the role", async || {
        let groups = world.graph.cluster_groups(CLUSTER, Membership { user, groups: &[] });
        let group = format!("drover:cluster:{CLUSTER}:{role}");
        if groups.contains(&group) { Ok(()) } else { Err(groups) }
    })
    .await;
}

async fn create_user(world: &World, name: &str) {
    let mut user = User { username: name.to_owned(), ..User::default() };
    user.metadata.name = Some(name.to_owned());
    Api::all(world.admin()).create(&PostParams::default(), &user).await.unwrap();
}

/// What the route answers to a user with these groups of an identity provider.
async fn explained(
    world: &World,
    action: &str,
    user: &str,
    groups: &[String],
    question: &Value,
) -> (StatusCode, Value) {
    let outside = [GROUP_PEOPLE.to_owned(), "system:authenticated".to_owned()];
    let outside: Vec<String> = outside.into_iter().chain(groups.iter().cloned()).collect();
    let roles = world.graph.management_groups(Membership { user, groups: &outside });
    let caller = Caller {
        user_id: user.to_owned(),
        token_id: None,
        groups: outside.into_iter().chain(roles).collect(),
    };
    let uri = format!("{}{action}", explain::PREFIX);
    let (parts, ()) = http::Request::post(uri).body(()).unwrap().into_parts();
    let body = question.to_string().into();
    let mut routes = world.features.iter().flat_map(|feature| &feature.routes);
    let route = routes.find(|route| route.prefix == explain::PREFIX).unwrap();
    let request = Request::new(parts, body, Some(caller));
    let response = route.handler.handle(request).await;
    (response.status(), serde_json::from_slice(response.body()).unwrap())
}

fn question(verb: &str, resource: &str) -> Value {
    json!({"cluster": CLUSTER, "verb": verb, "resource": resource})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_explains_themselves_and_members_explain_others() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import(CLUSTER, &downstream).await;
    for user in ["u-member", "u-owner", "u-other"] {
        create_user(&world, user).await;
    }
    bind(&world, "m", "cluster-member", "u-member").await;
    bind(&world, "o", "cluster-owner", "u-owner").await;
    let get_nodes = question("get", "nodes");
    let found = eventually("the member's rights", async || {
        let (status, found) = explained(&world, "why", "u-member", &[], &get_nodes).await;
        let is_done = status == StatusCode::OK && found["allowed"] == true;
        if is_done { Ok(found) } else { Err(found) }
    })
    .await;
    let way = &found["because"][0];
    assert_eq!(way["role"]["name"], "drover:cluster:cluster-member");
    assert_eq!(way["from"][0]["name"], "m");
    assert_eq!(way["from"][0]["roles"], json!(["cluster-member"]));

    let (_, found) = explained(&world, "why", "u-member", &[], &question("delete", "nodes")).await;
    assert_eq!(found["allowed"], false);
    assert_eq!(found["missing"]["verbs"], json!(["delete"]));

    // Members may list the bindings of their cluster, so they may know about others.
    let mut about = get_nodes.clone();
    about["user"] = "u-owner".into();
    eventually("the member's right to list members", async || {
        let (status, found) = explained(&world, "why", "u-member", &[], &about).await;
        if status == StatusCode::OK && found["allowed"] == true { Ok(()) } else { Err(found) }
    })
    .await;
    let (_, found) = explained(&world, "why", "u-member", &[], &question("delete", "nodes")).await;
    assert_eq!(found["granters"], json!(["u-owner"]));
    let (_, found) = explained(&world, "who", "u-member", &[], &question("delete", "nodes")).await;
    let users: Vec<&str> =
        found["users"].as_array().unwrap().iter().map(|u| u["user"].as_str().unwrap()).collect();
    assert_eq!(users, ["u-owner"], "{found}");

    // Whoever has no role learns nothing, not even whether there is such a cluster.
    let mut nowhere = get_nodes.clone();
    nowhere["cluster"] = "c-other".into();
    for action in ["why", "who"] {
        let (status, here) = explained(&world, action, "u-other", &[], &get_nodes).await;
        let (other_status, other) = explained(&world, action, "u-other", &[], &nowhere).await;
        assert_eq!((status, other_status), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
        let text = here["message"].as_str().unwrap().replace(CLUSTER, "c-other");
        assert_eq!(text, other["message"].as_str().unwrap());
    }
    about["user"] = "u-member".into();
    let (status, _) = explained(&world, "why", "u-other", &[], &about).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, _) = explained(&world, "why", "u-member", &[], &json!({"cluster": CLUSTER})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_compared_before_it_is_made() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import(CLUSTER, &downstream).await;
    for user in ["u-member", "u-new"] {
        create_user(&world, user).await;
    }
    bind(&world, "m", "cluster-member", "u-member").await;
    let binding = json!({"type": "clusterRoleTemplateBinding", "clusterId": CLUSTER,
        "roleTemplateId": "cluster-owner", "userId": "u-new"});
    let existing = json!({"type": "clusterRoleTemplateBinding", "id": format!("{CLUSTER}:m")});
    let changes = json!({"apply": [binding], "delete": [existing]});
    // A member may not know about all clusters.
    let (status, found) = explained(&world, "diff", "u-member", &[], &changes).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{found}");
    Api::all(world.admin())
        .create(&PostParams::default(), &feature_kit::access::admin_binding("u-admin"))
        .await
        .unwrap();
    let found = eventually("the administrator's rights", async || {
        let (status, found) = explained(&world, "diff", "u-admin", &[], &changes).await;
        if status == StatusCode::OK { Ok(found) } else { Err(found) }
    })
    .await;
    let held = |field: &str| {
        let list = found[field].as_array().unwrap().iter();
        list.map(|it| (it["name"].clone(), it["role"].clone(), it["cluster"].clone()))
            .collect::<Vec<_>>()
    };
    let of = |user: &str, role: &str| (json!(user), json!(role), json!(CLUSTER));
    assert_eq!(held("gains"), [of("u-new", "cluster-owner")]);
    assert_eq!(held("loses"), [of("u-member", "cluster-member")]);
    // Nothing was written.
    let groups = world.graph.cluster_groups(CLUSTER, Membership { user: "u-new", groups: &[] });
    assert!(groups.is_empty(), "{groups:?}");
    for wrong in [
        json!({"apply": [{"type": "cluster", "name": "x"}]}),
        json!({"delete": [{"type": "roleTemplate", "name": "x"}]}),
        json!({"apply": [{"type": "roleTemplate", "id": "no-such-role"}]}),
        json!({"other": []}),
    ] {
        let (status, found) = explained(&world, "diff", "u-admin", &[], &wrong).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{found}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_compares_new_members_of_their_own_cluster_and_nothing_else() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import(CLUSTER, &downstream).await;
    for user in ["u-owner", "u-new"] {
        create_user(&world, user).await;
    }
    bind(&world, "o", "cluster-owner", "u-owner").await;
    let group = "openldap_group://cn=team";
    let in_cluster = |cluster: &str| {
        json!({"type": "clusterRoleTemplateBinding", "clusterId": cluster,
            "roleTemplateId": "cluster-member", "groupPrincipalId": group})
    };
    let compare = async |changes: Value| explained(&world, "diff", "u-owner", &[], &changes).await;
    let found = eventually("the owner's rights", async || {
        let (status, found) = compare(json!({"apply": [in_cluster(CLUSTER)]})).await;
        if status == StatusCode::OK { Ok(found) } else { Err(found) }
    })
    .await;
    assert_eq!(found["gains"][0]["name"], group, "{found}");
    assert_eq!(found["groups"], json!([{"group": group, "users": 0}]), "{found}");
    // Another cluster, and everything that reaches further than new members.
    let own = format!("{CLUSTER}:o");
    for further in [
        json!({"apply": [in_cluster("c-other")]}),
        json!({"apply": [in_cluster(CLUSTER), in_cluster("c-other")]}),
        json!({"delete": [{"type": "clusterRoleTemplateBinding", "id": own}]}),
        json!({"apply": [{"type": "globalRoleBinding", "globalRoleId": "admin", "userId": "u-new"}]}),
        json!({"apply": [{"type": "roleTemplate", "name": "x", "context": "cluster"}]}),
        json!({"apply": []}),
    ] {
        let (status, found) = compare(further.clone()).await;
        let is_empty = further == json!({"apply": []});
        let expected = if is_empty { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(status, expected, "{further}: {found}");
    }
}

const RULES: [(&str, &str); 5] =
    [("get", "pods"), ("*", "secrets"), ("list", "*"), ("create", "pods/exec"), ("get", "nodes")];
const QUESTIONS: [(&str, &str, &str); 7] = [
    ("get", "pods", ""),
    ("list", "pods", ""),
    ("delete", "secrets", ""),
    ("create", "pods", "exec"),
    ("create", "pods", ""),
    ("get", "nodes", ""),
    ("list", "configmaps", ""),
];
const GROUPS: [&str; 2] = ["openldap_group://cn=a", "openldap_group://cn=b"];

fn role_ref(kind: &str, name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": kind, "name": name})
}

/// Roles and bindings at random, in the cluster and in its namespace `default`.
async fn fill(downstream: &KubeApi, random: &mut StdRng) {
    let client = downstream.admin();
    let some = PostParams::default();
    for at in 0..12 {
        let mut rules = Vec::new();
        for _ in 0..random.random_range(1..3) {
            let (verb, resource) = RULES[random.random_range(0..RULES.len())];
            let names = if random.random_bool(0.2) { json!(["x"]) } else { json!([]) };
            rules.push(json!({
                "apiGroups": [""], "resources": [resource], "verbs": [verb], "resourceNames": names,
            }));
        }
        let subject = match random.random_range(0..4_usize) {
            at @ 0..2 => json!({"apiGroup": RBAC, "kind": "Group", "name": GROUPS[at]}),
            at => json!({"apiGroup": RBAC, "kind": "User", "name": format!("u-{at}")}),
        };
        let name = format!("random-{at}");
        let metadata = json!({"name": name, "namespace": "default"});
        let wide = json!({"name": name});
        if random.random_bool(0.5) {
            let role: ClusterRole =
                serde_json::from_value(json!({"metadata": wide, "rules": rules})).unwrap();
            Api::all(client.clone()).create(&some, &role).await.unwrap();
            let reference = role_ref("ClusterRole", &name);
            if random.random_bool(0.5) {
                let binding: ClusterRoleBinding = serde_json::from_value(
                    json!({"metadata": wide, "roleRef": reference, "subjects": [subject]}),
                )
                .unwrap();
                Api::all(client.clone()).create(&some, &binding).await.unwrap();
                continue;
            }
        } else {
            let role: Role =
                serde_json::from_value(json!({"metadata": metadata, "rules": rules})).unwrap();
            Api::namespaced(client.clone(), "default").create(&some, &role).await.unwrap();
        }
        let kind = if random.random_bool(0.5) { "ClusterRole" } else { "Role" };
        let binding: RoleBinding = serde_json::from_value(
            json!({"metadata": metadata, "roleRef": role_ref(kind, &name), "subjects": [subject]}),
        )
        .unwrap();
        Api::namespaced(client.clone(), "default").create(&some, &binding).await.unwrap();
    }
}

/// What the cluster itself decides, for the groups that the explanation names.
async fn decision(downstream: &KubeApi, user: &str, found: &Value) -> bool {
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let review = json!({
        "spec": {
            "user": user, "groups": found["groups"],
            "resourceAttributes": {
                "verb": found["verb"], "resource": found["resource"], "subresource": text("subresource"),
                "namespace": text("namespace"), "name": text("name"),
            },
        },
    });
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(downstream.admin());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_says_what_the_cluster_decides() {
    let world = World::start().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    world.import(CLUSTER, &downstream).await;
    for user in ["u-2", "u-3"] {
        bind(&world, user, "cluster-member", user).await;
    }
    let mut random = StdRng::seed_from_u64(18);
    fill(&downstream, &mut random).await;
    // The roles come into the cluster after the bindings.
    for user in ["u-2", "u-3"] {
        let question = question("get", "nodes");
        test_kit::eventually("the role is in the cluster", async || {
            let (_, found) = explained(&world, "why", user, &[], &question).await;
            if found["allowed"] == true { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
    }
    let (mut yes, mut no) = (0, 0);
    for at in 0..300 {
        let user = if random.random_bool(0.5) { "u-2" } else { "u-3" };
        let groups: Vec<String> = GROUPS
            .iter()
            .filter(|_| random.random_bool(0.5))
            .map(|&group| group.to_owned())
            .collect();
        let (verb, resource, subresource) = QUESTIONS[random.random_range(0..QUESTIONS.len())];
        let mut question = question(verb, resource);
        question["subresource"] = subresource.into();
        if random.random_bool(0.7) {
            question["namespace"] = "default".into();
        }
        if random.random_bool(0.3) {
            question["name"] = "x".into();
        }
        let (status, found) = explained(&world, "why", user, &groups, &question).await;
        assert_eq!(status, StatusCode::OK, "{found}");
        let allowed = found["allowed"] == true;
        assert_eq!(allowed, decision(&downstream, user, &found).await, "{at}: {found}");
        if allowed { yes += 1 } else { no += 1 }
    }
    assert!(yes > 50 && no > 50, "{yes} allowed, {no} not");
}
