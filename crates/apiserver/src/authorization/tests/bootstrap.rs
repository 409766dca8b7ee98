//! The initial policy of a server.

use serde_json::{Value, json};

use super::{binding, path_request, rbac, request, role, user};
use crate::attributes::{Authorizer, Decision, UserInfo};
use crate::authorization::aggregation::{aggregate_all, aggregated_rules};
use crate::authorization::bootstrap::{
    PolicyAction, bootstrap_cluster_role_bindings, bootstrap_cluster_roles, compare_with_stored,
};
use crate::authorization::rbac::RbacAuthorizer;
use crate::authorization::validation::{validate_binding, validate_role};

fn authorizer_at_start() -> RbacAuthorizer {
    let mut roles = bootstrap_cluster_roles();
    aggregate_all(&mut roles);
    let mut objects = roles;
    objects.extend(bootstrap_cluster_role_bindings());
    for name in ["admin", "edit", "view"] {
        let subject = format!("User:{name}");
        objects.push(binding("ns", name, ("ClusterRole", name), &[&subject]));
    }
    rbac(&objects)
}

#[test]
fn the_policy_is_valid() {
    use crate::authorization::rbac::RbacKind::{ClusterRole, ClusterRoleBinding};
    for role in bootstrap_cluster_roles() {
        assert_eq!(validate_role(ClusterRole, &role), []);
    }
    let roles = bootstrap_cluster_roles();
    for binding in bootstrap_cluster_role_bindings() {
        assert_eq!(validate_binding(ClusterRoleBinding, &binding, None), []);
        let bound = &binding["roleRef"]["name"];
        assert!(roles.iter().any(|role| role["metadata"]["name"] == *bound), "{bound}");
    }
}

#[test]
fn the_policy_allows_what_kubernetes_allows() {
    let rbac = authorizer_at_start();
    let anyone = user("jane");
    let anonymous = UserInfo::anonymous();
    let without_groups = |name: &str| UserInfo::new(name, &[]);
    let (admin, edit, view) =
        (without_groups("admin"), without_groups("edit"), without_groups("view"));
    let reviews = "authorization.k8s.io/selfsubjectaccessreviews";
    let cases = [
        (path_request(&anyone, "get", "/apis/apps"), true),
        (path_request(&anyone, "get", "/openapi/v3"), true),
        (path_request(&anyone, "get", "/metrics"), false),
        (path_request(&anonymous, "get", "/version"), true),
        (path_request(&anonymous, "get", "/healthz"), true),
        (path_request(&anonymous, "get", "/livez/ping"), false),
        (path_request(&anonymous, "get", "/api"), false),
        (request(&anyone, "create", reviews, "", ""), true),
        (request(&anonymous, "create", reviews, "", ""), false),
        (request(&anyone, "list", "pods", "ns", ""), false),
        (request(&view, "list", "pods", "ns", ""), true),
        (request(&view, "list", "secrets", "ns", ""), false),
        (request(&view, "create", "pods", "ns", ""), false),
        (request(&view, "list", "pods", "other", ""), false),
        (request(&edit, "list", "secrets", "ns", ""), true),
        (request(&edit, "patch", "apps/deployments/scale", "ns", "x"), true),
        (request(&edit, "list", "pods", "ns", ""), true),
        (request(&edit, "create", "rbac.authorization.k8s.io/roles", "ns", ""), false),
        (request(&admin, "create", "rbac.authorization.k8s.io/roles", "ns", ""), true),
        (request(&admin, "delete", "pods", "ns", "x"), true),
        (request(&admin, "list", "resourcequotas", "ns", ""), true),
        (request(&admin, "create", "resourcequotas", "ns", ""), false),
    ];
    for (attributes, expected) in cases {
        let allowed = matches!(rbac.authorize(&attributes), Decision::Allow { .. });
        assert_eq!(allowed, expected, "{attributes:?}");
    }
}

fn aggregating_role(name: &str, label: &str) -> Value {
    let mut object = role("ClusterRole", "", name, json!([]));
    object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    object
}

fn with_label(mut object: Value, label: &str) -> Value {
    object["metadata"]["labels"] = json!({label: "true"});
    object
}

fn rules(resource: &str) -> Value {
    json!([{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}])
}

