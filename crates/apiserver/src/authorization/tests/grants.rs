//! Privilege escalation: users grant only what they hold.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use super::{binding, kind_of, rbac, role, service_account, user};
use crate::attributes::UserInfo;
use crate::authorization::escalation::EscalationGuard;
use crate::strategy::{Operation, Write};

fn guard(objects: &[Value]) -> EscalationGuard {
    let rbac = Arc::new(rbac(objects));
    EscalationGuard::new(rbac.clone(), rbac)
}

fn write(
    guard: &EscalationGuard,
    who: &UserInfo,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let kind = kind_of(object);
    let write = Write {
        user: who,
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        namespace: object["metadata"]["namespace"].as_str().unwrap_or_default(),
        name: object["metadata"]["name"].as_str().unwrap(),
        dry_run: false,
    };
    if kind.is_role() {
        guard.admit_role(kind, &write, object, old)
    } else {
        guard.admit_binding(kind, &write, object, old)
    }
}

fn rule(resource: &str, verb: &str) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": [verb]})
}

/// In the namespace r2, `sa1` holds secrets/get and may write roles and bindings.
fn roles_and_bindings() -> Vec<Value> {
    let rbac_rules = json!({
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "rolebindings"],
        "verbs": ["create", "update", "patch"],
    });
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    vec![
        role("Role", "r2", "writer", json!([rbac_rules, rule("secrets", "get")])),
        role("Role", "r2", "big", everything),
        role("Role", "r2", "small", json!([rule("secrets", "get")])),
        role("ClusterRole", "", "lister", json!([rule("pods", "list")])),
        binding("r2", "writer", ("Role", "writer"), &["ServiceAccount:sa1"]),
    ]
}

const HEAD: &str = "user \"system:serviceaccount:r2:sa1\" (groups=[\"system:serviceaccounts\" \
                    \"system:serviceaccounts:r2\" \"system:authenticated\"]) is attempting to \
                    grant RBAC permissions not currently held:\n";

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn writing_a_role_needs_all_its_rules() {
    let guard = guard(&roles_and_bindings());
    let sa = service_account("r2", "sa1");
    let fine = role("Role", "r2", "ok", json!([rule("secrets", "get")]));
    assert_eq!(write(&guard, &sa, &fine, None), Ok(()));

    let rules = json!([
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "delete"]},
        {
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "resourceNames": ["a"],
            "verbs": ["*"],
        },
    ]);
    let refused = write(&guard, &sa, &role("Role", "r2", "esc", rules), None).unwrap_err();
    assert_eq!(
        refused.message,
        format!(
            "roles.rbac.authorization.k8s.io \"esc\" is forbidden: {HEAD}\
             {{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"delete\"]}}\n\
             {{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"delete\"]}}\n\
             {{APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"a\"], \
             Verbs:[\"*\"]}}"
        )
    );
    assert_eq!(refused.code, 403);
    let details = refused.details.unwrap();
    assert_eq!((details.kind.as_str(), details.name.as_str()), ("roles", "esc"));
}

#[test]
fn permissions_of_one_namespace_grant_nothing_in_another() {
    let guard = guard(&roles_and_bindings());
    let sa = service_account("r2", "sa1");
    let rules = json!([rule("secrets", "get")]);
    assert!(write(&guard, &sa, &role("Role", "r3", "ok", rules.clone()), None).is_err());
    assert!(write(&guard, &sa, &role("ClusterRole", "", "ok", rules), None).is_err());
}

#[test]
fn only_an_update_that_grants_nothing_new_is_exempt() {
    let guard = guard(&roles_and_bindings());
    let sa = service_account("r2", "sa1");
    let old = roles_and_bindings().remove(1);
    assert_eq!(write(&guard, &sa, &old, Some(&old)), Ok(()));

    let mut with_owner = old.clone();
    with_owner["metadata"]["ownerReferences"] = json!([{"name": "x"}]);
    with_owner["metadata"]["finalizers"] = json!(["x/y"]);
    assert_eq!(write(&guard, &sa, &with_owner, Some(&old)), Ok(()));

    let mut with_label = old.clone();
    with_label["metadata"]["labels"] = json!({"a": "b"});
    let refused = write(&guard, &sa, &with_label, Some(&old)).unwrap_err();
    assert_eq!(
        refused.message,
        format!(
            "roles.rbac.authorization.k8s.io \"big\" is forbidden: {HEAD}\
             {{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}}"
        )
    );
    let mut less = old.clone();
    less["rules"] = json!([rule("secrets", "get")]);
    assert_eq!(write(&guard, &sa, &less, Some(&old)), Ok(()));
}

