//! Validation of `metadata`, the same for every kind, on create and on update.
//!
//! Not here: what the server sets itself (uid, times, versions), and rules of single kinds.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::labels::{validate_annotations, validate_labels};
use crate::names::{self, NameRule};
use crate::object::ObjectExt;
use crate::status::Cause;

/// The finalizer of a deletion that orphans dependants. With [`FINALIZER_FOREGROUND`] and
/// `kubernetes` the only finalizers without a prefix.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer of a deletion that waits for its dependants.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

const IMMUTABLE: &str = "field is immutable";

/// A field of `metadata` with the wrong JSON type, in Go's message; `None` when all can be decoded.
///
/// Call it before anything else reads the metadata: accessors treat a field of the wrong type as
/// absent.
pub fn type_problem(object: &Value) -> Option<String> {
    let metadata = match &object["metadata"] {
        Value::Null => return None,
        Value::Object(metadata) => metadata,
        other => return Some(mistyped(other, "metadata", "v1.ObjectMeta")),
    };
    for (field, value) in metadata {
        let path = format!("metadata.{field}");
        let problem = match field.as_str() {
            "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "selfLink" => {
                expect(value, &path, "string", Value::is_string)
            }
            "generation" | "deletionGracePeriodSeconds" => {
                expect(value, &path, "int64", Value::is_i64)
            }
            "creationTimestamp" | "deletionTimestamp" => time_problem(value),
            "labels" | "annotations" => strings_problem(value, &path),
            "finalizers" => each(value, &path, "[]string", |item| {
                expect(item, &path, "string", Value::is_string)
            }),
            "ownerReferences" => {
                each(value, &path, "[]v1.OwnerReference", |item| owner_problem(item, &path))
            }
            "managedFields" => each(value, &path, "[]v1.ManagedFieldsEntry", |item| {
                expect(item, &path, "v1.ManagedFieldsEntry", Value::is_object)
            }),
            _ => None,
        };
        if problem.is_some() {
            return problem;
        }
    }
    None
}

fn mistyped(value: &Value, path: &str, expected: &str) -> String {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if expected.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!(
        "json: cannot unmarshal {found} into Go struct field ObjectMeta.{path} of type {expected}"
    )
}

fn expect(value: &Value, path: &str, expected: &str, fits: fn(&Value) -> bool) -> Option<String> {
    (!value.is_null() && !fits(value)).then(|| mistyped(value, path, expected))
}

fn each(
    value: &Value,
    path: &str,
    expected: &str,
    check: impl Fn(&Value) -> Option<String>,
) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) => items.iter().find_map(check),
        other => Some(mistyped(other, path, expected)),
    }
}

fn strings_problem(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            map.values().find_map(|v| expect(v, path, "string", Value::is_string))
        }
        other => Some(mistyped(other, path, "map[string]string")),
    }
}

fn owner_problem(value: &Value, path: &str) -> Option<String> {
    if !value.is_object() {
        return Some(mistyped(value, path, "v1.OwnerReference"));
    }
    let text = ["apiVersion", "kind", "name", "uid"]
        .into_iter()
        .find_map(|f| expect(&value[f], &format!("{path}.{f}"), "string", Value::is_string));
    text.or_else(|| {
        ["controller", "blockOwnerDeletion"]
            .into_iter()
            .find_map(|f| expect(&value[f], &format!("{path}.{f}"), "bool", Value::is_boolean))
    })
}

fn time_problem(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => crate::time::parse_problem(text),
        other => Some(mistyped(other, "metadata.creationTimestamp", "string")),
    }
}

/// Problems of the `generateName` and the name of a new object; the name was already generated.
pub fn validate_name(object: &Value, rule: NameRule) -> Vec<Cause> {
    let mut causes = Vec::new();
    let prefix = object.meta_str("generateName");
    if !prefix.is_empty() {
        for problem in rule.check_prefix(prefix) {
            causes.push(Cause::invalid("metadata.generateName", &Value::from(prefix), &problem));
        }
    }
    let name = object.name();
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        for problem in rule.check(name) {
            causes.push(Cause::invalid("metadata.name", &Value::from(name), &problem));
        }
    }
    causes
}

/// Problems of the metadata of an object by itself, except its name.
pub fn validate(object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let namespace = object.namespace();
    if namespaced && namespace.is_empty() {
        causes.push(Cause::required("metadata.namespace", ""));
    } else if namespaced {
        for problem in names::dns1123_label(namespace) {
            causes.push(Cause::invalid("metadata.namespace", &Value::from(namespace), &problem));
        }
    } else if !namespace.is_empty() {
        causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type"));
    }
    let metadata = &object["metadata"];
    if object.generation() < 0 {
        causes.push(Cause::invalid(
            "metadata.generation",
            &metadata["generation"],
            "must be greater than or equal to 0",
        ));
    }
    causes.extend(validate_labels("metadata.labels", &metadata["labels"]));
    causes.extend(validate_annotations("metadata.annotations", &metadata["annotations"]));
    causes.extend(validate_owners(&metadata["ownerReferences"]));
    causes.extend(validate_finalizers(object));
    causes
}

