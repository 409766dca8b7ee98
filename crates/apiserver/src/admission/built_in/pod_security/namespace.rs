//! Namespaces are given standards that there are, and whoever makes them stricter is told which pods
//! violate the new one.

use std::collections::BTreeMap;

use api_meta::status::Status;
use serde_json::Value;

use super::checks::{Checked, Verdict};
use super::policy::{Level, Policy, Standard};
use crate::registry::admission::{Operation, Request};
use crate::registry::{ListQuery, Registry, Version};

/// Pods that are looked at.
const PODS_MAX: usize = 3000;

/// Checks the labels of a namespace, and warns of pods that would be refused now.
///
/// # Errors
/// 422 for labels that name no standard, unless they were there before.
pub(super) async fn check(
    registry: &Registry,
    request: &Request<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if !request.subresource.is_empty() {
        return Ok(());
    }
    let (policy, faults) = read(object);
    let before = old.filter(|_| request.operation == Operation::Update).map(read);
    let known = before.as_ref().is_some_and(|(_, before)| *before == faults);
    if !faults.is_empty() && !known {
        return Err(Status::invalid("", "Namespace", request.name, faults));
    }
    let Some((before, _)) = before else { return Ok(()) };
    let (new, old) = (policy.enforce, before.enforce);
    let relaxed = new.version == old.version && new.level <= old.level;
    if new != old && new.level != Level::Privileged && !relaxed {
        let warnings = violations(registry, request.name, new).await?;
        request.options.warnings.add(warnings);
    }
    Ok(())
}

fn read(namespace: &Value) -> (Policy, Vec<api_meta::status::Cause>) {
    let labels = namespace["metadata"]["labels"].as_object();
    let labels: Vec<(&str, &str)> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    Policy::read(&labels)
}

/// What there is to say of the pods of a namespace.
async fn violations(
    registry: &Registry,
    namespace: &str,
    standard: Standard,
) -> Result<Vec<String>, Status> {
    let Some(pods) = registry.find("", "pods") else { return Ok(Vec::new()) };
    let query = ListQuery { version: Version::Any, ..ListQuery::all(namespace) };
    let pods = registry.list(&pods, &query).await?.items;
    // By what is wrong: the first pod by name, and how many there are.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(PODS_MAX) {
        let verdict = Verdict::of(standard, &Checked::of(&pod.value()));
        if !verdict.allows() {
            let (first, count) =
                found.entry(verdict.reason()).or_insert_with(|| (pod.name.to_string(), 0));
            *count += 1;
            if *pod.name < **first {
                *first = pod.name.to_string();
            }
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_MAX {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} existing \
             pods",
            pods.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \
             \"{standard}\""
        ));
    }
    let mut told: Vec<String> = found
        .into_iter()
        .map(|(reason, (first, count))| match count {
            1 => format!("{first}: {reason}"),
            2 => format!("{first} (and 1 other pod): {reason}"),
            _ => format!("{first} (and {} other pods): {reason}", count - 1),
        })
        .collect();
    told.sort();
    warnings.append(&mut told);
    Ok(warnings)
}