#[test]
fn writing_a_binding_needs_all_rules_of_its_role() {
    let guard = guard(&roles_and_bindings());
    let sa = service_account("r2", "sa1");
    let bind = |role: (&str, &str)| binding("r2", "m", role, &["User:x"]);
    assert_eq!(write(&guard, &sa, &bind(("Role", "small")), None), Ok(()));
    let refused = write(&guard, &sa, &bind(("Role", "big")), None).unwrap_err();
    assert_eq!(
        refused.message,
        format!(
            "rolebindings.rbac.authorization.k8s.io \"m\" is forbidden: {HEAD}\
             {{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}}"
        )
    );
    let missing = write(&guard, &sa, &bind(("Role", "nope")), None).unwrap_err();
    assert_eq!(missing.message, "rolebindings.rbac.authorization.k8s.io \"nope\" not found");
    assert_eq!(missing.code, 404);
    let root = UserInfo::new("root", &["system:masters"]);
    assert_eq!(write(&guard, &root, &bind(("Role", "nope")), None), Ok(()));
    assert_eq!(write(&guard, &root, &bind(("Role", "big")), None), Ok(()));
}

#[test]
fn the_verbs_escalate_and_bind_bypass_the_checks() {
    let allow_verb = |verb: &str, resource: &str, names: &[&str]| {
        json!([{
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": [resource], "resourceNames": names, "verbs": [verb],
        }])
    };
    let mut objects = roles_and_bindings();
    objects.push(role("Role", "r2", "escalator", allow_verb("escalate", "roles", &["esc"])));
    objects.push(binding("r2", "escalator", ("Role", "escalator"), &["User:ann"]));
    objects.push(role("Role", "r2", "binder", allow_verb("bind", "clusterroles", &["lister"])));
    objects.push(binding("r2", "binder", ("Role", "binder"), &["User:ann"]));
    let guard = guard(&objects);
    let ann = user("ann");
    let rules = json!([rule("secrets", "delete")]);
    assert_eq!(write(&guard, &ann, &role("Role", "r2", "esc", rules.clone()), None), Ok(()));
    assert!(write(&guard, &ann, &role("Role", "r2", "other", rules.clone()), None).is_err());
    assert!(write(&guard, &ann, &role("Role", "r3", "esc", rules), None).is_err());

    let lister = ("ClusterRole", "lister");
    assert_eq!(write(&guard, &ann, &binding("r2", "b", lister, &["User:x"]), None), Ok(()));
    assert!(write(&guard, &ann, &binding("r3", "b", lister, &["User:x"]), None).is_err());
    assert!(write(&guard, &ann, &binding("", "b", lister, &["User:x"]), None).is_err());
    let small = binding("r2", "b", ("Role", "small"), &["User:x"]);
    assert!(write(&guard, &ann, &small, None).is_err());
}

#[test]
fn an_aggregating_role_needs_all_permissions() {
    let resources = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let all = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let guard = guard(&[
        role("ClusterRole", "", "resources", resources),
        role("ClusterRole", "", "all", all),
        binding("", "ann", ("ClusterRole", "resources"), &["User:ann"]),
        binding("", "bob", ("ClusterRole", "all"), &["User:bob"]),
    ]);
    let mut aggregating = role("ClusterRole", "", "g", json!([]));
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let mut bare = aggregating.clone();
    bare.as_object_mut().unwrap().remove("aggregationRule");

    // `escalate` is part of "all verbs on all resources", so ann passes by it, like in
    // kube-apiserver.
    assert_eq!(write(&guard, &user("ann"), &aggregating, None), Ok(()));
    assert_eq!(write(&guard, &user("bob"), &aggregating, None), Ok(()));
    for (new, old) in [(&aggregating, None), (&bare, Some(&aggregating))] {
        let refused = write(&guard, &user("eve"), new, old).unwrap_err();
        assert_eq!(
            refused.message,
            "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin \
             privileges to use the aggregationRule"
        );
    }
}
