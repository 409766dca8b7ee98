//! References to fields of a pod and to resources of a container, whose values containers can read.

use api_meta::names;
use api_meta::quantity;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::require_text;

/// Fields that variables can contain.
pub const VARIABLES: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that files can contain.
pub const FILES: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Known fields that neither can contain.
const OTHERS: &[&str] = &["spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"];
const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS_CPU: [&str; 2] = ["1m", "1"];
const DIVISORS_BYTES: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates the `fieldRef` at `path`; `shown` are the fields that are allowed there.
pub fn of_pod(path: &str, reference: &Value, shown: &[&str], causes: &mut Vec<Cause>) {
    let field = &reference["fieldPath"];
    let at = format!("{path}.fieldPath");
    if !require_text(&at, field, causes) {
        return;
    }
    let mut cannot = |why: &str| {
        let text = format!("error converting fieldPath: {why}");
        causes.push(Cause::invalid(&at, field, &text));
    };
    let text = str_of(field);
    let version = str_of(&reference["apiVersion"]);
    if !matches!(version, "" | "v1") {
        return cannot(&format!("unsupported pod version: {version}"));
    }
    match subscript(text) {
        Some(("metadata.labels", key)) => {
            super::name(path, &key.into(), names::qualified_name, causes);
        }
        Some(("metadata.annotations", key)) => {
            super::name(path, &key.to_lowercase().into(), names::qualified_name, causes);
        }
        Some(_) => cannot(&format!("field label does not support subscript: {text}")),
        None if shown.contains(&text) => {}
        // An old name of the node.
        None if text == "spec.host" && shown.contains(&"spec.nodeName") => {}
        None if [VARIABLES, FILES, OTHERS].iter().any(|known| known.contains(&text)) => {
            causes.push(Cause::not_supported(at, field, shown));
        }
        None => cannot(&format!("field label not supported: {text}")),
    }
}

/// `metadata.labels['key']` as its two parts.
fn subscript(text: &str) -> Option<(&str, &str)> {
    let (map, key) = text.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, key))
}

/// Validates the `resourceFieldRef` at `path`. In files the container name is required.
pub fn of_container(path: &str, reference: &Value, in_file: bool, causes: &mut Vec<Cause>) {
    if in_file {
        require_text(&format!("{path}.containerName"), &reference["containerName"], causes);
    }
    let at = format!("{path}.resource");
    let resource = str_of(&reference["resource"]);
    let pages = ["limits.hugepages-", "requests.hugepages-"];
    let of_pages = pages.iter().any(|prefix| resource.starts_with(prefix));
    if !require_text(&at, &reference["resource"], causes) {
    } else if !AMOUNTS.contains(&resource) && !of_pages {
        causes.push(Cause::not_supported(at, &reference["resource"], &AMOUNTS));
    }
    let divisor = quantity::canonical(&reference["divisor"]).unwrap_or_default();
    if matches!(divisor.as_str(), "" | "0") {
        return;
    }
    let (allowed, of): (&[&str], _) = match resource.split_once('.').map(|(_, kind)| kind) {
        Some("cpu") => (&DIVISORS_CPU, "cpu"),
        Some("memory") => (&DIVISORS_BYTES, "memory"),
        Some("ephemeral-storage") => (&DIVISORS_BYTES, "local ephemeral storage"),
        _ if of_pages => (&DIVISORS_BYTES, "hugepages"),
        _ => return,
    };
    if !allowed.contains(&divisor.as_str()) {
        let list = match allowed {
            [few, one] => format!("{few} and {one}"),
            many => many.join(", "),
        };
        let text = format!("only divisor's values {list} are supported with the {of} resource");
        causes.push(Cause::invalid(format!("{path}.divisor"), &resource.into(), &text));
    }
}
