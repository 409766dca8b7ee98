//! Who sees what: a list has nothing that a GET refuses, and for a member of a project all that a
//! GET returns.

use std::collections::BTreeSet;

use e2e::{Client, eventually};
use serde_json::{Value, json};

use super::{Cluster, NORTH, config_map, ids, namespace, refusal, world};

/// Kinds whose lists are compared with GETs.
const KINDS: [&str; 4] =
    ["configmaps", "secrets", "namespaces", "rbac.authorization.k8s.io.clusterroles"];

/// A role that names what it allows, bound to a user.
fn grants(user: &str) -> Vec<Value> {
    let rule = |verbs: &[&str], resources: &[&str], names: &[&str]| json!({"apiGroups": [""], "verbs": verbs, "resources": resources, "resourceNames": names});
    let role = |namespace: &str, name: &str, rules: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules,
            "metadata": {"namespace": namespace, "name": name}})
    };
    let binding = |namespace: &str, role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"namespace": namespace, "name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
    };
    vec![
        role("seen-one", "reads", json!([rule(&["get", "list"], &["configmaps"], &[])])),
        binding("seen-one", "reads"),
        role("seen-two", "names", json!([rule(&["get"], &["configmaps", "secrets"], &["b"])])),
        binding("seen-two", "names"),
    ]
}

/// What a user may see of a kind: by one list, and by a GET for each object that there is.
pub fn seen(admin: &Client, user: &Client, cluster: &Cluster, kind: &str) -> [BTreeSet<String>; 2] {
    let all = admin.get(&cluster.path(kind)).unwrap().success().unwrap();
    let list = user.get(&cluster.path(kind)).unwrap().success().unwrap();
    assert_eq!(list["count"], list["data"].as_array().unwrap().len(), "{list}");
    let is_got = |id: &&str| {
        let one = user.get(&cluster.path(&format!("{kind}/{id}"))).unwrap();
        assert!([200, 403, 404].contains(&one.status.as_u16()), "{}", one.text());
        one.status == 200
    };
    let got = ids(&all).into_iter().filter(is_got).map(str::to_owned).collect();
    let listed = ids(&list).into_iter().map(str::to_owned).collect();
    [listed, got]
}

/// For a member of the project `seen`, and for somebody who sees everything.
fn counts_are_those_of_the_lists(admin: &Client, member: &Client, cluster: &Cluster) {
    let counts = |client: &Client| {
        let counts = client.get(&cluster.path("counts")).unwrap().success().unwrap();
        assert_eq!(
            (&counts["data"][0]["id"], &counts["data"][0]["type"]),
            (&"count".into(), &"count".into())
        );
        counts["data"][0]["counts"].clone()
    };
    let of_member = counts(member);
    for kind in ["configmap", "secret"] {
        let list = member.get(&cluster.path(kind)).unwrap().success().unwrap();
        assert_eq!(of_member[kind]["summary"]["count"], list["count"], "{of_member}");
        let namespaces = of_member[kind]["namespaces"].as_object().unwrap();
        let names: Vec<&String> = namespaces.keys().collect();
        assert_eq!(names, ["seen-one", "seen-two"]);
    }
    assert!(!of_member.to_string().contains("unseen"), "{of_member}");
    let of_admin = counts(admin);
    assert_eq!(of_admin["secret"]["namespaces"]["unseen"]["count"], 2, "{of_admin}");
    assert!(of_admin["namespace"]["namespaces"].is_null());
}

