//! PodSecurity: the labels of a namespace say which Pod Security Standard its pods must meet, which
//! violations are written to the audit log, and which are returned as warnings.
//!
//! [`NamespacePolicy`] is what the labels say, [`baseline`] and [`restricted`] are the standards.
//! The enforced standard applies to pods only. Objects with a pod template only cause warnings and
//! audit annotations.

mod baseline;
mod checks;
mod namespace;
mod policy;
mod restricted;

use api_meta::status::Status;
use serde_json::Value;

use self::checks::{Checked, Violations};
use self::policy::{NamespacePolicy, PREFIX, SecurityLevel};
use crate::fields::items;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::registry::{ReadVersion, Registry};
use crate::resource::Resource;

/// Subresources that do not change what a pod may do.
const IGNORED: [&str; 8] =
    ["attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"];

/// Refuses pods that violate the enforced standard of their namespace, and adds warnings and audit
/// annotations for the other two standards.
///
/// # Errors
/// 403 with every violation; 422 for labels of a namespace that name no standard.
pub(super) async fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
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
    let namespace = registry.get_at(&namespaces, "", request.namespace, ReadVersion::Any).await?;
    let labels = namespace.labels.iter().filter(|(key, _)| key.starts_with(PREFIX));
    let labels: Vec<(&str, &str)> = labels.map(|(key, value)| (&**key, &**value)).collect();
    let (policy, faults) = NamespacePolicy::read(&labels);
    let annotate = |key: &str, text: String| {
        request.options.audit.annotate(&format!("{PREFIX}{key}"), text);
    };
    let lax = |levels: &[SecurityLevel]| {
        faults.is_empty() && levels.iter().all(|l| *l == SecurityLevel::Privileged)
    };
    if enforced {
        if lax(&[policy.enforce.level, policy.audit.level, policy.warn.level]) {
            annotate("enforce-policy", "privileged:latest".to_owned());
            return Ok(());
        }
        let updated = old.filter(|_| request.operation == AdmissionOperation::Update);
        if updated.is_some_and(|old| !changes_images(&object["spec"], &old["spec"])) {
            return Ok(());
        }
    } else if lax(&[policy.audit.level, policy.warn.level]) {
        return Ok(());
    }
    if !faults.is_empty() {
        annotate("error", format!("Failed to parse policy: {}", policy::describe_faults(&faults)));
    }
    let audited = Violations::of(policy.audit, &pod);
    if !audited.is_empty() {
        let text = format!("would violate PodSecurity \"{}\": {}", policy.audit, audited.detail());
        annotate("audit-violations", text);
    }
    if enforced {
        annotate("enforce-policy", policy.enforce.to_string());
        let violations = Violations::of(policy.enforce, &pod);
        if !violations.is_empty() {
            let text =
                format!("violates PodSecurity \"{}\": {}", policy.enforce, violations.detail());
            return Err(request.forbidden(Some(object), &text));
        }
    }
    let warned = Violations::of(policy.warn, &pod);
    if !warned.is_empty() {
        let text = format!("would violate PodSecurity \"{}\": {}", policy.warn, warned.detail());
        request.options.warnings.add(vec![text]);
    }
    Ok(())
}

/// The pod that an object is, or the template of the pods that it creates.
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

/// Whether an update adds containers or changes images.
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
