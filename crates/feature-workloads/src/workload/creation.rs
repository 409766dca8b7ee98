//! Defaults of a new workload. Pure.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::kind::WorkloadKind;
use super::path::{object, read_keys};

/// Label by which a workload selects its pods when the request gives no other.
pub const SELECTOR_LABEL: &str = "workload.user.cattle.io/workloadselector";
/// Longest value of a label.
const LABEL_CHARACTERS_MAX: usize = 63;
/// Hexadecimal digits that replace what was cut off.
const DIGEST_DIGITS: usize = 5;

/// The kind of a new `workload`: the one whose configuration is there, or a Deployment.
pub fn kind_of(flat: &Value) -> WorkloadKind {
    let has =
        |kind: &WorkloadKind| flat.get(kind.config_field()).is_some_and(|config| !config.is_null());
    WorkloadKind::WORKLOADS.into_iter().find(has).unwrap_or(WorkloadKind::Deployment)
}

/// Fills in what is missing in a new object in the flattened representation.
pub fn complete(kind: WorkloadKind, flat: &mut Value) {
    match kind {
        WorkloadKind::Pod => {}
        WorkloadKind::Job | WorkloadKind::CronJob => {
            let map = object(flat);
            if map.get("restartPolicy").is_none_or(Value::is_null) {
                map.insert("restartPolicy".to_owned(), "OnFailure".into());
            }
        }
        _ if selects_nothing(flat.get("selector")) => select(kind, flat),
        _ => {}
    }
}

fn selects_nothing(selector: Option<&Value>) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match selector {
        Some(Value::Object(parts)) => parts.values().all(is_empty),
        other => other.is_none_or(Value::is_null),
    }
}

/// Gives the workload, its pods and its selector one label of its own.
fn select(kind: WorkloadKind, flat: &mut Value) {
    let text = |key: &str| {
        read_keys(flat, &["metadata", key]).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let label = label(kind, &text("namespace"), &text("name"));
    let map = object(flat);
    map.insert("selector".to_owned(), json!({"matchLabels": {SELECTOR_LABEL: label}}));
    put_label(object(map.entry("labels").or_insert(Value::Null)), &label);
    let metadata = object(map.entry("metadata").or_insert(Value::Null));
    put_label(object(metadata.entry("labels").or_insert(Value::Null)), &label);
}

fn put_label(labels: &mut Map<String, Value>, label: &str) {
    labels.insert(SELECTOR_LABEL.to_owned(), label.into());
}

/// `deployment-default-web`; what is too long for a label ends with a digest of the whole.
fn label(kind: WorkloadKind, namespace: &str, name: &str) -> String {
    let whole = format!("{}-{namespace}-{name}", kind.id());
    if whole.len() <= LABEL_CHARACTERS_MAX {
        return whole;
    }
    let digest: String =
        Sha256::digest(whole.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let start: String = whole.chars().take(LABEL_CHARACTERS_MAX - DIGEST_DIGITS - 1).collect();
    format!("{}-{}", start.trim_end_matches('-'), &digest[..DIGEST_DIGITS])
}
