//! Lists of a kind with many objects, which come from an index: they have what the cluster has,
//! and what was just written. The kind is a custom resource that no other test lists.

use std::collections::BTreeSet;

use anyhow::ensure;
use e2e::{Client, eventually};
use http::{Request, header};
use serde_json::{Value, json};

use super::{Cluster, World, definition, ids, namespace, world};

const KIND: &str = "example.io.gadgets";
const MANY: usize = 1_200;
const WRITERS: usize = 4;
const COLORS: [&str; 4] = ["red", "green", "blue", "grey"];
/// The role of the indexes in each cluster.
const ROLE: &str = "drover:kind-index";

fn name(number: usize) -> String {
    format!("c{number:04}")
}

fn gadget(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Gadget", "data": data,
        "metadata": {"namespace": "many", "name": name, "labels": {"app": name}}})
}

/// Gadgets `c0000` to `c1199`. Their field `back` is in the opposite order.
fn fill(world: &World) {
    let kubectl = &world.north.target.kubectl;
    kubectl.apply(&[namespace("many"), definition("gadgets", "Gadget")]).unwrap();
    let wait = ["wait", "--for=condition=Established", "crd/gadgets.example.io"];
    kubectl.succeed(&wait).unwrap();
    let path = world.north.path(KIND);
    eventually("the new kind", || world.admin.get(&path)?.success());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in (writer..MANY).step_by(WRITERS) {
                    let data = json!({"back": name(MANY - number),
                        "color": COLORS[number % COLORS.len()]});
                    let body = gadget(&name(number), &data);
                    let path = world.north.path(KIND);
                    world.admin.post(&path, &body).unwrap().success().unwrap();
                }
            });
        }
    });
}

/// Lists that an index of the server has served so far.
fn pages(world: &World) -> u64 {
    let metrics = world.admin.get("/metrics").unwrap().text();
    let name = "drover_kind_index_pages_total ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no metric {name}")).parse().unwrap()
}

/// Groups and resources that the indexes may read in the cluster, with their verbs.
fn readable(cluster: &Cluster) -> Vec<(String, Value)> {
    let arguments = ["get", "clusterrole", ROLE, "--ignore-not-found", "-o", "json"];
    let text = cluster.target.kubectl.succeed(&arguments).unwrap();
    let role: Value = serde_json::from_str(&text).unwrap_or_default();
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    let resource = |rule: &Value| rule["resources"][0].as_str().unwrap().to_owned();
    rules.iter().map(|rule| (resource(rule), rule["verbs"].clone())).collect()
}

fn list(world: &World, query: &str) -> Value {
    let path = world.north.path(&format!("{KIND}/many?{query}"));
    world.admin.get(&path).unwrap().success().unwrap()
}

#[test]
fn lists_of_many_objects_come_from_an_index() {
    let world = world();
    fill(&world);
    assert_eq!(list(&world, "pagesize=1")["count"], MANY);
    eventually("an index", || {
        let before = pages(&world);
        list(&world, "pagesize=1");
        ensure!(pages(&world) > before, "lists still read the cluster");
        Ok::<_, anyhow::Error>(())
    });

    let page = list(&world, "filter=data.color='red'&sort=data.back&pagesize=2&page=2");
    assert_eq!(ids(&page), ["many/c1188", "many/c1184"]);
    assert_eq!((&page["count"], &page["pages"]), (&json!(300), &json!(150)));
    assert_eq!(page["data"][0]["data"], json!({"back": "c0012", "color": "red"}));
    let shown = &page["data"][0];
    assert_eq!(
        (&shown["type"], &shown["metadata"]["fields"][0]),
        (&"example.io.gadget".into(), &"c1188".into())
    );
    assert!(shown["links"]["update"].is_string(), "{shown}");
    let selected = list(&world, "labelSelector=app%20in%20(c0003,c0007)&sort=-metadata.name");
    assert_eq!(ids(&selected), ["many/c0007", "many/c0003"]);
    let named = list(&world, "fieldSelector=metadata.name%3Dc0009");
    assert_eq!(ids(&named), ["many/c0009"]);

    let (mut seen, mut next) = (BTreeSet::new(), String::new());
    loop {
        let part = list(&world, &format!("limit=500&sort=-data.color{next}"));
        seen.extend(ids(&part).into_iter().map(str::to_owned));
        let Some(token) = part["continue"].as_str() else { break };
        next = format!("&continue={token}");
    }
    assert_eq!(seen.len(), MANY);

    own_writes_are_in_the_next_list(&world);

    // The rights of the indexes: to read what was listed, and no Secrets.
    world.admin.get("/v1/secrets?clusters=*").unwrap().success().unwrap();
    let readable = readable(&world.north);
    let gadgets = readable.iter().find(|(resource, _)| resource == "gadgets");
    assert_eq!(gadgets.map(|(_, verbs)| verbs), Some(&json!(["list", "watch"])));
    assert!(!readable.iter().any(|(resource, _)| resource == "secrets" || resource == "*"));
}

