//! Which FlowSchema a request matches, and which flow of it. Pure.

use k8s_openapi::api::flowcontrol::v1::{
    FlowSchemaSpec, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject,
};

use crate::attributes::UserInfo;
use crate::request::RequestInfo;
use crate::service_accounts;

const ALL: &str = "*";

/// Whether a request matches a rule of the FlowSchema.
pub fn matches(spec: &FlowSchemaSpec, user: &UserInfo, info: &RequestInfo) -> bool {
    spec.rules.iter().flatten().any(|rule| rule_matches(rule, user, info))
}

/// The text that distinguishes the flows of a FlowSchema: the user name, the namespace, or empty
/// when all requests are one flow.
pub fn distinguisher<'a>(
    spec: &FlowSchemaSpec,
    user: &'a UserInfo,
    info: &'a RequestInfo,
) -> &'a str {
    match spec.distinguisher_method.as_ref().map(|method| method.type_.as_str()) {
        Some("ByUser") => &user.name,
        Some("ByNamespace") => &info.namespace,
        _ => "",
    }
}

fn rule_matches(rule: &PolicyRulesWithSubjects, user: &UserInfo, info: &RequestInfo) -> bool {
    // Cheaper than the subjects, so it is checked first.
    let matches_request = if info.is_resource {
        rule.resource_rules.iter().flatten().any(|rule| resource_matches(rule, info))
    } else {
        rule.non_resource_rules.iter().flatten().any(|rule| path_matches(rule, info))
    };
    matches_request && rule.subjects.iter().any(|subject| subject_matches(subject, user))
}

fn subject_matches(subject: &Subject, user: &UserInfo) -> bool {
    if let Some(pattern) = &subject.user {
        return pattern.name == ALL || pattern.name == user.name;
    }
    if let Some(pattern) = &subject.group {
        return pattern.name == ALL || user.in_group(&pattern.name);
    }
    let Some(pattern) = &subject.service_account else { return false };
    service_accounts::parse_user_name(&user.name).is_some_and(|(namespace, name)| {
        pattern.namespace == namespace && (pattern.name == ALL || pattern.name == name)
    })
}

fn contains(list: &[String], pattern: &str) -> bool {
    list.iter().any(|item| item == ALL || item == pattern)
}

fn resource_matches(rule: &ResourcePolicyRule, info: &RequestInfo) -> bool {
    let names_resource = |pattern: &String| {
        if info.subresource.is_empty() {
            return pattern == ALL || *pattern == info.resource;
        }
        let rest = pattern.strip_prefix(info.resource.as_str());
        pattern == ALL
            || rest.and_then(|rest| rest.strip_prefix('/')) == Some(info.subresource.as_str())
    };
    let in_scope = || match info.namespace.as_str() {
        "" => rule.cluster_scope == Some(true),
        namespace => contains(rule.namespaces.as_deref().unwrap_or_default(), namespace),
    };
    contains(&rule.verbs, info.verb)
        && contains(&rule.api_groups, &info.group)
        && rule.resources.iter().any(names_resource)
        && in_scope()
}

