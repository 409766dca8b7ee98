//! The session from the first description of the product: `kubectl` on the management API, and the
//! same cluster, flatter, in the REST view.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::journey::{self, MANAGEMENT};
use e2e::{Kubectl, Server, SharedWorld, eventually};
use serde_json::{Value, json};

static SERVER: SharedWorld<Server> = SharedWorld::new();

fn server() -> Arc<Server> {
    SERVER.get(Server::start)
}

fn cluster(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "management.cattle.io/v3", "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"displayName": format!("shown-{name}"), "description": "first"},
    })
}

fn kubectl(server: &Server) -> Kubectl {
    server.kubectl().unwrap()
}

#[test]
fn kubectl_get_crd_lists_the_management_kinds() {
    let server = server();
    let names = kubectl(&server).succeed(&["get", "crd", "-o", "name"]).unwrap();
    for kind in [
        "clusters",
        "clusterregistrationtokens",
        "nodes",
        "projects",
        "users",
        "tokens",
        "settings",
        "roletemplates",
        "clusterroletemplatebindings",
    ] {
        let name = format!("{kind}.management.cattle.io\n");
        assert!(names.contains(&name), "no {name} in\n{names}");
    }
}

#[test]
fn kubectl_get_cluster_shows_a_table_with_the_local_cluster() {
    let server = server();
    eventually("the local cluster is active", || journey::is_active(&server, "local"));
    let table = kubectl(&server).succeed(&["get", "cluster"]).unwrap();
    let head = table.lines().next().unwrap_or_default();
    for column in ["NAME", "READY", "CONNECTED", "VERSION", "NODES"] {
        assert!(head.contains(column), "{table}");
    }
    assert!(table.lines().any(|line| line.starts_with("local ")), "{table}");
}

#[test]
fn kubectl_describe_cluster_shows_spec_and_conditions() {
    let server = server();
    kubectl(&server).apply(&[cluster("c-described", json!({}))]).unwrap();
    eventually("conditions are described", || -> Result<()> {
        let text = kubectl(&server).succeed(&["describe", "cluster", "c-described"])?;
        for part in ["Name:", "c-described", "API Version:  management.cattle.io/v3"] {
            ensure!(text.contains(part), "{text}");
        }
        ensure!(text.contains("Display Name:") && text.contains("Conditions:"), "{text}");
        Ok(())
    });
}

#[test]
fn kubectl_selects_clusters_by_region() {
    let server = server();
    let kubectl = kubectl(&server);
    let clusters = [
        cluster("c-boston", json!({"Region": "NorthAmerica"})),
        cluster("c-lyon", json!({"Region": "Europe"})),
    ];
    kubectl.apply(&clusters).unwrap();
    let select = ["get", "cluster", "--selector", "Region=NorthAmerica", "-o", "name"];
    let names = kubectl.succeed(&select).unwrap();
    assert_eq!(names, "cluster.management.cattle.io/c-boston\n");
    let select =
        ["get", "cluster", "--selector", "Region notin (NorthAmerica),Region", "-o", "name"];
    assert_eq!(kubectl.succeed(&select).unwrap(), "cluster.management.cattle.io/c-lyon\n");
}

#[test]
fn the_rest_view_shows_a_cluster_flat_and_without_what_only_controllers_need() {
    let server = server();
    kubectl(&server).apply(&[cluster("c-viewed", json!({"tier": "one"}))]).unwrap();
    let admin = server.admin().unwrap();
    let stored = journey::cluster(&server, "c-viewed").unwrap();
    let view = admin.get("/v3/clusters/c-viewed").unwrap().success().unwrap();
    let fields = view.as_object().unwrap();
    assert_eq!(view["id"], "c-viewed");
    assert_eq!(view["type"], "cluster");
    assert_eq!(view["name"], "shown-c-viewed", "{view}");
    assert_eq!(view["description"], "first", "{view}");
    assert_eq!(view["labels"]["tier"], "one", "{view}");
    assert_eq!(view["uuid"], stored["metadata"]["uid"]);
    let hidden = ["finalizers", "resourceVersion", "ownerReferences", "metadata", "spec"];
    for name in hidden {
        assert!(!fields.contains_key(name), "'{name}' is shown: {view}");
    }
    assert!(stored["metadata"]["resourceVersion"].is_string());
    for link in ["self", "update", "remove", "nodes"] {
        assert!(view["links"][link].is_string(), "no link '{link}': {view}");
    }
    assert!(view["actions"]["generateKubeconfig"].is_string(), "{view}");

    // A namespaced object has its namespace on top too.
    let path = "/v3/clusterregistrationtokens?clusterId=c-viewed";
    eventually("its registration token is shown", || -> Result<()> {
        let list = admin.get(path)?.success()?;
        let token = &list["data"][0];
        ensure!(token["clusterId"] == "c-viewed", "{list}");
        ensure!(token.as_object().is_some_and(|one| one.contains_key("namespaceId")), "{list}");
        ensure!(
            token.get("metadata").is_none() && token.get("ownerReferences").is_none(),
            "{list}"
        );
        Ok(())
    });
}

