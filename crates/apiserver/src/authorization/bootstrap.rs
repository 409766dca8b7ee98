//! The roles and bindings that a server has from the start, and how they are kept.
//!
//! They are data: [`management_policy`] of a management plane, [`cluster_policy`] of a whole cluster.
//! At each start
//! they are held against what is stored ([`reconciled`]): what is missing is added, what an
//! administrator added stays, and an object whose annotation
//! `rbac.authorization.kubernetes.io/autoupdate` is `false` is left alone.

use api_meta::object::ObjectExt;
use authz::PolicyRule;
use authz::cover::covers;
use serde_json::{Value, json};

use super::RBAC_GROUP;
use super::bindings::rules_of_object;
use crate::attributes::{GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_UNAUTHENTICATED};

mod policy;
mod table;

pub use policy::bootstrap_cluster_roles;
pub use table::cluster_policy;

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Roles and bindings of a server that offers the management kinds alone.
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

/// What to do with a stored object so that it holds what the server needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// It holds already, or its owner opted out.
    Keep,
    Create(Value),
    Update(Value),
    /// A binding whose role changed, which no update can do: delete it, then create this.
    Recreate(Value),
}

/// Compares a wanted role or binding with the stored one.
pub fn reconciled(stored: Option<&Value>, wanted: &Value) -> Reconciled {
    let Some(stored) = stored else { return Reconciled::Create(wanted.clone()) };
    if stored.annotation(AUTOUPDATE) == Some("false") {
        return Reconciled::Keep;
    }
    if wanted["roleRef"] != stored["roleRef"] {
        return Reconciled::Recreate(wanted.clone());
    }
    let mut merged = stored.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
            merged["metadata"][field][key] = value.clone();
        }
    }
    let aggregation = ["aggregationRule", "clusterRoleSelectors"];
    if wanted[aggregation[0]].is_object() {
        let wanted = &wanted[aggregation[0]][aggregation[1]];
        add_missing(&mut merged[aggregation[0]][aggregation[1]], wanted);
    } else if wanted["rules"].is_array() {
        add_missing_rules(&mut merged, wanted);
    }
    if wanted["subjects"].is_array() {
        add_missing(&mut merged["subjects"], &wanted["subjects"]);
    }
    if merged == *stored { Reconciled::Keep } else { Reconciled::Update(merged) }
}

fn add_missing(list: &mut Value, wanted: &Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("made a list above");
    for item in wanted.as_array().into_iter().flatten() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// Adds what the stored rules do not cover. Stored rules that do not decode count as none.
fn add_missing_rules(merged: &mut Value, wanted: &Value) {
    let held: Vec<PolicyRule> = rules_of_object(merged).unwrap_or_default();
    let wanted = rules_of_object(wanted).expect("the policy is written in this crate");
    let Err(_) = covers(&held, &wanted) else { return };
    let absent = wanted.iter().filter(|rule| covers(&held, std::slice::from_ref(rule)).is_err());
    let absent: Vec<Value> = absent.map(rule_json).collect();
    add_missing(&mut merged["rules"], &Value::Array(absent));
}

fn rule_json(rule: &PolicyRule) -> Value {
    serde_json::to_value(rule).expect("lists of strings serialise")
}
