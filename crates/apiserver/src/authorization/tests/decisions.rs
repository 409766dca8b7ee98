//! Decisions of the authorizer.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{binding, kind_of, path_request, rbac, request, role, service_account, user};
use crate::attributes::{Attributes, Authorizer, Decision, UserInfo};
use crate::authorization::rbac::{RbacAuthorizer, RbacKind, RuleResolver};
use crate::authorization::refusal::forbidden;

fn is_allowed(rbac: &RbacAuthorizer, attributes: &Attributes) -> bool {
    matches!(rbac.authorize(attributes), Decision::Allow { .. })
}

fn reason(decision: Decision) -> String {
    match decision {
        Decision::Allow { reason } | Decision::Deny { reason } | Decision::NoOpinion { reason } => {
            reason
        }
    }
}

fn policy() -> Vec<Value> {
    let read = json!([{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]}]);
    let paths = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    vec![
        role("ClusterRole", "", "reader", read.clone()),
        role("Role", "one", "reader", read),
        role("ClusterRole", "", "metrics", paths),
        binding("", "everywhere", ("ClusterRole", "reader"), &["User:ann", "Group:ops"]),
        binding("one", "local", ("Role", "reader"), &["User:bob", "ServiceAccount:two/sa"]),
        binding("two", "of-cluster", ("ClusterRole", "reader"), &["User:bob"]),
        binding("two", "own", ("ClusterRole", "reader"), &["ServiceAccount:own"]),
        binding("", "metrics", ("ClusterRole", "metrics"), &["User:ann"]),
        binding("two", "metrics", ("ClusterRole", "metrics"), &["User:bob"]),
    ]
}

#[test]
fn bindings_apply_in_their_namespace() {
    let rbac = rbac(&policy());
    let member = UserInfo::new("eve", &["ops"]);
    let cases = [
        (user("ann"), "one", true),
        (user("ann"), "", true),
        (member, "three", true),
        (user("bob"), "one", true),
        (user("bob"), "two", true),
        (user("bob"), "three", false),
        (user("bob"), "", false),
        (service_account("two", "sa"), "one", true),
        (service_account("two", "sa"), "two", false),
        (service_account("one", "sa"), "one", false),
        (service_account("two", "own"), "two", true),
        (UserInfo::new("ops", &[]), "one", false),
        (user("eve"), "one", false),
    ];
    for (who, namespace, expected) in cases {
        let attributes = request(&who, "get", "pods", namespace, "x");
        assert_eq!(is_allowed(&rbac, &attributes), expected, "{} in {namespace:?}", who.name);
        let attributes = request(&who, "delete", "pods", namespace, "x");
        assert!(!is_allowed(&rbac, &attributes));
    }
}

#[test]
fn paths_are_granted_by_cluster_role_bindings_only() {
    let rbac = rbac(&policy());
    assert!(is_allowed(&rbac, &path_request(&user("ann"), "get", "/metrics")));
    assert!(!is_allowed(&rbac, &path_request(&user("bob"), "get", "/metrics")));
    let mut tricky = path_request(&user("bob"), "get", "/metrics");
    tricky.namespace = "two".to_owned();
    assert!(!is_allowed(&rbac, &tricky));
}

#[test]
fn masters_are_always_allowed() {
    let root = UserInfo::new("root", &["system:masters"]);
    assert!(is_allowed(&rbac(&[]), &request(&root, "delete", "secrets", "x", "y")));
    assert!(is_allowed(&rbac(&[]), &path_request(&root, "post", "/anything")));
}

