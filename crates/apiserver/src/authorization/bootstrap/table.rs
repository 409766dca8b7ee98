//! The policy of a whole cluster, with the roles of every controller of Kubernetes.
//!
//! `cluster.txt` is the initial policy of kube-apiserver. `cargo test -p apiserver --test policy`
//! compares the two and writes the next table. Its lines:
//!
//! ```text
//! Role kube-system/name label=L       kind, namespace of those that have one, name, labels
//! ClusterRole edit gathers=L          its rules are those of the roles with the label
//!  groups=,apps resources=pods verbs=get   a rule of the role above
//! RoleBinding kube-system/name role=Role/name
//!  ServiceAccount kube-system/name    a subject of the binding above
//! ```

use serde_json::{Map, Value, json};

use super::metadata;
use crate::authorization::RBAC_GROUP;

const TABLE: &str = include_str!("cluster.txt");

/// The names of a rule's lists in the table and in the object.
const LISTS: [(&str, &str); 5] = [
    ("groups", "apiGroups"),
    ("resources", "resources"),
    ("names", "resourceNames"),
    ("paths", "nonResourceURLs"),
    ("verbs", "verbs"),
];

/// The whole policy of a cluster: roles before their bindings.
pub fn cluster_policy() -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix(' '), objects.last_mut()) {
            (Some(entry), Some(object)) => add(object, entry),
            _ => objects.push(object(line)),
        }
    }
    objects
}

/// Splits `namespace/name`, or a name alone.
fn split_name(text: &str) -> (Option<&str>, &str) {
    text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name))
}

fn object(line: &str) -> Value {
    let mut words = line.split(' ');
    let kind = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let (namespace, name) =
        if kind.starts_with("Cluster") { (None, path) } else { split_name(path) };
    let marks: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    let all = |key: &str| -> Vec<&str> {
        marks.iter().filter(|(mark, _)| *mark == key).map(|(_, value)| *value).collect()
    };
    let mut object = json!({
        "apiVersion": format!("{RBAC_GROUP}/v1"),
        "kind": kind,
        "metadata": metadata(name, &all("label")),
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    if kind.ends_with("Role") {
        object["rules"] = json!([]);
    }
    for label in all("gathers") {
        object["aggregationRule"] =
            json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    }
    for role in all("role") {
        let (kind, name) = role.split_once('/').unwrap_or(("ClusterRole", role));
        object["roleRef"] = json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": name});
    }
    object
}

/// Adds a rule to a role, or a subject to a binding.
fn add(object: &mut Value, entry: &str) {
    let binds = object["roleRef"].is_object();
    let (field, value) = if binds { ("subjects", subject(entry)) } else { ("rules", rule(entry)) };
    match object[field].as_array_mut() {
        Some(list) => list.push(value),
        None => object[field] = json!([value]),
    }
}

fn subject(entry: &str) -> Value {
    let (kind, path) = entry.split_once(' ').unwrap_or((entry, ""));
    if kind != "ServiceAccount" {
        return json!({"kind": kind, "apiGroup": RBAC_GROUP, "name": path});
    }
    let (namespace, name) = split_name(path);
    json!({"kind": kind, "namespace": namespace, "name": name})
}

fn rule(entry: &str) -> Value {
    let lists = entry.split(' ').filter_map(|word| {
        let (short, values) = word.split_once('=')?;
        let (_, name) = LISTS.iter().find(|(known, _)| *known == short)?;
        Some(((*name).to_owned(), values.split(',').collect()))
    });
    Value::Object(lists.collect::<Map<String, Value>>())
}
