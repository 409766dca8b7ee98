//! PodSecurity for namespaces: their labels must name existing standards. A user who makes the
//! enforced standard stricter is warned about the pods that violate it.

use std::collections::BTreeMap;

use api_meta::status::Status;
use serde_json::Value;

use super::checks::{Checked, Violations};
use super::policy::{NamespacePolicy, SecurityLevel, Standard};
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::registry::{ListQuery, ReadVersion, Registry};

/// The number of pods that are checked.
const PODS_MAX: usize = 3000;

/// Validates the labels of a namespace, and warns about existing pods that the new standard would
/// refuse.
///
/// # Errors
/// 422 for labels that name no standard, unless the old object had the same ones.
pub(super) async fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if !request.subresource.is_empty() {
        return Ok(());
    }
    let (policy, faults) = read_policy(object);
    let before = old.filter(|_| request.operation == AdmissionOperation::Update).map(read_policy);
    let known = before.as_ref().is_some_and(|(_, before)| *before == faults);
    if !faults.is_empty() && !known {
        return Err(Status::invalid("", "Namespace", request.name, faults));
    }
    let Some((before, _)) = before else { return Ok(()) };
    let (new, old) = (policy.enforce, before.enforce);
    let relaxed = new.version == old.version && new.level <= old.level;
    if new != old && new.level != SecurityLevel::Privileged && !relaxed {
        let warnings = violations(registry, request.name, new).await?;
        request.options.warnings.add(warnings);
    }
    Ok(())
}

fn read_policy(namespace: &Value) -> (NamespacePolicy, Vec<api_meta::status::Cause>) {
    let labels = namespace["metadata"]["labels"].as_object();
    let labels: Vec<(&str, &str)> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    NamespacePolicy::read(&labels)
}

/// The warnings about the pods of a namespace.
async fn violations(
    registry: &Registry,
    namespace: &str,
    standard: Standard,
) -> Result<Vec<String>, Status> {
    let Some(pods) = registry.find("", "pods") else { return Ok(Vec::new()) };
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all(namespace) };
    let pods = registry.list(&pods, &query).await?.items;
    // By violated rules: the first pod by name, and the number of pods.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(PODS_MAX) {
        let violated = Violations::of(standard, &Checked::of(&pod.value()));
        if !violated.is_empty() {
            let (first, count) =
                found.entry(violated.reason()).or_insert_with(|| (pod.name.to_string(), 0));
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
    let mut details: Vec<String> = found
        .into_iter()
        .map(|(reason, (first, count))| match count {
            1 => format!("{first}: {reason}"),
            2 => format!("{first} (and 1 other pod): {reason}"),
            _ => format!("{first} (and {} other pods): {reason}", count - 1),
        })
        .collect();
    details.sort();
    warnings.append(&mut details);
    Ok(warnings)
}
