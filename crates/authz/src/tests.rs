//! Rules evaluated against requests and grants, by table and by property.

use proptest::prelude::*;

use crate::cover::{covers, describe};
use crate::rule::{PolicyRule, RequestedAction, rules_allow};
use crate::text::quoted;

fn resource<'a>(
    verb: &'a str,
    group: &'a str,
    path: &'a str,
    name: &'a str,
) -> RequestedAction<'a> {
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    RequestedAction::Resource { verb, group, resource, subresource, name }
}

#[test]
fn a_rule_allows_exactly_what_it_names() {
    let pods = PolicyRule::resources(&[""], &["pods"], &["get", "list"]);
    let logs = PolicyRule::resources(&[""], &["pods/log"], &["get"]);
    let any_log = PolicyRule::resources(&["*"], &["*/log"], &["*"]);
    let all = PolicyRule::resources(&["*"], &["*"], &["*"]);
    let one = PolicyRule::resources(&[""], &["pods"], &["*"]).with_names(&["a"]);
    let cases = [
        (&pods, resource("get", "", "pods", "x"), true),
        (&pods, resource("delete", "", "pods", "x"), false),
        (&pods, resource("get", "apps", "pods", "x"), false),
        (&pods, resource("get", "", "pods/log", "x"), false),
        (&logs, resource("get", "", "pods/log", "x"), true),
        (&logs, resource("get", "", "pods", "x"), false),
        (&logs, resource("get", "", "pods/exec", "x"), false),
        (&any_log, resource("get", "", "pods/log", "x"), true),
        (&any_log, resource("get", "", "pods", "x"), false),
        (&all, resource("get", "apps", "deployments/scale", "x"), true),
        (&all, RequestedAction::Path { verb: "get", path: "/metrics" }, false),
        (&one, resource("get", "", "pods", "a"), true),
        (&one, resource("get", "", "pods", "b"), false),
        (&one, resource("create", "", "pods", ""), false),
        (&one, resource("list", "", "pods", ""), false),
        (&one, resource("list", "", "pods", "a"), true),
    ];
    for (rule, action, expected) in cases {
        assert_eq!(rule.allows(&action), expected, "{rule:?} on {action:?}");
    }
}

#[test]
fn a_path_rule_ends_in_a_star_or_is_exact() {
    let rule = PolicyRule::paths(&["/api", "/api/*", "/healthz*"], &["get"]);
    for (path, expected) in [
        ("/api", true),
        ("/api/", true),
        ("/api/v1", true),
        ("/apis", false),
        ("/healthz", true),
        ("/healthz/etcd", true),
        ("/", false),
    ] {
        assert_eq!(rule.allows(&RequestedAction::Path { verb: "get", path }), expected, "{path}");
        assert!(!rule.allows(&RequestedAction::Path { verb: "post", path }));
    }
    assert!(!rule.allows(&resource("get", "", "api", "")));
    let all = PolicyRule::paths(&["*"], &["*"]);
    assert!(all.allows(&RequestedAction::Path { verb: "put", path: "/x" }));
}

#[test]
fn nobody_grants_what_he_does_not_hold() {
    let r = PolicyRule::resources;
    let held = [
        r(&[""], &["pods", "*/scale"], &["get", "list"]),
        r(&["apps"], &["*"], &["*"]),
        r(&[""], &["secrets"], &["get"]).with_names(&["a", "b"]),
        PolicyRule::paths(&["/api/*", "/version"], &["get"]),
    ];
    let cases = [
        (r(&[""], &["pods"], &["get"]), true),
        (r(&[""], &["pods"], &["delete"]), false),
        (r(&[""], &["pods"], &["*"]), false),
        (r(&["*"], &["pods"], &["get"]), false),
        (r(&[""], &["*"], &["get"]), false),
        (r(&[""], &["pods/scale"], &["get"]), true),
        (r(&[""], &["*/scale"], &["get"]), true),
        (r(&[""], &["pods/log"], &["get"]), false),
        (r(&["apps"], &["deployments/scale"], &["*"]), true),
        (r(&["apps"], &["*/status"], &["patch"]), true),
        (r(&["apps"], &["deployments"], &["get"]).with_names(&["x"]), true),
        (r(&[""], &["secrets"], &["get"]).with_names(&["a"]), true),
        (r(&[""], &["secrets"], &["get"]).with_names(&["a", "b"]), true),
        (r(&[""], &["secrets"], &["get"]).with_names(&["a", "c"]), false),
        (r(&[""], &["secrets"], &["get"]), false),
        (PolicyRule::paths(&["/api/v1/*"], &["get"]), true),
        (PolicyRule::paths(&["/api/v1"], &["get"]), true),
        (PolicyRule::paths(&["/api"], &["get"]), false),
        (PolicyRule::paths(&["*"], &["get"]), false),
        (PolicyRule::paths(&["/version"], &["post"]), false),
    ];
    for (requested, covered) in cases {
        assert_eq!(
            covers(&held, std::slice::from_ref(&requested)).is_ok(),
            covered,
            "{requested:?}"
        );
    }
}

