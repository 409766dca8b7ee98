//! Short constructors of roles and bindings, for the tests of decisions, grants, kinds and the
//! policy.

mod bootstrap;
mod decisions;
mod grants;
mod kinds;

use serde_json::{Value, json};

use super::rbac::{RbacAuthorizer, RbacKind};
use crate::attributes::{Attributes, GROUP_AUTHENTICATED, UserInfo};

/// An authorizer with these objects.
fn rbac(objects: &[Value]) -> RbacAuthorizer {
    let rbac = RbacAuthorizer::default();
    for object in objects {
        rbac.put(kind_of(object), object);
    }
    rbac
}

fn kind_of(object: &Value) -> RbacKind {
    let kind = object["kind"].as_str().unwrap();
    RbacKind::ALL.into_iter().find(|k| k.kind() == kind).unwrap()
}

fn role(kind: &str, namespace: &str, name: &str, rules: Value) -> Value {
    let mut object = json!({"kind": kind, "metadata": {"name": name}, "rules": rules});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// Subjects as `User:jane`, `Group:ops`, `ServiceAccount:ns/name`.
fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: &[&str]) -> Value {
    let subjects: Vec<Value> = subjects
        .iter()
        .map(|subject| match subject.split_once(':').unwrap() {
            ("ServiceAccount", rest) => match rest.split_once('/') {
                Some((ns, name)) => {
                    json!({"kind": "ServiceAccount", "namespace": ns, "name": name})
                }
                None => json!({"kind": "ServiceAccount", "name": rest}),
            },
            (kind, name) => json!({
                "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io",
            }),
        })
        .collect();
    let mut object = json!({
        "kind": if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" },
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1,
        },
        "subjects": subjects,
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn user(name: &str) -> UserInfo {
    UserInfo::new(name, &[GROUP_AUTHENTICATED])
}

fn service_account(namespace: &str, name: &str) -> UserInfo {
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    UserInfo::new(
        &format!("system:serviceaccount:{namespace}:{name}"),
        &["system:serviceaccounts", &of_namespace, GROUP_AUTHENTICATED],
    )
}

/// `request(user, "get", "apps/deployments/scale", "ns", "name")`; the core group is left out:
/// `pods/log` has the group only when the first part has a dot or is `apps`.
fn request(user: &UserInfo, verb: &str, what: &str, namespace: &str, name: &str) -> Attributes {
    let (group, rest) = match what.split_once('/') {
        Some((group, rest)) if group == "apps" || group.contains('.') => (group, rest),
        _ => ("", what),
    };
    let (resource, subresource) = rest.split_once('/').unwrap_or((rest, ""));
    Attributes {
        user: user.clone(),
        verb: verb.to_owned(),
        is_resource: true,
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: String::new(),
    }
}

fn path_request(user: &UserInfo, verb: &str, path: &str) -> Attributes {
    Attributes {
        user: user.clone(),
        verb: verb.to_owned(),
        path: path.to_owned(),
        ..Attributes::default()
    }
}
