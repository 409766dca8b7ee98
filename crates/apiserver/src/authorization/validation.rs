//! Validation of the RBAC kinds. Pure; messages follow kube-apiserver.

use api_meta::labels::LabelSelector;
use api_meta::names;
use api_meta::status::Cause;
use serde_json::{Value, json};

use super::RBAC_GROUP;
use super::bindings::parse_rules;
use super::rbac::RbacKind;

/// Validates a Role or ClusterRole and returns every problem.
pub fn validate_role(kind: RbacKind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    match parse_rules(object) {
        Err(error) => {
            causes.push(Cause::type_invalid("rules", &object["rules"], &error.to_string()));
        }
        Ok(rules) => {
            for (i, rule) in rules.iter().enumerate() {
                causes.extend(validate_rule(kind, &format!("rules[{i}]"), rule));
            }
        }
    }
    let aggregation = &object["aggregationRule"];
    if !aggregation.is_null() && kind == RbacKind::ClusterRole {
        let field = "aggregationRule.clusterRoleSelectors";
        match aggregation["clusterRoleSelectors"].as_array() {
            Some(selectors) if !selectors.is_empty() => {
                for (i, selector) in selectors.iter().enumerate() {
                    let field = format!("{field}[{i}]");
                    if let Err(error) = LabelSelector::from_object(selector) {
                        causes.push(Cause::invalid(field, selector, &error.to_string()));
                    }
                }
            }
            _ => causes.push(Cause::required(
                field,
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            )),
        }
    }
    causes
}

fn validate_rule(kind: RbacKind, path: &str, rule: &authz::PolicyRule) -> Vec<Cause> {
    let mut causes = Vec::new();
    if rule.verbs.is_empty() {
        causes.push(Cause::required(
            format!("{path}.verbs"),
            "verbs must contain at least one value",
        ));
    }
    if !rule.non_resource_urls.is_empty() {
        let field = format!("{path}.nonResourceURLs");
        let urls = json!(rule.non_resource_urls);
        if kind.is_namespaced() {
            let text = "namespaced rules cannot apply to non-resource URLs";
            causes.push(Cause::invalid(field.clone(), &urls, text));
        }
        let others = [&rule.api_groups, &rule.resources, &rule.resource_names];
        if others.iter().any(|list| !list.is_empty()) {
            let text = "rules cannot apply to both regular resources and non-resource URLs";
            causes.push(Cause::invalid(field, &urls, text));
        }
        return causes;
    }
    if rule.api_groups.is_empty() {
        causes.push(Cause::required(
            format!("{path}.apiGroups"),
            "resource rules must supply at least one api group",
        ));
    }
    if rule.resources.is_empty() {
        causes.push(Cause::required(
            format!("{path}.resources"),
            "resource rules must supply at least one resource",
        ));
    }
    causes
}

/// Validates a RoleBinding or ClusterRoleBinding, and its update when there is an `old` one.
/// Returns every problem.
pub fn validate_binding(kind: RbacKind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let role = &object["roleRef"];
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    if text(role, "apiGroup") != RBAC_GROUP {
        let given = json!(text(role, "apiGroup"));
        causes.push(Cause::not_supported("roleRef.apiGroup", &given, &[RBAC_GROUP]));
    }
    let kinds: &[&str] =
        if kind.is_namespaced() { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let role_kind = text(role, "kind");
    if !kinds.contains(&role_kind.as_str()) {
        causes.push(Cause::not_supported("roleRef.kind", &json!(role_kind), kinds));
    }
    let role_name = text(role, "name");
    if role_name.is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    for problem in names::path_segment(&role_name, false) {
        causes.push(Cause::invalid("roleRef.name", &json!(role_name), &problem));
    }
    let subjects = object["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (i, subject) in subjects.iter().enumerate() {
        causes.extend(validate_subject(kind, &format!("subjects[{i}]"), subject));
    }
    if let Some(old) = old
        && old["roleRef"] != *role
    {
        // The field names are those of the Go struct that kube-apiserver prints.
        let printed = json!({
            "APIGroup": text(role, "apiGroup"), "Kind": role_kind, "Name": role_name,
        });
        causes.push(Cause::invalid("roleRef", &printed, "cannot change roleRef"));
    }
    causes
}

fn validate_subject(kind: RbacKind, path: &str, subject: &Value) -> Vec<Cause> {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    if text("name").is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    let group = json!(text("apiGroup"));
    match text("kind") {
        "ServiceAccount" => {
            let name = text("name");
            let problems = (!name.is_empty()).then(|| names::dns1123_subdomain(name));
            for problem in problems.unwrap_or_default() {
                causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &problem));
            }
            if group != "" {
                causes.push(Cause::not_supported(format!("{path}.apiGroup"), &group, &[""]));
            }
            if !kind.is_namespaced() && text("namespace").is_empty() {
                causes.push(Cause::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != RBAC_GROUP {
                let field = format!("{path}.apiGroup");
                causes.push(Cause::not_supported(field, &group, &[RBAC_GROUP]));
            }
        }
        other => {
            let kinds = &["ServiceAccount", "User", "Group"];
            causes.push(Cause::not_supported(format!("{path}.kind"), &json!(other), kinds));
        }
    }
    causes
}
