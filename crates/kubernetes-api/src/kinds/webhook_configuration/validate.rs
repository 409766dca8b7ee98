//! Validation of webhook configurations. Pure; the messages are those of Kubernetes.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use api_meta::{labels, names};
use apiserver::admission::match_conditions;
use apiserver::admission::rules::validate::{known, rule};
use apiserver::fields::{items, str_of};
use apiserver::webhook;
use serde_json::Value;

/// Versions of AdmissionReview that can be sent to a webhook.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Webhooks of other classes would be called on a dry run with unknown side effects.
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
