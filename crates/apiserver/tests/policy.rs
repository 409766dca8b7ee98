//! The roles and bindings that a real kube-apiserver starts with, against those of our whole cluster.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use apiserver::authorization::bootstrap::cluster_policy;
use serde_json::Value;
use testbed::{Guarantee, RealCluster, no_second_try};

/// The table as it stands in the source.
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

fn placed(object: &Value) -> String {
    match text(&object["namespace"]) {
        "" => text(&object["name"]).to_owned(),
        namespace => format!("{namespace}/{}", text(&object["name"])),
    }
}

/// One object in the table's form.
fn lines(object: &Value) -> String {
    let mut out = format!("{} {}", text(&object["kind"]), placed(&object["metadata"]));
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
        writeln!(out, " {} {}", text(&subject["kind"]), placed(subject)).unwrap();
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
    let mut wanted = String::from(
        "# Roles and bindings of a cluster: see `table.rs`. Written by `cargo test -p apiserver \
         --test policy`.\n",
    );
    for kind in KINDS {
        let mut objects: Vec<&Value> =
            list(&found["items"]).filter(|object| object["kind"] == kind).collect();
        objects.sort_by_key(|o| (text(&o["metadata"]["namespace"]), text(&o["metadata"]["name"])));
        wanted.extend(objects.into_iter().map(lines));
    }
    if wanted != TABLE {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cluster.txt");
        std::fs::write(&path, wanted).unwrap();
        panic!(
            "src/authorization/bootstrap/cluster.txt is not what it starts with: see {}",
            path.display()
        );
    }
    // Our objects are those of the server in every field but those of each one's own.
    let ours = cluster_policy();
    for theirs in list(&found["items"]) {
        let (name, namespace) = (&theirs["metadata"]["name"], &theirs["metadata"]["namespace"]);
        let same = |one: &&Value| {
            one["kind"] == theirs["kind"]
                && one["metadata"]["name"] == *name
                && one["metadata"]["namespace"] == *namespace
        };
        let mut one = ours.iter().find(same).unwrap_or_else(|| panic!("no {name}")).clone();
        let mut theirs = theirs.clone();
        for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
            theirs["metadata"].as_object_mut().unwrap().remove(field);
        }
        if theirs["aggregationRule"].is_object() {
            theirs["rules"] = one["rules"].clone();
        }
        if one["rules"].as_array().is_some_and(Vec::is_empty) {
            one["rules"] = theirs["rules"].clone();
        }
        assert_eq!(one, theirs);
    }
    assert_eq!(ours.len(), list(&found["items"]).count());
}