/// Problems of the change from `old`. The caller has filled in absent fields from `old`.
pub fn validate_update(object: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (new_meta, old_meta) = (&object["metadata"], &old["metadata"]);
    let fields = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in fields {
        if new_meta[field] != old_meta[field] {
            let path = format!("metadata.{field}");
            causes.push(Cause::invalid(path, &new_meta[field], IMMUTABLE));
        }
    }
    if object.generation() < old.generation() {
        let value = &new_meta["generation"];
        causes.push(Cause::invalid("metadata.generation", value, "must not be decremented"));
    }
    if old.is_terminating() {
        let before = old.finalizers();
        let added: BTreeSet<&str> =
            object.finalizers().into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|f| Value::from(*f).to_string()).collect();
            causes.push(Cause::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    list.join(", ")
                ),
            ));
        }
    }
    causes
}

fn validate_owners(owners: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut controller: Option<&Value> = None;
    for owner in list {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let path = match field {
                    "apiVersion" => "metadata.ownerReferences.version".to_owned(),
                    _ => format!("metadata.ownerReferences.{field}"),
                };
                causes.push(Cause::invalid(path, &Value::from(""), "must not be empty"));
            }
        }
        let (version, kind) = (owner["apiVersion"].as_str(), owner["kind"].as_str());
        if version == Some("v1") && kind == Some("Event") {
            let shown = owner_text(owner);
            causes.push(Cause::new(
                "FieldValueInvalid",
                "metadata.ownerReferences",
                format!(
                    "Invalid value: {shown}: /v1, Kind=Event is disallowed from being an owner"
                ),
            ));
        }
        if owner["controller"].as_bool() != Some(true) {
            continue;
        }
        if let Some(first) = controller {
            let shown: Vec<String> = list.iter().map(owner_text).collect();
            let name = |o: &Value| {
                format!(
                    "{}/{}",
                    o["kind"].as_str().unwrap_or_default(),
                    o["name"].as_str().unwrap_or_default()
                )
            };
            causes.push(Cause::new(
                "FieldValueInvalid",
                "metadata.ownerReferences",
                format!(
                    "Invalid value: [{}]: Only one reference can have Controller set to true. \
                     Found \"true\" in references for {} and {}",
                    shown.join(","),
                    name(first),
                    name(owner)
                ),
            ));
        } else {
            controller = Some(owner);
        }
    }
    causes
}

/// An owner reference with its fields in the order in which kube-apiserver prints them.
fn owner_text(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let parts: Vec<String> = fields
        .into_iter()
        .filter(|field| !owner[*field].is_null())
        .map(|field| format!("\"{field}\":{}", owner[field]))
        .collect();
    format!("{{{}}}", parts.join(","))
}

fn validate_finalizers(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let finalizers = object.finalizers();
    for finalizer in &finalizers {
        let problems = names::qualified_name(finalizer).into_iter();
        causes
            .extend(problems.map(|text| {
                Cause::invalid("metadata.finalizers", &Value::from(*finalizer), &text)
            }));
    }
    if finalizers.contains(&FINALIZER_ORPHAN) && finalizers.contains(&FINALIZER_FOREGROUND) {
        causes.push(Cause::invalid(
            "metadata.finalizers",
            &object["metadata"]["finalizers"],
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    causes
}

/// Problems of finalizers that Kubernetes does not define and that have no prefix.
pub fn validate_finalizer_names(object: &Value) -> Vec<Cause> {
    let standard = [FINALIZER_ORPHAN, FINALIZER_FOREGROUND, "kubernetes"];
    let text = "name is neither a standard finalizer name nor is it fully qualified";
    let finalizers = object.finalizers();
    let unknown = finalizers
        .iter()
        .enumerate()
        .filter(|(_, finalizer)| !finalizer.contains('/') && !standard.contains(finalizer));
    unknown
        .map(|(index, finalizer)| {
            let field = format!("metadata.finalizers[{index}]");
            Cause::invalid(field, &Value::from(*finalizer), text)
        })
        .collect()
}

/// Removes empty maps and lists, as Kubernetes' encoders do. Idempotent.
pub fn drop_empty(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|field, value| match field.as_str() {
        "labels" | "annotations" => value.as_object().is_some_and(|map| !map.is_empty()),
        "finalizers" | "ownerReferences" => value.as_array().is_some_and(|list| !list.is_empty()),
        _ => true,
    });
}

/// Removes repeated owner references (same uid, kind, version and name) and returns their names,
/// for a warning.
pub fn deduplicate_owners(object: &mut Value) -> Vec<String> {
    let Some(owners) = object["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut)
    else {
        return Vec::new();
    };
    let mut seen: Vec<Value> = Vec::new();
    let mut dropped = Vec::new();
    owners.retain(|owner| {
        let again = seen.contains(owner);
        if again {
            dropped.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            seen.push(owner.clone());
        }
        !again
    });
    dropped
}
