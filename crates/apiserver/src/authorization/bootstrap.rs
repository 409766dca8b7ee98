//! The initial roles and bindings of a server, and their reconciliation.
//!
//! They are data: [`management_policy`] of a management plane, [`cluster_policy`] of a whole
//! cluster. At each start they are compared with the stored objects ([`compare_with_stored`]).
//! Missing rules and subjects are added, additions by an administrator are retained, and an object
//! with the annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` is not touched.

use api_meta::object::ObjectExt;
use authz::PolicyRule;
use authz::cover::covers;
use serde_json::{Value, json};

use super::RBAC_GROUP;
use super::bindings::parse_rules;
use crate::attributes::{GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_UNAUTHENTICATED};

mod policy;
mod table;

pub use policy::bootstrap_cluster_roles;
pub use table::cluster_policy;

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The roles and bindings of a server that only serves the management kinds.
pub fn management_policy() -> Vec<Value> {
    let mut objects = bootstrap_cluster_roles();
    objects.extend(bootstrap_cluster_role_bindings());
    objects
}

/// The bindings of the roles of [`bootstrap_cluster_roles`].
pub fn bootstrap_cluster_role_bindings() -> Vec<Value> {
    let bind = |role: &str, groups: &[&str]| {
        let subjects: Vec<Value> = groups
            .iter()
            .map(|group| json!({"kind": "Group", "apiGroup": RBAC_GROUP, "name": group}))
            .collect();
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata(role, &[]),
            "subjects": subjects,
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        })
    };
    vec![
        bind("cluster-admin", &[GROUP_MASTERS]),
        bind("system:monitoring", &["system:monitoring"]),
        bind("system:discovery", &[GROUP_AUTHENTICATED]),
        bind("system:basic-user", &[GROUP_AUTHENTICATED]),
        bind("system:public-info-viewer", &[GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED]),
        bind("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
    ]
}

fn metadata(name: &str, labels: &[&str]) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    });
    for label in labels {
        metadata["labels"][*label] = json!("true");
    }
    metadata
}

/// The action that reconciles a stored role or binding with the desired one.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyAction {
    /// Nothing: the stored object is up to date, or its owner opted out.
    Retain,
    /// Create this object.
    Create(Value),
    /// Replace the stored object by this one.
    Update(Value),
    /// Delete the binding, then create this one: the role of a binding cannot be updated.
    Recreate(Value),
}

/// Compares a desired role or binding with the stored one, if there is one. The result retains
/// additional rules, subjects, labels and annotations of the stored object.
pub fn compare_with_stored(stored: Option<&Value>, desired: &Value) -> PolicyAction {
    let Some(stored) = stored else { return PolicyAction::Create(desired.clone()) };
    if stored.annotation(AUTOUPDATE) == Some("false") {
        return PolicyAction::Retain;
    }
    if desired["roleRef"] != stored["roleRef"] {
        return PolicyAction::Recreate(desired.clone());
    }
    let mut merged = stored.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in desired["metadata"][field].as_object().into_iter().flatten() {
            merged["metadata"][field][key] = value.clone();
        }
    }
    let aggregation = ["aggregationRule", "clusterRoleSelectors"];
    if desired[aggregation[0]].is_object() {
        let desired = &desired[aggregation[0]][aggregation[1]];
        add_missing(&mut merged[aggregation[0]][aggregation[1]], desired);
    } else if desired["rules"].is_array() {
        add_missing_rules(&mut merged, desired);
    }
    if desired["subjects"].is_array() {
        add_missing(&mut merged["subjects"], &desired["subjects"]);
    }
    if merged == *stored { PolicyAction::Retain } else { PolicyAction::Update(merged) }
}

fn add_missing(list: &mut Value, desired: &Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("made a list above");
    for item in desired.as_array().into_iter().flatten() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// Adds the rules that the stored rules do not cover. Stored rules that do not decode count as
/// none.
fn add_missing_rules(merged: &mut Value, desired: &Value) {
    let held: Vec<PolicyRule> = parse_rules(merged).unwrap_or_default();
    let desired = parse_rules(desired).expect("the policy is written in this crate");
    let Err(_) = covers(&held, &desired) else { return };
    let absent = desired.iter().filter(|rule| covers(&held, std::slice::from_ref(rule)).is_err());
    let absent: Vec<Value> = absent.map(rule_json).collect();
    add_missing(&mut merged["rules"], &Value::Array(absent));
}

fn rule_json(rule: &PolicyRule) -> Value {
    serde_json::to_value(rule).expect("lists of strings serialise")
}