#[test]
fn an_aggregating_role_has_the_rules_of_all_matching_roles() {
    let all = vec![
        with_label(role("ClusterRole", "", "b", rules("pods")), "x"),
        with_label(role("ClusterRole", "", "a", rules("nodes")), "x"),
        with_label(role("ClusterRole", "", "same", rules("nodes")), "x"),
        with_label(role("ClusterRole", "", "other", rules("secrets")), "y"),
    ];
    let mut role = aggregating_role("g", "x");
    let expected = json!([rules("nodes")[0], rules("pods")[0]]);
    assert_eq!(aggregated_rules(&role, &all), Some(expected.clone()));
    role["rules"] = expected;
    assert_eq!(aggregated_rules(&role, &all), None);
    assert_eq!(aggregated_rules(&all[0], &all), None);
}

#[test]
fn nested_aggregations_converge() {
    let mut all = vec![
        aggregating_role("top", "middle"),
        with_label(aggregating_role("middle", "leaf"), "middle"),
        with_label(role("ClusterRole", "", "leaf", rules("pods")), "leaf"),
    ];
    let changed = aggregate_all(&mut all);
    assert_eq!(changed.len(), 2);
    assert_eq!(all[0]["rules"], rules("pods"));
    assert!(aggregate_all(&mut all).is_empty());
}

#[test]
fn aggregation_selectors_support_expressions() {
    let object = with_label(role("ClusterRole", "", "s", rules("pods")), "x");
    let cases = [
        (json!({"key": "x", "operator": "In", "values": ["true", "no"]}), true),
        (json!({"key": "x", "operator": "In", "values": ["no"]}), false),
        (json!({"key": "y", "operator": "In", "values": ["no"]}), false),
        (json!({"key": "y", "operator": "NotIn", "values": ["no"]}), true),
        (json!({"key": "x", "operator": "Exists"}), true),
        (json!({"key": "x", "operator": "DoesNotExist"}), false),
        (json!({"key": "x", "operator": "Near"}), false),
    ];
    for (expression, expected) in cases {
        let mut role = aggregating_role("g", "x");
        role["aggregationRule"]["clusterRoleSelectors"] =
            json!([{"matchExpressions": [expression]}]);
        let all = [object.clone()];
        assert_eq!(aggregated_rules(&role, &all).is_some(), expected, "{expression}");
    }
}

#[test]
fn a_start_adds_missing_rules_and_retains_added_ones() {
    let find = |list: Vec<Value>, name: &str| {
        list.into_iter().find(|object| object["metadata"]["name"] == name).unwrap()
    };
    let desired = find(bootstrap_cluster_roles(), "system:discovery");
    assert_eq!(compare_with_stored(None, &desired), PolicyAction::Create(desired.clone()));
    assert_eq!(compare_with_stored(Some(&desired), &desired), PolicyAction::Retain);

    let mut stored = desired.clone();
    stored["metadata"]["uid"] = json!("u");
    stored["metadata"]["labels"] = Value::Null;
    stored["rules"] = rules("pods");
    let PolicyAction::Update(merged) = compare_with_stored(Some(&stored), &desired) else {
        panic!("unchanged")
    };
    assert_eq!(merged["metadata"]["uid"], "u");
    assert_eq!(merged["metadata"]["labels"], desired["metadata"]["labels"]);
    assert_eq!(merged["rules"], json!([rules("pods")[0], desired["rules"][0]]));
    assert_eq!(compare_with_stored(Some(&merged), &desired), PolicyAction::Retain);

    stored["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] =
        json!("false");
    assert_eq!(compare_with_stored(Some(&stored), &desired), PolicyAction::Retain);

    let view = find(bootstrap_cluster_roles(), "view");
    let mut aggregated = view.clone();
    aggregated["rules"] = rules("pods");
    assert_eq!(compare_with_stored(Some(&aggregated), &view), PolicyAction::Retain);

    let binding = find(bootstrap_cluster_role_bindings(), "cluster-admin");
    let mut stored = binding.clone();
    stored["subjects"] = json!([{"kind": "User", "name": "u"}]);
    let PolicyAction::Update(merged) = compare_with_stored(Some(&stored), &binding) else {
        panic!("unchanged")
    };
    assert_eq!(merged["subjects"].as_array().unwrap().len(), 2);
    stored["roleRef"]["name"] = json!("other");
    assert_eq!(
        compare_with_stored(Some(&stored), &binding),
        PolicyAction::Recreate(binding.clone())
    );
}