fn path_matches(rule: &NonResourcePolicyRule, info: &RequestInfo) -> bool {
    let names_path = |pattern: &String| match pattern.strip_suffix(ALL) {
        Some(prefix) => info.path.starts_with(prefix),
        None => *pattern == info.path,
    };
    contains(&rule.verbs, info.verb) && rule.non_resource_urls.iter().any(names_path)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::flow_control::bootstrap;
    use crate::request::Query;

    fn spec(value: &Value) -> FlowSchemaSpec {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn request(method: &Method, path: &str) -> RequestInfo {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        RequestInfo::parse(method, path, &Query::parse(Some(query)))
    }

    /// The first of the initial FlowSchemas that a request matches.
    fn schema(user: &UserInfo, method: &Method, path: &str) -> String {
        let info = request(method, path);
        let mut schemas = bootstrap::flow_schemas();
        schemas.sort_by_key(|schema| schema["spec"]["matchingPrecedence"].as_i64());
        let found = schemas.iter().find(|schema| matches(&spec(&schema["spec"]), user, &info));
        found.unwrap()["metadata"]["name"].as_str().unwrap().to_owned()
    }

    #[test]
    fn requests_fall_under_the_initial_schemas_as_in_kubernetes() {
        let user = |name: &str, group: &str| UserInfo::new(name, &[group, "system:authenticated"]);
        let account = |namespace: &str, name: &str| {
            let groups = service_accounts::groups(namespace);
            let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
            let name = service_accounts::user_name(namespace, name);
            let mut user = UserInfo::new(&name, &groups);
            user.groups.push("system:authenticated".to_owned());
            user
        };
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
        for (user, method, path, expected) in [
            (user("admin", "system:masters"), Method::PUT, leases, "exempt"),
            (UserInfo::anonymous(), Method::GET, "/readyz", "probes"),
            (UserInfo::anonymous(), Method::GET, "/version", "global-default"),
            (user("system:kube-scheduler", "x"), Method::PUT, leases, "system-leader-election"),
            (user("system:kube-scheduler", "x"), Method::GET, "/api/v1/pods", "kube-scheduler"),
            (account("kube-system", "a"), Method::PUT, leases, "system-leader-election"),
            (
                account("kube-system", "a"),
                Method::GET,
                "/api/v1/pods",
                "kube-system-service-accounts",
            ),
            (account("x", "a"), Method::PUT, leases, "service-accounts"),
            (user("system:node:a", "system:nodes"), Method::PUT, leases, "system-node-high"),
            (
                user("system:node:a", "system:nodes"),
                Method::PATCH,
                "/api/v1/nodes/a/status",
                "system-node-high",
            ),
            (user("system:node:a", "system:nodes"), Method::GET, "/api/v1/pods", "system-nodes"),
            (user("alice", "dev"), Method::GET, "/api/v1/pods", "global-default"),
            (UserInfo::new("nobody", &[]), Method::GET, "/api/v1/pods", "catch-all"),
        ] {
            if user.name == "nobody" {
                // In neither of the groups that every user is in: only the server itself falls back
                // to the catch-all.
                let info = request(&method, path);
                let none = bootstrap::flow_schemas();
                assert!(!none.iter().any(|schema| matches(&spec(&schema["spec"]), &user, &info)));
                continue;
            }
            assert_eq!(schema(&user, &method, path), expected, "{} {path}", user.name);
        }
    }

    #[test]
    fn flows_are_distinguished_by_user_or_namespace() {
        let user = UserInfo::new("alice", &[]);
        let info = request(&Method::GET, "/api/v1/namespaces/shop/pods");
        let spec_with_method = |method: Value| {
            spec(&json!({
                "priorityLevelConfiguration": {"name": "x"}, "distinguisherMethod": method,
            }))
        };
        assert_eq!(
            distinguisher(&spec_with_method(json!({"type": "ByUser"})), &user, &info),
            "alice"
        );
        assert_eq!(
            distinguisher(&spec_with_method(json!({"type": "ByNamespace"})), &user, &info),
            "shop"
        );
        assert_eq!(distinguisher(&spec_with_method(Value::Null), &user, &info), "");
    }

    #[test]
    fn subresources_paths_and_scopes_are_matched_exactly() {
        let rule = |resources: &[&str], cluster: bool, namespaces: &[&str]| ResourcePolicyRule {
            verbs: vec!["get".to_owned()],
            api_groups: vec![String::new()],
            resources: resources.iter().map(|&text| text.to_owned()).collect(),
            cluster_scope: Some(cluster),
            namespaces: Some(namespaces.iter().map(|&text| text.to_owned()).collect()),
        };
        let node = request(&Method::GET, "/api/v1/nodes/a");
        let status = request(&Method::GET, "/api/v1/nodes/a/status");
        let pod = request(&Method::GET, "/api/v1/namespaces/x/pods/a");
        assert!(resource_matches(&rule(&["nodes"], true, &[]), &node));
        assert!(!resource_matches(&rule(&["nodes"], true, &[]), &status));
        assert!(resource_matches(&rule(&["nodes/status"], true, &[]), &status));
        assert!(!resource_matches(&rule(&["nodes"], false, &["*"]), &node));
        assert!(resource_matches(&rule(&["*"], false, &["x"]), &pod));
        assert!(!resource_matches(&rule(&["pods"], true, &["y"]), &pod));

        let paths = |patterns: &[&str]| NonResourcePolicyRule {
            verbs: vec!["*".to_owned()],
            non_resource_urls: patterns.iter().map(|&text| text.to_owned()).collect(),
        };
        let health = request(&Method::GET, "/healthz/ping");
        assert!(path_matches(&paths(&["/healthz/*"]), &health));
        assert!(path_matches(&paths(&["*"]), &health));
        assert!(!path_matches(&paths(&["/healthz"]), &health));
    }
}
