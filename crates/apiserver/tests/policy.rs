//! The roles and bindings that a real kube-apiserver starts with, compared with those of the whole
//! simulated API.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use apiserver::authorization::bootstrap::cluster_policy;
use serde_json::Value;
use testbed::{Guarantee, RealCluster, no_second_try};

/// The table in the source.
const TABLE: &str = include_str!("../src/authorization/bootstrap/cluster.txt");
const KINDS: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
const LISTS: [(&str, &str); 5] = [
    ("groups", "apiGroups"),
    ("resources", "resources"),
    ("names", "resourceNames"),
    ("paths", "nonResourceURLs"),
    ("verbs", "verbs"),
];
const BOOTSTRAP: &str = "kubernetes.io/bootstrapping";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn path_of(object: &Value) -> String {
    match text(&object["namespace"]) {
        "" => text(&object["name"]).to_owned(),
        namespace => format!("{namespace}/{}", text(&object["name"])),
    }
}

/// One object in the format of the table.
fn lines(object: &Value) -> String {
    let mut out = format!("{} {}", text(&object["kind"]), path_of(&object["metadata"]));
    for label in
        object["metadata"]["labels"].as_object().unwrap().keys().filter(|l| *l != BOOTSTRAP)
    {
        write!(out, " label={label}").unwrap();
    }
    for selector in list(&object["aggregationRule"]["clusterRoleSelectors"]) {
        for label in selector["matchLabels"].as_object().unwrap().keys() {
            write!(out, " gathers={label}").unwrap();
        }
    }
    let role = &object["roleRef"];
    if role.is_object() {
        write!(out, " role={}/{}", text(&role["kind"]), text(&role["name"])).unwrap();
    }
    out.push('\n');
    // What an aggregated role has is gathered.
    let rules = list(&object["rules"]).filter(|_| object["aggregationRule"].is_null());
    for rule in rules {
        for (short, name) in LISTS {
            if let Some(values) = rule[name].as_array() {
                let values: Vec<&str> = values.iter().map(text).collect();
                write!(out, " {short}={}", values.join(",")).unwrap();
            }
        }
        out.push('\n');
    }
    for subject in list(&object["subjects"]) {
        writeln!(out, " {} {}", text(&subject["kind"]), path_of(subject)).unwrap();
    }
    out
}

#[test]
fn a_cluster_starts_with_the_roles_of_kube_apiserver() {
    no_second_try(Guarantee::Rights);
    let cluster = RealCluster::start().unwrap();
    let kinds = "clusterroles,clusterrolebindings,roles,rolebindings";
    let arguments = ["get", kinds, "--all-namespaces", "-l", BOOTSTRAP, "-o", "json"];
    let output = cluster.kubectl().unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut expected = String::from(
        "# Roles and bindings of a cluster: see `table.rs`. Written by `cargo test -p apiserver \
         --test policy`.\n",
    );
    for kind in KINDS {
        let mut objects: Vec<&Value> =
            list(&found["items"]).filter(|object| object["kind"] == kind).collect();
        objects.sort_by_key(|o| (text(&o["metadata"]["namespace"]), text(&o["metadata"]["name"])));
        expected.extend(objects.into_iter().map(lines));
    }
    if expected != TABLE {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cluster.txt");
        std::fs::write(&path, expected).unwrap();
        panic!(
            "src/authorization/bootstrap/cluster.txt is not what it starts with: see {}",
            path.display()
        );
    }
    // The objects equal those of the server in every field except the generated ones.
    let cluster_objects = cluster_policy();
    for recorded in list(&found["items"]) {
        let (name, namespace) = (&recorded["metadata"]["name"], &recorded["metadata"]["namespace"]);
        let same = |one: &&Value| {
            one["kind"] == recorded["kind"]
                && one["metadata"]["name"] == *name
                && one["metadata"]["namespace"] == *namespace
        };
        let mut one =
            cluster_objects.iter().find(same).unwrap_or_else(|| panic!("no {name}")).clone();
        let mut recorded = recorded.clone();
        for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
            recorded["metadata"].as_object_mut().unwrap().remove(field);
        }
        if recorded["aggregationRule"].is_object() {
            recorded["rules"] = one["rules"].clone();
        }
        if one["rules"].as_array().is_some_and(Vec::is_empty) {
            one["rules"] = recorded["rules"].clone();
        }
        assert_eq!(one, recorded);
    }
    assert_eq!(cluster_objects.len(), list(&found["items"]).count());
}
