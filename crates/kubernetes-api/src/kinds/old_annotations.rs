//! Annotations that fields have replaced: warnings for clients that still write them. The texts are
//! those of Kubernetes.

use apiserver::fields::{items, str_of};
use serde_json::Value;

/// Annotations, and the end of the warning about each.
type AnnotationTexts<'t> = &'t [(&'t str, &'t str)];

const OF_PODS: AnnotationTexts<'_> = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
const OF_CLAIMS: AnnotationTexts<'_> = &[(
    "volume.beta.kubernetes.io/storage-class",
    "deprecated since v1.8; use \"storageClassName\" attribute instead",
)];
const OF_VOLUMES: AnnotationTexts<'_> = &[
    OF_CLAIMS[0],
    (
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// Followed by `pod`, or, after `container.`, by the name of a container.
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/";
const SECCOMP_TEXT: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Warnings about a pod that is created; none for updates.
pub fn of_pod(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() { Vec::new() } else { of_pod_template("", pod) }
}

/// Warnings about the template at `path` (fields with dots between them) of an object that is
/// created or changed.
pub fn of_template(path: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    let template = path.split('.').fold(object, |value, field| &value[field]);
    of_pod_template(&format!("{path}."), template)
}

/// Warnings about a claim that is created or changed.
pub fn of_claim(claim: &Value, _old: Option<&Value>) -> Vec<String> {
    warnings("", claim, OF_CLAIMS)
}

/// Warnings about a volume that is created or changed.
pub fn of_volume(volume: &Value, _old: Option<&Value>) -> Vec<String> {
    warnings("", volume, OF_VOLUMES)
}

/// Warnings about an ingress that is created; none for updates.
pub fn of_ingress(ingress: &Value, old: Option<&Value>) -> Vec<String> {
    let classed = !ingress["spec"]["ingressClassName"].is_null();
    if old.is_some() || classed || annotation(ingress, INGRESS_CLASS).is_none() {
        return Vec::new();
    }
    let text = format!(
        "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
    );
    vec![text]
}

/// Warnings about a pod or a pod template.
fn of_pod_template(path: &str, pod: &Value) -> Vec<String> {
    let mut texts = warnings(path, pod, OF_PODS);
    let no_field = |part: &Value| part["securityContext"]["seccompProfile"].is_null();
    let spec = &pod["spec"];
    if no_field(spec) {
        texts.extend(warnings(path, pod, &[(&format!("{SECCOMP}pod"), SECCOMP_TEXT)]));
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(&spec[list]).iter().filter(|container| no_field(container)) {
            let name = format!("container.{SECCOMP}{}", str_of(&container["name"]));
            texts.extend(warnings(path, pod, &[(&name, SECCOMP_TEXT)]));
        }
    }
    texts
}

fn warnings(path: &str, object: &Value, table: AnnotationTexts<'_>) -> Vec<String> {
    let present = table.iter().filter(|(name, _)| annotation(object, name).is_some());
    present.map(|(name, text)| format!("{path}metadata.annotations[{name}]: {text}")).collect()
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object["metadata"]["annotations"].get(name)
}