#[test]
fn an_object_carries_the_id_of_who_made_it() {
    let server = server();
    let admin = server.admin().unwrap();
    let users = admin.get(&format!("{MANAGEMENT}/users")).unwrap().success().unwrap();
    let users = users["items"].as_array().unwrap();
    let user = users.iter().find(|user| user["username"] == "admin").unwrap();
    let id = &user["metadata"]["name"];

    let body = json!({"name": "made-in-the-view"});
    let view = admin.post("/v3/clusters", &body).unwrap().success().unwrap();
    assert_eq!(&view["creatorId"], id, "{view}");
    let stored = journey::cluster(&server, view["id"].as_str().unwrap()).unwrap();
    assert_eq!(&stored["metadata"]["annotations"]["field.cattle.io/creatorId"], id, "{stored}");

    kubectl(&server).apply(&[cluster("c-by-kubectl", json!({}))]).unwrap();
    let stored = journey::cluster(&server, "c-by-kubectl").unwrap();
    assert_eq!(&stored["metadata"]["annotations"]["field.cattle.io/creatorId"], id, "{stored}");
}

#[test]
fn kubectl_apply_and_edit_change_a_cluster_and_the_applied_spec_follows() {
    let server = server();
    let kubectl = kubectl(&server);
    kubectl.apply(&[cluster("c-edited", json!({"team": "one"}))]).unwrap();
    let described = |expected: &str| {
        eventually("spec and applied spec say so", || -> Result<()> {
            let cluster = journey::cluster(&server, "c-edited")?;
            ensure!(cluster["spec"]["description"] == expected, "{cluster}");
            ensure!(cluster["status"]["appliedSpec"]["description"] == expected, "{cluster}");
            Ok(())
        });
    };
    described("first");

    let mut second = cluster("c-edited", json!({"team": "one"}));
    second["spec"]["description"] = json!("second");
    let said = kubectl.apply(&[second.clone()]).unwrap();
    assert!(said.contains("c-edited configured"), "{said}");
    described("second");
    let said = kubectl.apply(&[second]).unwrap();
    assert!(said.contains("c-edited unchanged"), "{said}");

    let editor = kubectl.clone().with_env("KUBE_EDITOR", "sed -i s/second/third/");
    let said = editor.succeed(&["edit", "cluster", "c-edited"]).unwrap();
    assert!(said.contains("c-edited edited"), "{said}");
    described("third");
}

#[test]
fn kubectl_explain_knows_the_fields_of_a_cluster() {
    let server = server();
    let text = kubectl(&server).succeed(&["explain", "cluster.spec"]).unwrap();
    assert!(text.contains("GROUP:") && text.contains("management.cattle.io"), "{text}");
    assert!(text.contains("KIND:") && text.contains("Cluster"), "{text}");
    assert!(text.contains("displayName") && text.contains("<string>"), "{text}");
    assert!(text.contains("The name that users see."), "{text}");
    let deep = kubectl(&server).succeed(&["explain", "cluster.status.conditions"]).unwrap();
    assert!(deep.contains("lastTransitionTime"), "{deep}");
}

#[test]
fn kubectl_get_w_shows_changes_as_they_come() {
    let server = server();
    let kubectl = kubectl(&server);
    let log = server.folder().join("clusters.log");
    let watch = kubectl.start(&["get", "cluster", "-w"], &log).unwrap();
    let seen = |what: &str, expected: &str| {
        eventually(what, || -> Result<()> {
            let text = std::fs::read_to_string(watch.log())?;
            ensure!(text.lines().any(|line| line.starts_with(expected)), "{text}");
            Ok(())
        });
    };
    seen("the list is there", "local");
    kubectl.apply(&[cluster("c-watched", json!({}))]).unwrap();
    seen("the new cluster is there", "c-watched");
}

#[test]
fn every_need_of_a_cluster_keeps_it_out_of_active_while_it_does_not_hold() {
    let server = server();
    eventually("the local cluster is active", || journey::is_active(&server, "local"));
    kubectl(&server).apply(&[cluster("c-waiting", json!({}))]).unwrap();
    eventually("a cluster without an agent waits for it", || -> Result<()> {
        let (state, message) = journey::state(&server, "c-waiting")?;
        ensure!(
            ["pending", "waiting", "provisioning"].contains(&state.as_str()),
            "{state} {message}"
        );
        ensure!(state != "active", "{state}");
        let cluster = journey::cluster(&server, "c-waiting")?;
        let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let connected = conditions.iter().find(|condition| condition["type"] == "Connected");
        ensure!(connected.is_none_or(|condition| condition["status"] != "True"), "{cluster}");
        Ok(())
    });
}
