//! Explanations without a server.

use authz::PolicyRule;
use feature_kit::rbac::rule;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use proptest::prelude::*;
use serde_json::json;

use super::policy::{Policy, Requester};
use super::who::{self, Candidate};
use super::why::explain;
use super::{Question, diff};
use crate::graph::{Holding, RoleSource};

fn cluster_role(name: &str, rules: serde_json::Value) -> ClusterRole {
    serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap()
}

fn role(namespace: &str, name: &str, rules: serde_json::Value) -> Role {
    let metadata = json!({"name": name, "namespace": namespace});
    serde_json::from_value(json!({"metadata": metadata, "rules": rules})).unwrap()
}

fn subjects(subject: (&str, &str)) -> serde_json::Value {
    json!([{"kind": subject.0, "name": subject.1, "apiGroup": "rbac.authorization.k8s.io"}])
}

fn cluster_binding(name: &str, role: &str, subject: (&str, &str)) -> ClusterRoleBinding {
    let role_ref =
        json!({"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"});
    serde_json::from_value(
        json!({"metadata": {"name": name}, "roleRef": role_ref, "subjects": subjects(subject)}),
    )
    .unwrap()
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subject: (&str, &str)) -> RoleBinding {
    let role_ref = json!({"kind": role.0, "name": role.1, "apiGroup": "rbac.authorization.k8s.io"});
    let metadata = json!({"name": name, "namespace": namespace});
    serde_json::from_value(
        json!({"metadata": metadata, "roleRef": role_ref, "subjects": subjects(subject)}),
    )
    .unwrap()
}

fn get_pods(namespace: &str) -> Question {
    Question {
        cluster: "c-1".to_owned(),
        verb: "get".to_owned(),
        resource: "pods".to_owned(),
        namespace: namespace.to_owned(),
        ..Question::default()
    }
}

fn pods(verbs: &[&str]) -> serde_json::Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}])
}

#[test]
fn an_explanation_goes_from_the_rule_back_to_the_binding_of_drover() {
    let group = "drover:cluster:c-1:viewer";
    let policy = Policy {
        cluster_roles: vec![cluster_role("drover:cluster:viewer", pods(&["get"]))],
        cluster_role_bindings: vec![cluster_binding(
            "b",
            "drover:cluster:viewer",
            ("Group", group),
        )],
        ..Policy::default()
    };
    let source = RoleSource {
        group: group.to_owned(),
        kind: "ClusterRoleTemplateBinding",
        namespace: "c-1".to_owned(),
        name: "crtb-x".to_owned(),
        through_group: String::new(),
        roles: vec!["member".to_owned(), "viewer".to_owned()],
    };
    let groups = [group.to_owned()];
    let requester = Requester { user: "u-1", groups: &groups };
    let sources = [source.clone()];
    let owners = || vec!["u-9".to_owned()];
    let found = explain(get_pods("a"), requester, &policy, &sources, owners());
    assert!(found.allowed && found.missing.is_none() && found.granters.is_empty());
    assert_eq!(found.because.len(), 1);
    assert_eq!(found.because[0].from, [source]);
    assert_eq!(found.because[0].grant.role.name, "drover:cluster:viewer");

    let nobody = Requester { user: "u-2", groups: &[] };
    let found = explain(get_pods("a"), nobody, &policy, &[], owners());
    assert!(!found.allowed && found.because.is_empty());
    assert_eq!(found.missing, Some(PolicyRule::resources(&[""], &["pods"], &["get"])));
    assert_eq!(found.granters, ["u-9"]);
    assert!(found.next_step.contains("--project"), "{}", found.next_step);
}

#[test]
fn a_question_must_be_complete_and_not_contradict_itself() {
    assert_eq!(get_pods("").problem(), None);
    let broken = [
        Question { cluster: String::new(), ..get_pods("") },
        Question { verb: String::new(), ..get_pods("") },
        Question { resource: String::new(), ..get_pods("") },
        Question { path: "/metrics".to_owned(), ..get_pods("") },
        Question { resource: String::new(), path: "/metrics".to_owned(), ..get_pods("a") },
    ];
    for question in broken {
        assert!(question.problem().is_some(), "{question:?}");
    }
}

