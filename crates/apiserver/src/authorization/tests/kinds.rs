//! The four kinds: defaults, violations, table cells.

use std::sync::Arc;

use api_meta::status::Status;
use serde_json::{Value, json};

use super::{binding, rbac, role, user};
use crate::authorization::escalation::EscalationGuard;
use crate::authorization::rbac::RbacKind;
use crate::authorization::resources::{RbacStrategy, columns, rbac_resources};
use crate::strategy::{Operation, Strategy, Write};

fn strategy(kind: RbacKind) -> RbacStrategy {
    let rbac = Arc::new(rbac(&[]));
    RbacStrategy::new(kind, Arc::new(EscalationGuard::new(rbac.clone(), rbac)))
}

fn violations(kind: RbacKind, object: &Value, old: Option<&Value>) -> Vec<String> {
    let writer = user("u");
    let write = Write {
        user: &writer,
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        namespace: "",
        name: "x",
        dry_run: false,
    };
    let causes = strategy(kind).validate(&write, object, old);
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

#[test]
fn each_invalid_rule_is_reported() {
    let cases = [
        (
            RbacKind::Role,
            json!({"verbs": ["get"], "nonResourceURLs": ["/x"]}),
            "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to \
             non-resource URLs",
        ),
        (
            RbacKind::Role,
            json!({"resources": ["pods"], "apiGroups": [""]}),
            "rules[0].verbs: Required value: verbs must contain at least one value",
        ),
        (
            RbacKind::Role,
            json!({"verbs": ["get"], "resources": ["pods"]}),
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ),
        (
            RbacKind::Role,
            json!({"verbs": ["get"], "apiGroups": [""]}),
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ),
        (
            RbacKind::ClusterRole,
            json!({"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}),
            "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both \
             regular resources and non-resource URLs",
        ),
    ];
    for (kind, rule, expected) in cases {
        let object = role(kind.kind(), "", "x", json!([rule]));
        assert_eq!(violations(kind, &object, None), [expected]);
    }
    let fine = json!([{"verbs": ["get"], "nonResourceURLs": ["/x"]}]);
    assert!(
        violations(RbacKind::ClusterRole, &role("ClusterRole", "", "x", fine), None).is_empty()
    );
    let mistyped = role("Role", "a", "x", json!([{"verbs": "get"}]));
    assert_eq!(violations(RbacKind::Role, &mistyped, None).len(), 1);
}

#[test]
fn bindings_need_a_valid_role_and_valid_subjects() {
    let good = binding("a", "x", ("Role", "r"), &["User:u", "ServiceAccount:a/s"]);
    assert!(violations(RbacKind::RoleBinding, &good, None).is_empty());
    let edit = |path: &str, value: Value| {
        let mut object = good.clone();
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    let cases = [
        (
            edit("/roleRef/kind", json!("Rule")),
            "roleRef.kind: Unsupported value: \"Rule\": supported values: \"Role\", \
             \"ClusterRole\"",
        ),
        (edit("/roleRef/name", json!("")), "roleRef.name: Required value"),
        (
            edit("/roleRef/name", json!("a/b")),
            "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            edit("/roleRef/apiGroup", json!("x")),
            "roleRef.apiGroup: Unsupported value: \"x\": supported values: \
             \"rbac.authorization.k8s.io\"",
        ),
        (edit("/subjects/0/name", json!("")), "subjects[0].name: Required value"),
        (
            edit("/subjects/0/apiGroup", json!("x")),
            "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \
             \"rbac.authorization.k8s.io\"",
        ),
        (
            edit("/subjects/0/kind", json!("Robot")),
            "subjects[0].kind: Unsupported value: \"Robot\": supported values: \
             \"ServiceAccount\", \"User\", \"Group\"",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(violations(RbacKind::RoleBinding, &object, None), [expected]);
    }
    let mut account = edit("/subjects/1/name", json!("Not_A_Name"));
    account["subjects"][1]["apiGroup"] = json!("x");
    assert_eq!(violations(RbacKind::RoleBinding, &account, None).len(), 2);
    let cluster = binding("", "x", ("ClusterRole", "r"), &["ServiceAccount:s"]);
    assert_eq!(
        violations(RbacKind::ClusterRoleBinding, &cluster, None),
        ["subjects[0].namespace: Required value"]
    );
}

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn the_role_of_a_binding_is_immutable() {
    let old = binding("r1", "dang", ("Role", "nope"), &[]);
    let mut new = old.clone();
    new["roleRef"]["name"] = json!("zz");
    let writer = user("u");
    let write = Write {
        user: &writer,
        operation: Operation::Update,
        namespace: "r1",
        name: "dang",
        dry_run: false,
    };
    let causes = strategy(RbacKind::RoleBinding).validate(&write, &new, Some(&old));
    let status = Status::invalid("rbac.authorization.k8s.io", "RoleBinding", "dang", causes);
    assert_eq!(
        status.message,
        "RoleBinding.rbac.authorization.k8s.io \"dang\" is invalid: roleRef: Invalid value: \
         {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"zz\"}: cannot \
         change roleRef"
    );
    let to_role = binding("", "xx", ("Role", "x"), &[]);
    assert_eq!(
        violations(RbacKind::ClusterRoleBinding, &to_role, None),
        ["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""]
    );
}

#[test]
fn api_groups_of_subjects_are_defaulted() {
    let mut object = json!({
        "kind": "RoleBinding",
        "metadata": {"name": "x", "namespace": "a"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "g", "apiGroup": "other"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "a"},
        ],
    });
    let strategy = strategy(RbacKind::RoleBinding);
    strategy.default(&mut object);
    assert_eq!(object["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(object["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(object["subjects"][1]["apiGroup"], "other");
    assert_eq!(object["subjects"][2].get("apiGroup"), None);
    let once = object.clone();
    strategy.default(&mut object);
    assert_eq!(object, once);
}

#[test]
fn cells_match_the_columns() {
    let mut object = binding(
        "a",
        "x",
        ("ClusterRole", "view"),
        &["User:u", "User:v", "Group:g", "ServiceAccount:a/s"],
    );
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let created_at = 1_767_225_600;
    let cells = strategy(RbacKind::RoleBinding).cells(&object, created_at + 3 * 3600 + 120);
    assert_eq!(json!(cells), json!(["x", "ClusterRole/view", "3h2m", "u, v", "g", "a/s"]));
    assert_eq!(cells.len(), columns(RbacKind::RoleBinding).len());
    let mut plain = role("Role", "a", "r", json!([]));
    plain["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cells = strategy(RbacKind::Role).cells(&plain, created_at);
    assert_eq!(json!(cells), json!(["r", "2026-01-01T00:00:00Z"]));
    assert_eq!(cells.len(), columns(RbacKind::Role).len());
}

#[test]
fn all_four_kinds_are_served() {
    let rbac = Arc::new(rbac(&[]));
    let guard = Arc::new(EscalationGuard::new(rbac.clone(), rbac));
    let names: Vec<String> = rbac_resources(&guard).into_iter().map(|r| r.plural).collect();
    assert_eq!(names, ["clusterroles", "roles", "clusterrolebindings", "rolebindings"]);
}
