//! PodSecurity: the labels of a namespace say which of the Pod Security Standards its pods must meet,
//! which pods are told of in the audit log, and for which clients are warned.
//!
//! [`Policy`] is what the labels say, [`baseline`] and [`restricted`] are the standards. Pods are held to
//! the enforced standard; what makes pods of a template is only warned of and recorded.

mod baseline;
mod checks;
mod namespace;
mod policy;
mod restricted;

use api_meta::status::Status;
use serde_json::Value;

use self::checks::{Checked, Verdict};
use self::policy::{Level, PREFIX, Policy};
use crate::fields::items;
use crate::registry::admission::{Operation, Request};
use crate::registry::{Registry, Version};
use crate::resource::Resource;

/// Subresources of pods that do not change what they may do.
const IGNORED: [&str; 8] =
    ["attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"];

/// Refuses pods that do not meet the standard of their namespace, and warns of others.
///
/// # Errors
/// 403 with everything that violates it; 422 for labels of a namespace that name no standard.
pub(super) async fn check(
    registry: &Registry,
    request: &Request<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if request.is_namespace() {
        return namespace::check(registry, request, object, old).await;
    }
    let enforced = request.resource.group.is_empty() && request.resource.plural == "pods";
    let ignored = match enforced {
        true => IGNORED.contains(&request.subresource),
        false => !request.subresource.is_empty(),
    };
    if ignored {
        return Ok(());
    }
    let Some(pod) = template(request.resource, object) else { return Ok(()) };
    let Some(namespaces) = registry.find("", "namespaces") else { return Ok(()) };
    let namespace = registry.get_at(&namespaces, "", request.namespace, Version::Any).await?;
    let labels = namespace.labels.iter().filter(|(key, _)| key.starts_with(PREFIX));
    let labels: Vec<(&str, &str)> = labels.map(|(key, value)| (&**key, &**value)).collect();
    let (policy, faults) = Policy::read(&labels);
    let annotate = |key: &str, text: String| {
        request.options.audit.annotate(&format!("{PREFIX}{key}"), text);
    };
    let lax =
        |levels: &[Level]| faults.is_empty() && levels.iter().all(|l| *l == Level::Privileged);
    if enforced {
        if lax(&[policy.enforce.level, policy.audit.level, policy.warn.level]) {
            annotate("enforce-policy", "privileged:latest".to_owned());
            return Ok(());
        }
        let updated = old.filter(|_| request.operation == Operation::Update);
        if updated.is_some_and(|old| !changes_images(&object["spec"], &old["spec"])) {
            return Ok(());
        }
    } else if lax(&[policy.audit.level, policy.warn.level]) {
        return Ok(());
    }
    if !faults.is_empty() {
        annotate("error", format!("Failed to parse policy: {}", policy::told(&faults)));
    }
    let audited = Verdict::of(policy.audit, &pod);
    if !audited.allows() {
        let text = format!("would violate PodSecurity \"{}\": {}", policy.audit, audited.detail());
        annotate("audit-violations", text);
    }
    if enforced {
        annotate("enforce-policy", policy.enforce.to_string());
        let verdict = Verdict::of(policy.enforce, &pod);
        if !verdict.allows() {
            let text = format!("violates PodSecurity \"{}\": {}", policy.enforce, verdict.detail());
            return Err(request.forbidden(Some(object), &text));
        }
    }
    let warned = Verdict::of(policy.warn, &pod);
    if !warned.allows() {
        let text = format!("would violate PodSecurity \"{}\": {}", policy.warn, warned.detail());
        request.options.warnings.add(vec![text]);
    }
    Ok(())
}

/// The pod that an object is or makes.
fn template<'a>(resource: &Resource, object: &'a Value) -> Option<Checked<'a>> {
    let pod = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => object,
        ("", "podtemplates") => &object["template"],
        ("", "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => &object["spec"]["template"],
        ("batch", "cronjobs") => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => return None,
    };
    pod.is_object().then(|| Checked::of(pod))
}

/// Whether an update brings containers or images that were not there.
fn changes_images(new: &Value, old: &Value) -> bool {
    let images = |spec: &Value, field: &str| -> Vec<Value> {
        items(&spec[field]).iter().map(|container| container["image"].clone()).collect()
    };
    let before = items(&old["ephemeralContainers"]);
    ["containers", "initContainers"].iter().any(|field| images(new, field) != images(old, field))
        || items(&new["ephemeralContainers"]).iter().any(|container| {
            let same = before.iter().find(|one| one["name"] == container["name"]);
            same.is_none_or(|same| same["image"] != container["image"])
        })
}