/// Recorded from kube-apiserver 1.36.
#[test]
fn missing_rules_are_described_like_kubernetes_does() {
    let held = [
        PolicyRule::resources(&["rbac.authorization.k8s.io"], &["roles"], &["*"]),
        PolicyRule::resources(&[""], &["secrets"], &["get"]),
    ];
    let requested = [
        PolicyRule::resources(&[""], &["pods", "secrets"], &["get", "delete"]),
        PolicyRule::resources(&["apps"], &["deployments"], &["*"]).with_names(&["a"]),
    ];
    let missing = covers(&held, &requested).expect_err("not held");
    assert_eq!(
        describe(&missing),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"delete\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"delete\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"a\"], Verbs:[\"*\"]}"
    );
    let paths = covers(&held, &[PolicyRule::paths(&["/x"], &["get"])]).expect_err("not held");
    assert_eq!(describe(&paths), "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}");
}

#[test]
fn rules_read_and_write_the_wire_form() {
    let text = r#"{"verbs":["get"],"nonResourceURLs":["/x"],"resources":null}"#;
    let rule: PolicyRule = serde_json::from_str(text).unwrap();
    assert_eq!(rule, PolicyRule::paths(&["/x"], &["get"]));
    assert_eq!(
        serde_json::to_string(&rule).unwrap(),
        r#"{"verbs":["get"],"nonResourceURLs":["/x"]}"#
    );
    let rule = PolicyRule::resources(&[""], &["pods"], &["get"]).with_names(&["a"]);
    assert_eq!(
        serde_json::to_string(&rule).unwrap(),
        r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]}"#
    );
}

#[test]
fn quoting_follows_go() {
    assert_eq!(quoted("a\"b\\c\n\u{1}\u{7f}é"), "\"a\\\"b\\\\c\\n\\x01\\x7fé\"");
}

fn some(of: &'static [&'static str], least: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(of).prop_map(str::to_owned), least..3)
}

const VERBS: &[&str] = &["get", "create", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "pods/log", "secrets", "*/log", "*"];
const NAMES: &[&str] = &["a", "b"];
const PATHS: &[&str] = &["/a", "/a/*", "/a/b", "/a*", "*"];

fn rule() -> impl Strategy<Value = PolicyRule> {
    let on_resources = (some(VERBS, 1), some(GROUPS, 1), some(RESOURCES, 1), some(NAMES, 0))
        .prop_map(|(verbs, api_groups, resources, resource_names)| PolicyRule {
            verbs,
            api_groups,
            resources,
            resource_names,
            ..PolicyRule::default()
        });
    let on_paths = (some(VERBS, 1), some(PATHS, 1)).prop_map(|(verbs, non_resource_urls)| {
        PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() }
    });
    prop_oneof![3 => on_resources, 1 => on_paths]
}

/// Every request that the small alphabet above can distinguish.
fn every_action() -> Vec<RequestedAction<'static>> {
    let mut actions = Vec::new();
    for verb in ["get", "create", "other"] {
        for group in ["", "apps", "other"] {
            for path in ["pods", "pods/log", "pods/other", "secrets", "other", "other/log"] {
                for name in ["", "a", "b", "other"] {
                    actions.push(resource(verb, group, path, name));
                }
            }
        }
        for path in ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b"] {
            actions.push(RequestedAction::Path { verb, path });
        }
    }
    actions
}

proptest! {
    #[test]
    fn what_is_covered_allows_nothing_more(
        held in prop::collection::vec(rule(), 0..4),
        requested in prop::collection::vec(rule(), 0..3),
    ) {
        if covers(&held, &requested).is_ok() {
            for action in every_action() {
                prop_assert!(
                    !rules_allow(&requested, &action) || rules_allow(&held, &action),
                    "{action:?}"
                );
            }
        }
    }

    #[test]
    fn rules_cover_themselves_and_the_widest_rules_cover_all(
        rules in prop::collection::vec(rule(), 0..4),
    ) {
        prop_assert!(covers(&rules, &rules).is_ok());
        let widest =
            [PolicyRule::resources(&["*"], &["*"], &["*"]), PolicyRule::paths(&["*"], &["*"])];
        prop_assert!(covers(&widest, &rules).is_ok());
    }

    #[test]
    fn what_is_missing_closes_the_gap(
        held in prop::collection::vec(rule(), 0..4),
        requested in prop::collection::vec(rule(), 0..3),
    ) {
        if let Err(missing) = covers(&held, &requested) {
            let together: Vec<PolicyRule> = held.iter().chain(&missing).cloned().collect();
            prop_assert!(covers(&together, &requested).is_ok());
            prop_assert!(!describe(&missing).is_empty());
        }
    }
}