fn merge(client: &Client, path: &str, patch: &Value) {
    let request = Request::patch(path).header(header::CONTENT_TYPE, "application/merge-patch+json");
    let request = request.body(e2e::http::body(patch.to_string())).unwrap();
    client.send(request).unwrap().success().unwrap();
}

fn own_writes_are_in_the_next_list(world: &World) {
    let found = |query: &str| list(world, query)["count"].as_u64().unwrap();
    for round in 0..10 {
        let name = format!("own-{round}");
        let data = json!({"color": "new"});
        let body = gadget(&name, &data);
        world.admin.post(&world.north.path(KIND), &body).unwrap().success().unwrap();
        assert_eq!(found("filter=data.color=new"), 1);
        let own = world.north.path(&format!("{KIND}/many/{name}"));
        merge(&world.admin, &own, &json!({"data": {"color": "changed"}}));
        let numbers = (found("filter=data.color=new"), found("filter=data.color=changed"));
        assert_eq!(numbers, (0, 1));
        let deleted = world.admin.delete(&own).unwrap();
        assert!(deleted.status.is_success(), "{}", deleted.text());
        assert_eq!(found("filter=data.color=changed"), 0);
    }
    // What somebody else writes comes a moment later.
    let other = gadget("other", &json!({"color": "other"}));
    world.north.target.kubectl.apply(&[other]).unwrap();
    eventually("an object of somebody else", || {
        ensure!(found("filter=data.color=other") == 1, "it is not in the list");
        Ok::<_, anyhow::Error>(())
    });
    let delete = ["delete", "gadget", "other", "--namespace", "many"];
    world.north.target.kubectl.succeed(&delete).unwrap();
    eventually("its removal", || {
        ensure!(found("filter=data.color=other") == 0, "it is in the list");
        Ok::<_, anyhow::Error>(())
    });
}

#[test]
fn the_owner_of_a_cluster_excludes_kinds_from_indexes() {
    let world = world();
    let cluster = format!("/apis/management.cattle.io/v3/clusters/{}", world.south.imported.id);
    let annotations = json!({"drover.io/unindexed-kinds": "serviceaccounts"});
    merge(&world.admin, &cluster, &json!({"metadata": {"annotations": annotations}}));
    // A list over several clusters has an index made of any number of objects.
    let list = |kind: &str| {
        let path = format!("/v1/{kind}?clusters={}", super::SOUTH);
        world.admin.get(&path).unwrap().success().unwrap()
    };
    eventually("the index of a kind that is not excluded", || {
        assert!(list("serviceaccounts")["count"].as_u64() > Some(0));
        assert!(list("rbac.authorization.k8s.io.roles")["count"].as_u64() > Some(0));
        let readable = readable(&world.south);
        assert!(!readable.iter().any(|(resource, _)| resource == "serviceaccounts"));
        ensure!(readable.iter().any(|(resource, _)| resource == "roles"), "{readable:?}");
        Ok::<_, anyhow::Error>(())
    });
}