#[test]
fn a_decision_names_the_binding() {
    let rbac = rbac(&policy());
    let cases = [
        (
            user("ann"),
            "one",
            "ClusterRoleBinding \"everywhere\" of ClusterRole \"reader\" to User \"ann\"",
        ),
        (
            service_account("two", "sa"),
            "one",
            "RoleBinding \"local/one\" of Role \"reader\" to ServiceAccount \"sa/two\"",
        ),
        (
            service_account("two", "own"),
            "two",
            "RoleBinding \"own/two\" of ClusterRole \"reader\" to ServiceAccount \"own/two\"",
        ),
    ];
    for (who, namespace, expected) in cases {
        let decision = rbac.authorize(&request(&who, "get", "pods", namespace, "x"));
        assert_eq!(reason(decision), format!("RBAC: allowed by {expected}"));
    }
}

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn refusals_have_the_texts_of_kubernetes() {
    let dangling = binding("r1", "dang", ("Role", "nope"), &["ServiceAccount:r1/sa2"]);
    let rbac = rbac(&[dangling]);
    let sa = service_account("r1", "sa1");
    let sa2 = service_account("r1", "sa2");
    let anonymous = UserInfo::anonymous();
    let cases = [
        (
            request(&sa, "list", "pods", "r1", ""),
            "pods is forbidden: User \"system:serviceaccount:r1:sa1\" cannot list resource \
             \"pods\" in API group \"\" in the namespace \"r1\"",
        ),
        (
            request(&sa, "get", "configmaps", "r1", "abc"),
            "configmaps \"abc\" is forbidden: User \"system:serviceaccount:r1:sa1\" cannot get \
             resource \"configmaps\" in API group \"\" in the namespace \"r1\"",
        ),
        (
            request(&sa, "list", "apps/deployments", "", ""),
            "deployments.apps is forbidden: User \"system:serviceaccount:r1:sa1\" cannot list \
             resource \"deployments\" in API group \"apps\" at the cluster scope",
        ),
        (
            request(&sa, "get", "pods/log", "r1", "x"),
            "pods \"x\" is forbidden: User \"system:serviceaccount:r1:sa1\" cannot get resource \
             \"pods/log\" in API group \"\" in the namespace \"r1\"",
        ),
        (
            request(&sa2, "list", "pods", "r1", ""),
            "pods is forbidden: User \"system:serviceaccount:r1:sa2\" cannot list resource \
             \"pods\" in API group \"\" in the namespace \"r1\": RBAC: \
             role.rbac.authorization.k8s.io \"nope\" not found",
        ),
        (
            path_request(&anonymous, "get", "/api"),
            "forbidden: User \"system:anonymous\" cannot get path \"/api\"",
        ),
    ];
    for (attributes, expected) in cases {
        let Decision::NoOpinion { reason } = rbac.authorize(&attributes) else { panic!("allowed") };
        let status = forbidden(&attributes, &reason);
        assert_eq!(status.message, expected);
        let body = status.to_json();
        assert_eq!(body["code"], 403);
        let details = if attributes.is_resource {
            let mut details = json!({"kind": attributes.resource});
            for (field, text) in [("name", &attributes.name), ("group", &attributes.group)] {
                if !text.is_empty() {
                    details[field] = json!(text);
                }
            }
            details
        } else {
            json!({})
        };
        assert_eq!(body["details"], details);
    }
}

#[test]
fn changes_take_effect_with_the_next_decision() {
    let rbac = rbac(&policy());
    let get_pod = |who: &str| request(&user(who), "get", "pods", "one", "x");
    assert!(is_allowed(&rbac, &get_pod("ann")) && !is_allowed(&rbac, &get_pod("zoe")));
    rbac.put(
        RbacKind::ClusterRoleBinding,
        &binding("", "everywhere", ("ClusterRole", "reader"), &["User:zoe"]),
    );
    assert!(!is_allowed(&rbac, &get_pod("ann")) && is_allowed(&rbac, &get_pod("zoe")));
    rbac.remove(RbacKind::ClusterRole, "", "reader");
    assert!(!is_allowed(&rbac, &get_pod("zoe")) && is_allowed(&rbac, &get_pod("bob")));
    rbac.remove(RbacKind::RoleBinding, "one", "local");
    assert!(!is_allowed(&rbac, &get_pod("bob")));
    rbac.replace_all(RbacKind::ClusterRole, &policy());
    assert!(is_allowed(&rbac, &get_pod("zoe")), "replacing roles retains bindings");
    rbac.replace_all(RbacKind::ClusterRoleBinding, &[]);
    assert!(!is_allowed(&rbac, &get_pod("zoe")));
    let at_two = request(&user("bob"), "get", "pods", "two", "x");
    assert!(is_allowed(&rbac, &at_two), "replacing cluster bindings retains those of namespaces");
}

#[test]
fn a_namespaced_object_without_a_namespace_grants_nothing() {
    let mut misplaced = binding("", "b", ("ClusterRole", "reader"), &["User:bob"]);
    misplaced["kind"] = json!("RoleBinding");
    let mut objects = policy();
    objects.push(misplaced);
    let rbac = rbac(&objects);
    assert!(!is_allowed(&rbac, &request(&user("bob"), "get", "pods", "three", "x")));
}

