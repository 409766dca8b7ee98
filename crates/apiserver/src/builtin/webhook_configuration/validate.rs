//! What a configuration of webhooks may say. Pure; texts are those of Kubernetes.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use api_meta::{labels, names};
use serde_json::Value;

use crate::admission::match_conditions;
use crate::builtin::fields::{items, str_of};
use crate::webhook;

/// Versions of AdmissionReview that a webhook can be sent.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// Other classes would be called although nothing is known of what they do on a dry run.
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

pub(super) fn configuration(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut names = BTreeSet::new();
    for (index, webhook) in items(&object["webhooks"]).iter().enumerate() {
        let path = format!("webhooks[{index}]");
        one(webhook, &path, &mut causes);
        review_versions(&webhook["admissionReviewVersions"], &path, &mut causes);
        let name = str_of(&webhook["name"]);
        if !name.is_empty() && !names.insert(name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &webhook["name"]));
        }
    }
    causes
}

fn one(hook: &Value, path: &str, causes: &mut Vec<Cause>) {
    name(&hook["name"], &format!("{path}.name"), causes);
    for (index, entry) in items(&hook["rules"]).iter().enumerate() {
        rule(entry, &format!("{path}.rules[{index}]"), causes);
    }
    known(hook, "failurePolicy", &["Fail", "Ignore"], path, causes);
    known(hook, "matchPolicy", &["Equivalent", "Exact"], path, causes);
    if hook["sideEffects"].is_null() {
        let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        causes.push(Cause::required(format!("{path}.sideEffects"), &detail));
    }
    known(hook, "sideEffects", &SIDE_EFFECTS, path, causes);
    let timeout = &hook["timeoutSeconds"];
    if timeout.as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.push(Cause::invalid(format!("{path}.timeoutSeconds"), timeout, detail));
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        let field = format!("{path}.{selector}");
        causes.extend(labels::validate_selector(&field, &hook[selector]));
    }
    known(hook, "reinvocationPolicy", &["IfNeeded", "Never"], path, causes);
    webhook::validate(&hook["clientConfig"], &format!("{path}.clientConfig"), causes);
    let field = format!("{path}.matchConditions");
    causes.extend(match_conditions::validate(&hook["matchConditions"], &field, false));
}

/// A word out of a few, when there is one.
pub(crate) fn known(
    parent: &Value,
    field: &str,
    supported: &[&str],
    path: &str,
    causes: &mut Vec<Cause>,
) {
    let value = &parent[field];
    if value.as_str().is_some_and(|word| !supported.contains(&word)) {
        causes.push(Cause::not_supported(format!("{path}.{field}"), value, supported));
    }
}

fn name(value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let name = str_of(value);
    let problems = names::dns1123_subdomain(name);
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if !problems.is_empty() {
        causes.push(Cause::invalid(path, value, &problems.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.push(Cause::invalid(path, value, detail));
    }
}

fn review_versions(value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let path = format!("{path}.admissionReviewVersions");
    let versions = items(value);
    let accepted = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        causes.push(Cause::required(path, &format!("must specify one of {accepted}")));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if !seen.insert(str_of(version)) {
            causes.push(Cause::invalid(field, version, "duplicate version"));
            continue;
        }
        for problem in names::dns1035_label(str_of(version)) {
            causes.push(Cause::invalid(field.clone(), version, &problem));
        }
    }
    if !REVIEW_VERSIONS.iter().any(|version| seen.contains(version)) {
        let detail = format!("must include at least one of {accepted}");
        causes.push(Cause::invalid(path, value, &detail));
    }
}

/// A rule of a webhook, or of a policy.
pub(crate) fn rule(rule: &Value, path: &str, causes: &mut Vec<Cause>) {
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

/// A list that is not empty, and has nothing beside `*`.
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
