//! Lists against GETs one by one, for users with random roles that the clusters themselves have.

use std::collections::BTreeSet;

use anyhow::ensure;
use e2e::{Client, eventually};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::rights::seen;
use super::{Cluster, NORTH, SOUTH, World, config_map, ids, namespace, world};

const SEED: u64 = 19;
const USERS: usize = 4;
const NAMESPACES: [&str; 4] = ["rights-a", "rights-b", "rights-c", "rights-d"];
const NAMES: [&str; 3] = ["one", "two", "three"];
const KINDS: [&str; 3] = ["configmaps", "secrets", "serviceaccounts"];
const GROUP: &str = "rbac.authorization.k8s.io";

fn objects() -> Vec<Value> {
    let mut objects: Vec<Value> = NAMESPACES.iter().map(|name| namespace(name)).collect();
    for space in NAMESPACES {
        for name in NAMES {
            objects.push(config_map(space, name, &json!({})));
            let metadata = json!({"namespace": space, "name": name});
            let of = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
            objects.extend([of("Secret"), of("ServiceAccount")]);
        }
    }
    objects
}

/// A rule on some kinds: to read all of their objects, or some by name.
fn rule(random: &mut StdRng, may_name: bool) -> Value {
    let mut kinds: Vec<&str> = KINDS.into_iter().filter(|_| random.random_bool(0.5)).collect();
    kinds.extend(KINDS.choose(random).filter(|_| kinds.is_empty()));
    let names: Vec<&str> = NAMES.into_iter().filter(|_| random.random_bool(0.4)).collect();
    match may_name && random.random_bool(0.5) && !names.is_empty() {
        true => json!({"apiGroups": [""], "resources": kinds, "verbs": ["get"],
            "resourceNames": names}),
        false => json!({"apiGroups": [""], "resources": kinds, "verbs": ["get", "list", "watch"]}),
    }
}

/// Roles of a user in some namespaces, and perhaps one everywhere.
fn grants(random: &mut StdRng, user: &str) -> Vec<Value> {
    let mut made = Vec::new();
    let own = json!({"apiGroup": GROUP, "kind": "User", "name": user});
    let mut grant = |kind: &str, metadata: Value, rules: Value| {
        let api = format!("{GROUP}/v1");
        made.push(json!({"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rules}));
        made.push(json!({"apiVersion": api, "kind": format!("{kind}Binding"),
            "metadata": metadata, "subjects": [own],
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": metadata["name"]}}));
    };
    for space in NAMESPACES {
        let number = random.random_range(0..3);
        for index in 0..number {
            let metadata = json!({"namespace": space, "name": format!("{user}-{index}")});
            grant("Role", metadata, json!([rule(random, true)]));
        }
    }
    if random.random_bool(0.3) {
        let metadata = json!({"name": format!("rights-{user}")});
        grant("ClusterRole", metadata, json!([rule(random, false)]));
    }
    made
}

/// The ids in lists of single namespaces.
fn listed_by_namespace(user: &Client, cluster: &Cluster, kind: &str) -> BTreeSet<String> {
    let list = |space: &&str| {
        let path = cluster.path(&format!("{kind}/{space}?sort=-metadata.name"));
        let list = user.get(&path).unwrap().success().unwrap();
        ids(&list).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    NAMESPACES.iter().flat_map(list).collect()
}

fn compare(world: &World, user: &Client, cluster: &Cluster, kind: &str) -> anyhow::Result<()> {
    let [listed, got] = seen(&world.admin, user, cluster, kind);
    ensure!(listed == got, "{kind}: a list has {listed:?}, GETs find {got:?}");
    let is_own = |id: &&String| NAMESPACES.iter().any(|space| id.starts_with(space));
    let own: BTreeSet<String> = got.iter().filter(is_own).cloned().collect();
    let single = listed_by_namespace(user, cluster, kind);
    ensure!(single == own, "{kind}: lists have {single:?}, GETs find {own:?}");
    Ok(())
}

#[test]
fn lists_have_what_gets_find_for_users_with_random_roles() {
    let world = world();
    let mut random = StdRng::seed_from_u64(SEED);
    let clusters = [(NORTH, &world.north), (SOUTH, &world.south)];
    for (_, cluster) in clusters {
        cluster.target.kubectl.apply(&objects()).unwrap();
    }
    let users: Vec<Client> = (0..USERS)
        .map(|number| {
            let name = format!("random-{number}");
            let user = world.user(&name);
            let found = world.admin.get(&format!("/v3/users?username={name}")).unwrap();
            let id = found.success().unwrap()["data"][0]["id"].as_str().unwrap().to_owned();
            for (cluster_name, cluster) in clusters {
                // The cluster lets them in; all else they have from the cluster itself.
                let grant = ["role", "grant", "nodes-view", "--user", &name];
                let to = ["--cluster", cluster_name];
                world.cli.succeed(&[&grant[..], &to].concat()).unwrap();
                let grants = grants(&mut random, &id);
                if !grants.is_empty() {
                    cluster.target.kubectl.apply(&grants).unwrap();
                }
            }
            user
        })
        .collect();
    let mut different = BTreeSet::new();
    for user in &users {
        for (name, cluster) in clusters {
            for kind in KINDS {
                // The index of bindings takes a moment.
                eventually(&format!("{kind} in {name}"), || compare(&world, user, cluster, kind));
                let kind_of_user = seen(&world.admin, user, cluster, kind)[0].len();
                different.insert(kind_of_user);
            }
        }
    }
    assert!(different.len() > 3, "the roles are too much alike: {different:?}");

    // What is taken away is taken from lists too.
    let [user, ..] = users.as_slice() else { unreachable!() };
    for (_, cluster) in clusters {
        for space in NAMESPACES {
            let delete = ["delete", "rolebindings", "--all", "--namespace", space];
            cluster.target.kubectl.succeed(&delete).unwrap();
        }
        for kind in KINDS {
            eventually("the rights that are left", || compare(&world, user, cluster, kind));
        }
    }
}
