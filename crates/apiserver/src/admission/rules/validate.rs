//! Validates a rule of a webhook or a policy. Pure; messages follow kube-apiserver.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use serde_json::Value;

use crate::fields::{items, str_of};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Validates that a field, if present, has one of the supported values. Adds its problems to
/// `causes`.
pub fn known(parent: &Value, field: &str, supported: &[&str], path: &str, causes: &mut Vec<Cause>) {
    let value = &parent[field];
    if value.as_str().is_some_and(|word| !supported.contains(&word)) {
        causes.push(Cause::not_supported(format!("{path}.{field}"), value, supported));
    }
}

/// Validates a rule at `path` and adds its problems to `causes`.
pub fn rule(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    wildcards(rule, "operations", "operations", path, causes);
    for (index, operation) in items(&rule["operations"]).iter().enumerate() {
        if !OPERATIONS.contains(&str_of(operation)) {
            let field = format!("{path}.operations[{index}]");
            causes.push(Cause::not_supported(field, operation, &OPERATIONS));
        }
    }
    wildcards(rule, "apiGroups", "API groups", path, causes);
    wildcards(rule, "apiVersions", "API versions", path, causes);
    for (index, version) in items(&rule["apiVersions"]).iter().enumerate() {
        if str_of(version).is_empty() {
            causes.push(Cause::required(format!("{path}.apiVersions[{index}]"), ""));
        }
    }
    resources(&rule["resources"], &format!("{path}.resources"), causes);
    known(rule, "scope", &["*", "Cluster", "Namespaced"], path, causes);
}

/// Validates that a list is not empty and has nothing beside `*`.
fn wildcards(rule: &Value, field: &str, said: &str, path: &str, causes: &mut Vec<Cause>) {
    let list = items(&rule[field]);
    let path = format!("{path}.{field}");
    if list.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if list.len() > 1 && list.iter().any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {said}");
        causes.push(Cause::invalid(path, &rule[field], &detail));
    }
}

fn resources(value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let list = items(value);
    if list.is_empty() {
        causes.push(Cause::required(path, ""));
    }
    let (mut all_of, mut all_with) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, entry) in list.iter().enumerate() {
        let text = str_of(entry);
        let field = format!("{path}[{index}]");
        if text.is_empty() {
            causes.push(Cause::required(field, ""));
            continue;
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if all_of.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            causes.push(Cause::invalid(field.clone(), entry, &detail));
        }
        if all_with.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {text}");
            causes.push(Cause::invalid(field, entry, &detail));
        }
        if subresource == "*" {
            all_of.insert(resource);
        }
        if resource == "*" {
            all_with.insert(subresource);
        }
    }
    if list.len() > 1 && list.iter().any(|entry| entry == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        causes.push(Cause::invalid(path, value, detail));
    }
    if plain && list.iter().any(|entry| entry == "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.push(Cause::invalid(path, value, detail));
    }
}