#[test]
fn rules_for_a_namespace_are_those_of_all_its_bindings() {
    let mut objects = policy();
    objects.push(binding("one", "dangling", ("Role", "nope"), &["User:bob"]));
    let rbac = rbac(&objects);
    let resolved = rbac.rules_for(&user("bob"), "one");
    assert_eq!(resolved.rules.len(), 1);
    assert_eq!(resolved.errors, ["role.rbac.authorization.k8s.io \"nope\" not found"]);
    assert_eq!(rbac.rules_for(&user("ann"), "").rules.len(), 2);
    assert_eq!(rbac.rules_for(&user("bob"), "").rules.len(), 0);
}

/// One change of the objects of a small cluster.
#[derive(Clone, Debug)]
enum ObjectChange {
    Put(Value),
    Remove(RbacKind, &'static str, &'static str),
}

fn step() -> impl Strategy<Value = ObjectChange> {
    let namespaces = prop::sample::select(vec!["", "one", "two"]);
    let names = prop::sample::select(vec!["a", "b"]);
    let subjects = prop::sample::subsequence(
        vec!["User:u", "Group:g", "ServiceAccount:one/s", "ServiceAccount:s"],
        0..4,
    );
    let role_kinds = prop::sample::select(vec!["Role", "ClusterRole"]);
    let verbs = prop::sample::select(vec!["get", "list"]);
    (namespaces, names, subjects, role_kinds, verbs, 0..4u8).prop_map(
        |(namespace, name, subjects, role_kind, verb, what)| {
            let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
            let put = match what {
                0 if namespace.is_empty() => role("ClusterRole", "", name, rules),
                0 => role("Role", namespace, name, rules),
                1 if namespace.is_empty() => binding("", name, ("ClusterRole", name), &subjects),
                1 => binding(namespace, name, (role_kind, name), &subjects),
                _ => {
                    let kinds: &[RbacKind] = if namespace.is_empty() {
                        &[RbacKind::ClusterRole, RbacKind::ClusterRoleBinding]
                    } else {
                        &[RbacKind::Role, RbacKind::RoleBinding]
                    };
                    return ObjectChange::Remove(kinds[usize::from(what - 2)], namespace, name);
                }
            };
            ObjectChange::Put(put)
        },
    )
}

proptest! {
    /// Whatever the history of the objects, decisions are those of an authorizer with the remaining
    /// ones.
    #[test]
    fn decisions_do_not_depend_on_history(steps in prop::collection::vec(step(), 0..24)) {
        let updated = RbacAuthorizer::default();
        let mut left: Vec<Value> = Vec::new();
        let same = |object: &Value, kind: RbacKind, namespace: &str, name: &str| {
            kind_of(object) == kind
                && object["metadata"]["namespace"].as_str().unwrap_or("") == namespace
                && object["metadata"]["name"] == name
        };
        for step in steps {
            match step {
                ObjectChange::Put(object) => {
                    let kind = kind_of(&object);
                    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
                    let name = object["metadata"]["name"].as_str().unwrap();
                    left.retain(|other| !same(other, kind, namespace, name));
                    updated.put(kind, &object);
                    left.push(object.clone());
                }
                ObjectChange::Remove(kind, namespace, name) => {
                    left.retain(|other| !same(other, kind, namespace, name));
                    updated.remove(kind, namespace, name);
                }
            }
        }
        let fresh = rbac(&left);
        let who = [
            user("u"),
            UserInfo::new("x", &["g"]),
            service_account("one", "s"),
            service_account("two", "s"),
        ];
        for who in &who {
            for namespace in ["", "one", "two"] {
                let rules = |rbac: &RbacAuthorizer| {
                    let resolved = rbac.rules_for(who, namespace);
                    let rules: BTreeSet<_> = resolved.rules.into_iter().collect();
                    (rules, resolved.errors.into_iter().collect::<BTreeSet<_>>())
                };
                prop_assert_eq!(rules(&updated), rules(&fresh));
                for verb in ["get", "list"] {
                    let attributes = request(who, verb, "pods", namespace, "x");
                    prop_assert_eq!(is_allowed(&updated, &attributes), is_allowed(&fresh, &attributes));
                }
            }
        }
    }
}