#[test]
fn a_list_has_nothing_that_a_get_refuses() {
    let world = world();
    for cluster in [&world.north, &world.south] {
        let mut objects = vec![namespace("seen-one"), namespace("seen-two"), namespace("unseen")];
        for space in ["seen-one", "seen-two", "unseen"] {
            for name in ["a", "b"] {
                objects.push(config_map(space, name, &json!({"owner": space})));
                objects.push(json!({"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"namespace": space, "name": name}}));
            }
        }
        cluster.target.kubectl.apply(&objects).unwrap();
    }
    let project = ["project", "create", "seen", "--cluster", NORTH];
    world.cli.succeed(&project).unwrap();
    let moved = ["namespace", "move", "seen-one", "seen-two", "--project", "seen"];
    world.cli.succeed(&[&moved[..], &["--cluster", NORTH]].concat()).unwrap();

    let member = world.user("member");
    let reader = world.user("reader");
    let nobody = world.user("nobody");
    let grant = |user: &str, role: &str, more: &[&str]| {
        let to = ["role", "grant", role, "--user", user, "--cluster", NORTH];
        world.cli.succeed(&[&to[..], more].concat()).unwrap();
    };
    grant("member", "project-member", &["--project", "seen"]);
    // The cluster lets this one in, and has roles of its own for the user.
    grant("reader", "nodes-view", &[]);
    let id = world.admin.get("/v3/users?username=reader").unwrap().success().unwrap();
    let id = id["data"][0]["id"].as_str().unwrap().to_owned();
    world.north.target.kubectl.apply(&grants(&id)).unwrap();

    eventually("the roles of the project", || {
        let [listed, _] = seen(&world.admin, &member, &world.north, "configmaps");
        let is_there = listed.contains("seen-two/a");
        if is_there { Ok(()) } else { Err(anyhow::anyhow!("{listed:?}")) }
    });
    eventually("the bindings of the cluster", || {
        let [listed, _] = seen(&world.admin, &reader, &world.north, "configmaps");
        let is_there = listed.contains("seen-one/a");
        if is_there { Ok(()) } else { Err(anyhow::anyhow!("{listed:?}")) }
    });
    for user in [&member, &reader] {
        for kind in KINDS {
            let [listed, got] = seen(&world.admin, user, &world.north, kind);
            assert_eq!(listed, got, "{kind}");
        }
        // No filter, order or page tells of what is not seen.
        let filter = "configmaps?filter=data.owner=unseen";
        let none = user.get(&world.north.path(filter)).unwrap().success().unwrap();
        assert_eq!((&none["count"], &none["data"]), (&json!(0), &json!([])));
        // The other cluster has no role for them.
        assert_eq!(refusal(&user.get(&world.south.path("configmaps")).unwrap()).0, 403);
    }
    counts_are_those_of_the_lists(&world.admin, &member, &world.north);
    for path in [world.north.path("configmaps"), world.north.path("schemas"), world.north.path("x")]
    {
        assert_eq!(refusal(&nobody.get(&path).unwrap()).0, 403, "{path}");
    }

    // What is taken away is gone with the next request.
    let revoke = ["role", "revoke", "project-member", "--user", "member", "--cluster", NORTH];
    world.cli.succeed(&[&revoke[..], &["--project", "seen"]].concat()).unwrap();
    assert_eq!(refusal(&member.get(&world.north.path("configmaps")).unwrap()).0, 403);
}

#[test]
fn only_a_valid_credential_for_the_place_reaches_it() {
    let world = world();
    let anyone = world.server.anyone().unwrap();
    for path in ["/v1/pods".into(), "/v1".into(), world.north.path("schemas")] {
        let refused = anyone.get(&path).unwrap();
        assert_eq!(
            (refused.status.as_u16(), refused.json()["type"].as_str()),
            (401, Some("error"))
        );
    }
    let create = ["token", "create", "--cluster", NORTH, "--description", "north only"];
    let token = world.cli.succeed(&create).unwrap();
    let bound = anyone.bearer(token.trim());
    bound.get(&world.north.path("namespaces")).unwrap().success().unwrap();
    for path in ["/v1/namespaces".into(), world.south.path("namespaces")] {
        assert_eq!(refusal(&bound.get(&path).unwrap()).0, 401, "{path}");
    }
    // One of a project, in which there are no namespaces.
    world.cli.succeed(&["project", "create", "tokens", "--cluster", NORTH]).unwrap();
    let create = ["token", "create", "--project", "tokens", "--cluster", NORTH];
    let token = world.cli.succeed(&create).unwrap();
    let of_project = anyone.bearer(token.trim());
    let list = of_project.get(&world.north.path("configmaps")).unwrap().success().unwrap();
    assert_eq!(list["data"], json!([]));
    for path in ["/v1/configmaps".into(), world.south.path("configmaps")] {
        let refused = refusal(&of_project.get(&path).unwrap()).0;
        assert!([401, 403].contains(&refused), "{path}: {refused}");
    }
}
