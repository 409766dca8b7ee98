//! Owner references, names and hashes of objects that controllers create.

use api_meta::object::ObjectExt;
use apiserver::stored::Stored;
use serde::Deserialize;
use serde_json::{Value, json};

/// Label that distinguishes the templates of one deployment.
pub const TEMPLATE_HASH: &str = "pod-template-hash";
const HASH_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a template's hash.
const HASH_LENGTH: usize = 10;

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "ownerReferences")]
    owners: Vec<Owner>,
    #[serde(default, rename = "deletionTimestamp")]
    deleted_at: Option<String>,
    #[serde(default, rename = "deletionGracePeriodSeconds")]
    grace_seconds: Option<i64>,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    controller: bool,
}

/// Controller and deletion of an object, from its metadata.
#[derive(Debug, Default)]
pub struct OwnershipMetadata {
    pub controller: Option<(String, String, String)>,
    pub terminating: bool,
    /// Grace period in seconds; above zero while a kubelet has to stop the pod.
    pub grace_seconds: i64,
}

/// Controller and deletion of an object; none if its metadata cannot be read.
pub fn ownership(object: &Stored) -> OwnershipMetadata {
    let Ok(metadata) = serde_json::from_str::<Metadata>(object.metadata_json()) else {
        return OwnershipMetadata::default();
    };
    let controller = metadata.owners.into_iter().find(|owner| owner.controller);
    OwnershipMetadata {
        controller: controller.map(|owner| (owner.kind, owner.name, owner.uid)),
        terminating: metadata.deleted_at.is_some(),
        grace_seconds: metadata.grace_seconds.unwrap_or_default(),
    }
}

/// The name of the controlling owner, if it is of this kind.
pub fn controller_name(object: &Stored, kind: &str) -> Option<String> {
    let (found, name, _) = ownership(object).controller?;
    (found == kind).then_some(name)
}

/// The owner reference that a controller sets on objects that it creates.
pub fn reference(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": owner.name(),
        "uid": owner.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The status `before` after its controller wrote `own`. Like real controllers, it retains all that
/// others wrote, such as conditions of other types: a status that is current already is not written
/// again, whoever wrote it.
///
/// A count of zero is omitted, unless it is one of `required`; a zero that is present stays.
pub fn with_own_status(before: &Value, own: &Value, required: &[&str]) -> Value {
    let mut status = before.as_object().cloned().unwrap_or_default();
    for (field, value) in own.as_object().into_iter().flatten() {
        if field == "conditions" {
            let conditions = with_own_conditions(&before[field], value);
            status.insert(field.clone(), conditions.into());
        } else if *value != 0 || required.contains(&field.as_str()) {
            status.insert(field.clone(), value.clone());
        } else if before[field] != 0 {
            status.remove(field);
        }
    }
    status.into()
}

/// A condition that changes becomes the last one, as in Kubernetes.
fn with_own_conditions(before: &Value, own: &Value) -> Vec<Value> {
    let mut conditions = before.as_array().cloned().unwrap_or_default();
    for condition in own.as_array().into_iter().flatten() {
        if !conditions.contains(condition) {
            conditions.retain(|old| old["type"] != condition["type"]);
            conditions.push(condition.clone());
        }
    }
    conditions
}

/// A hash of the template. Equal templates have equal hashes, in every run.
pub fn template_hash(template: &Value) -> String {
    // FNV-1a, whose constants are its definition.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..HASH_LENGTH)
        .map(|_| {
            let digit = usize::try_from(hash % 27).expect("below 27");
            hash /= 27;
            char::from(HASH_ALPHABET[digit])
        })
        .collect()
}

/// A pod of a template.
pub fn pod(owner: &Value, reference: Value) -> Value {
    let template = &owner["spec"]["template"];
    json!({
        "metadata": {
            "generateName": format!("{}-", owner.name()),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [reference],
        },
        "spec": template["spec"],
    })
}

/// A number, 0 when absent.
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// The current time, in the format of metadata.
pub fn now() -> String {
    api_meta::time::format_seconds(jiff::Timestamp::now().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status})
    }

    #[test]
    fn a_status_retains_what_others_wrote_and_a_current_one_stays_as_it_is() {
        let (own, other) = (condition("Available", "True"), condition("X", "True"));
        let before = json!({"replicas": 0, "conditions": [other, own], "collisionCount": 1});
        let counts = json!({"replicas": 0, "readyReplicas": 0, "conditions": [own]});
        assert_eq!(with_own_status(&before, &counts, &[]), before);
        assert_eq!(with_own_status(&before, &counts, &["readyReplicas"])["readyReplicas"], 0);
    }

    #[test]
    fn a_count_that_falls_to_zero_is_omitted_and_a_condition_that_changes_becomes_the_last() {
        let (own, other) = (condition("Available", "True"), condition("X", "True"));
        let before = json!({"replicas": 2, "readyReplicas": 2, "conditions": [own, other]});
        let own = condition("Available", "False");
        let counts = json!({"replicas": 3, "readyReplicas": 0, "conditions": [own]});
        let after = json!({"replicas": 3, "conditions": [other, own]});
        assert_eq!(with_own_status(&before, &counts, &[]), after);
        assert_eq!(with_own_status(&Value::Null, &counts, &[])["replicas"], 3);
    }
}