#[test]
fn who_may_lists_users_once_and_what_only_the_cluster_knows_beside_them() {
    let policy = Policy {
        cluster_roles: vec![cluster_role("viewer", pods(&["get"]))],
        cluster_role_bindings: vec![
            cluster_binding("a", "viewer", ("User", "u-1")),
            cluster_binding("b", "viewer", ("Group", "drover:cluster:c-1:viewer")),
            cluster_binding("c", "viewer", ("Group", "system:nodes")),
            cluster_binding("d", "viewer", ("User", "kubelet")),
            cluster_binding("e", "other", ("User", "u-3")),
        ],
        ..Policy::default()
    };
    let candidate = |user: &str, groups: &[&str]| Candidate {
        user: user.to_owned(),
        username: String::new(),
        display_name: String::new(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
    };
    let candidates = [
        candidate("u-1", &["drover:cluster:c-1:viewer"]),
        candidate("u-2", &["drover:cluster:c-1:viewer"]),
        candidate("u-3", &[]),
    ];
    let is_role = |group: &str| group.starts_with("drover:");
    let found = who::allowed(get_pods("a"), &policy, candidates, is_role);
    let users: Vec<&str> = found.users.iter().map(|user| user.user.as_str()).collect();
    assert_eq!(users, ["u-1", "u-2"]);
    let others: Vec<&str> = found.others.iter().map(|other| other.name.as_str()).collect();
    assert_eq!(others, ["system:nodes", "kubelet"]);
}

#[test]
fn a_difference_names_roles_and_rules_but_no_rule_that_stays() {
    let holding = |name: &str, role: &str, cluster: &str| Holding {
        role: role.to_owned(),
        kind: "User",
        name: name.to_owned(),
        cluster: cluster.to_owned(),
        project: String::new(),
    };
    let before = [holding("u-1", "viewer", "c-1"), holding("u-2", "viewer", "c-2")].into();
    let after = [holding("u-1", "viewer", "c-1"), holding("u-1", "editor", "c-1")].into();
    let rule = |verbs: &[&str]| rule("", &["pods"], verbs);
    let rules = [
        ("viewer".to_owned(), vec![rule(&["get", "list"])], vec![rule(&["get", "watch"])]),
        ("other".to_owned(), vec![rule(&["get"])], vec![rule(&["get"])]),
    ];
    let found = diff::differences(&before, &after, rules, |_| 12);
    assert_eq!(found.gains, [holding("u-1", "editor", "c-1")]);
    assert_eq!(found.loses, [holding("u-2", "viewer", "c-2")]);
    assert_eq!(found.rules.len(), 1);
    let change = &found.rules[0];
    assert_eq!((change.holders, change.clusters), (2, 2));
    assert_eq!(change.added, [PolicyRule::resources(&[""], &["pods"], &["watch"])]);
    assert_eq!(change.removed, [PolicyRule::resources(&[""], &["pods"], &["list"])]);
}

const VERBS: [&str; 3] = ["get", "list", "*"];
const KINDS: [&str; 4] = ["pods", "secrets", "pods/log", "*"];
const NAMES: [&str; 3] = ["", "a", "b"];
const USERS: [&str; 3] = ["u-1", "u-2", "u-3"];
const GROUPS: [&str; 3] = ["g-1", "g-2", "system:authenticated"];

prop_compose! {
    fn any_rule()(verb in 0..3usize, kind in 0..4usize, name in 0..3usize) -> serde_json::Value {
        let names = if NAMES[name].is_empty() { json!([]) } else { json!([NAMES[name]]) };
        json!({"apiGroups": [""], "resources": [KINDS[kind]], "verbs": [VERBS[verb]], "resourceNames": names})
    }
}

fn any_subject() -> impl Strategy<Value = (&'static str, &'static str)> {
    (any::<bool>(), 0..3usize).prop_map(|(is_user, at)| match is_user {
        true => ("User", USERS[at]),
        false => ("Group", GROUPS[at]),
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let roles = || proptest::collection::vec(proptest::collection::vec(any_rule(), 0..3), 3);
    let bound = proptest::collection::vec((0..4usize, any_subject()), 0..4);
    let within = proptest::collection::vec((any::<bool>(), 0..4usize, any_subject()), 0..4);
    (roles(), roles(), bound, within).prop_map(|(everywhere, within_roles, bound, within)| {
        let named = |at: usize| format!("r{at}");
        let cluster_roles =
            everywhere.iter().enumerate().map(|(at, rules)| cluster_role(&named(at), json!(rules)));
        let roles =
            within_roles.iter().enumerate().map(|(at, rules)| role("ns", &named(at), json!(rules)));
        let cluster_role_bindings = bound
            .iter()
            .enumerate()
            .map(|(at, (role, subject))| cluster_binding(&named(at), &named(*role), *subject));
        let role_bindings = within.iter().enumerate().map(|(at, (is_cluster, role, subject))| {
            let kind = if *is_cluster { "ClusterRole" } else { "Role" };
            binding("ns", &named(at), (kind, &named(*role)), *subject)
        });
        Policy {
            cluster_roles: cluster_roles.collect(),
            roles: roles.collect(),
            cluster_role_bindings: cluster_role_bindings.collect(),
            role_bindings: role_bindings.collect(),
        }
    })
}

/// Which rules hold for the requester, found the plain way: all of them, then one check.
fn allows(policy: &Policy, requester: Requester<'_>, question: &Question) -> bool {
    let everywhere = policy.cluster_role_bindings.iter().map(|b| (&b.role_ref, &b.subjects));
    let within = policy.role_bindings.iter().map(|b| (&b.role_ref, &b.subjects));
    let mut rules: Vec<PolicyRule> = Vec::new();
    for (role, subjects) in everywhere.chain(within) {
        let concerns = subjects.iter().flatten().any(|subject| {
            (subject.kind == "User" && subject.name == requester.user)
                || (subject.kind == "Group" && requester.groups.contains(&subject.name))
        });
        if !concerns {
            continue;
        }
        let of_cluster = policy.cluster_roles.iter().filter(|_| role.kind == "ClusterRole");
        let found = of_cluster
            .map(|r| (&r.metadata, &r.rules))
            .chain(
                policy
                    .roles
                    .iter()
                    .filter(|_| role.kind == "Role")
                    .map(|r| (&r.metadata, &r.rules)),
            )
            .filter(|(metadata, _)| metadata.name.as_deref() == Some(&role.name));
        for (_, role_rules) in found {
            let json = serde_json::to_value(role_rules).unwrap();
            rules.extend(serde_json::from_value::<Vec<PolicyRule>>(json).unwrap());
        }
    }
    authz::rules_allow(rules.iter(), &question.action())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The explanation and the decision agree, and each way that it names allows the request alone.
    #[test]
    fn an_explanation_decides_as_the_rules_do(
        policy in any_policy(), user in 0..3usize, groups in proptest::sample::subsequence(&GROUPS[..], 0..3),
        verb in 0..2usize, kind in 0..3usize, name in 0..3usize,
    ) {
        let groups: Vec<String> = groups.into_iter().map(str::to_owned).collect();
        let requester = Requester { user: USERS[user], groups: &groups };
        let (resource, subresource) = KINDS[kind].split_once('/').unwrap_or((KINDS[kind], ""));
        let question = Question {
            verb: VERBS[verb].to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: NAMES[name].to_owned(),
            ..get_pods("ns")
        };
        let expected = allows(&policy, requester, &question);
        let found = explain(question.clone(), requester, &policy, &[], Vec::new());
        prop_assert_eq!(found.allowed, expected);
        prop_assert_eq!(found.missing.is_none(), expected);
        for way in &found.because {
            prop_assert!(way.grant.rule.allows(&question.action()));
        }
        // Who was found to lack it, has it with the missing rule.
        if let Some(missing) = found.missing {
            prop_assert!(missing.allows(&question.action()));
        }
    }
}
