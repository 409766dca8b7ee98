//! Validates updates of a pod. Images, the deadline, tolerations and scheduling gates can change.

use api_meta::status::Cause;
use apiserver::fields::{items, map, str_of};
use apiserver::strategy::Write;
use serde_json::{Value, json};

use super::{SCHEDULER, validate};

const UPDATE_FORBIDDEN: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const DEADLINE_MAX: i64 = i32::MAX as i64;

/// Causes to refuse the new object, or its change.
pub fn validate(write: &Write<'_>, object: &Value, old: &Value) -> Vec<Cause> {
    let (new, old) = (&object["spec"], &old["spec"]);
    let mut causes = validate::spec("spec", new);
    causes.extend(validate::pod_only(new));
    for kind in ["containers", "initContainers"] {
        let path = format!("spec.{kind}");
        if items(&new[kind]).len() != items(&old[kind]).len() {
            let text = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(path, text));
            return causes;
        }
        // Upstream checks images twice.
        causes.extend(validate::images(&path, &new[kind]));
    }
    match deadline(&new["activeDeadlineSeconds"], &old["activeDeadlineSeconds"]) {
        Some(cause) if !new["activeDeadlineSeconds"].is_null() => {
            causes.push(cause);
            return causes;
        }
        cause => causes.extend(cause),
    }
    causes.extend(tolerations(&new["tolerations"], &old["tolerations"]));
    causes.extend(gates(&new["schedulingGates"], &old["schedulingGates"]));
    let is_gated = !items(&old["schedulingGates"]).is_empty();
    if is_gated {
        causes.extend(selector(&new["nodeSelector"], &old["nodeSelector"]));
        causes.extend(node_affinity(&new["affinity"], &old["affinity"]));
    }
    if rest(write, new, old, is_gated) != *new {
        causes.push(Cause::forbidden("spec", UPDATE_FORBIDDEN));
    }
    causes
}

/// The old spec with the new values of all fields that may change or that are checked separately.
fn rest(write: &Write<'_>, new: &Value, old: &Value, is_gated: bool) -> Value {
    let mut rest = old.clone();
    for kind in ["containers", "initContainers"] {
        let images = items(&new[kind]).iter().map(|container| container.get("image"));
        let containers = rest.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            match (map(container), image) {
                (Some(container), Some(image)) => {
                    container.insert("image".to_owned(), image.clone());
                }
                (Some(container), None) => {
                    container.remove("image");
                }
                _ => {}
            }
        }
    }
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
        && new["terminationGracePeriodSeconds"] == 1
    {
        free.push("terminationGracePeriodSeconds");
    }
    if write.user.name == SCHEDULER && str_of(&old["nodeName"]).is_empty() {
        free.push("nodeName");
    }
    if is_gated {
        free.push("nodeSelector");
        let kept = |spec: &Value| {
            let mut affinity = spec["affinity"].clone();
            map(&mut affinity).map(|affinity| affinity.remove("nodeAffinity"));
            if affinity.as_object().is_none_or(|affinity| affinity.is_empty()) {
                return Value::Null;
            }
            affinity
        };
        if kept(new) == kept(old) {
            free.push("affinity");
        }
    }
    if let (Some(rest), Some(new)) = (map(&mut rest), new.as_object()) {
        for field in free {
            match new.get(field) {
                Some(value) => rest.insert(field.to_owned(), value.clone()),
                None => rest.remove(field),
            };
        }
    }
    rest
}

/// A deadline can only move closer.
fn deadline(new: &Value, old: &Value) -> Option<Cause> {
    let text = match (new.as_i64(), old.as_i64()) {
        (Some(seconds), _) if !(0..=DEADLINE_MAX).contains(&seconds) => {
            "must be between 0 and 2147483647, inclusive"
        }
        (Some(seconds), Some(before)) if seconds > before => {
            "must be less than or equal to previous value"
        }
        (None, Some(_)) => "must not update from a positive integer to nil value",
        _ => return None,
    };
    Some(Cause::invalid("spec.activeDeadlineSeconds", new, text))
}

/// Existing tolerations stay, except for their duration. New ones are appended.
fn tolerations(new: &Value, old: &Value) -> Vec<Cause> {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        map(&mut toleration).map(|toleration| toleration.remove("tolerationSeconds"));
        toleration
    };
    let new: Vec<Value> = items(new).iter().map(without_seconds).collect();
    if items(old).iter().all(|before| new.contains(&without_seconds(before))) {
        return validate::tolerations("spec.tolerations", &json!(new));
    }
    let text = "existing toleration can not be modified except its tolerationSeconds";
    vec![Cause::forbidden("spec.tolerations", text)]
}

/// Scheduling gates can only be removed.
fn gates(new: &Value, old: &Value) -> Vec<Cause> {
    let added = |(_, gate): &(usize, &Value)| {
        items(old).iter().all(|before| before["name"] != gate["name"])
    };
    let cause = |(index, gate): (usize, &Value)| {
        let text = format!(
            "only deletion is allowed, but found new scheduling gate '{}'",
            str_of(&gate["name"])
        );
        Cause::forbidden(format!("spec.schedulingGates[{index}].name"), &text)
    };
    items(new).iter().enumerate().filter(added).map(cause).collect()
}

/// Node labels can only be added.
fn selector(new: &Value, old: &Value) -> Option<Cause> {
    let mut before = old.as_object().into_iter().flatten();
    let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    (!before.all(|(key, value)| new[key] == *value))
        .then(|| Cause::invalid("spec.nodeSelector", new, text))
}

/// Terms for nodes can only become narrower.
fn node_affinity(new: &Value, old: &Value) -> Option<Cause> {
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let path = format!("spec.affinity.nodeAffinity.{field}.nodeSelectorTerms");
    let terms = |affinity: &'_ Value| -> Vec<Value> {
        items(&affinity["nodeAffinity"][field]["nodeSelectorTerms"]).to_vec()
    };
    let (new, old) = (terms(new), terms(old));
    if old.is_empty() {
        return None;
    }
    let cause = |path: String, value: String, text: &str| {
        Cause::new("FieldValueInvalid", path, format!("Invalid value: {value}: {text}"))
    };
    if new.len() != old.len() {
        let list: Vec<String> = new.iter().map(format_term).collect();
        let list = if new.is_empty() { "null".to_owned() } else { format!("[{}]", list.join(",")) };
        let text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return Some(cause(path, list, text));
    }
    let narrower = |new: &Value, old: &Value| {
        let kept = |kind: &str| items(&new[kind]).starts_with(items(&old[kind]));
        let was_empty = |kind: &&str| items(&old[kind]).is_empty();
        // A term without any requirement matches no node, and must stay so.
        let kinds = ["matchExpressions", "matchFields"];
        (new == old || !kinds.iter().all(was_empty)) && kinds.into_iter().all(kept)
    };
    let index = new.iter().zip(&old).position(|(new, old)| !narrower(new, old))?;
    let text = "only additions are allowed (no mutations or deletions)";
    Some(cause(format!("{path}[{index}]"), format_term(&new[index]), text))
}

/// The term in the notation in which upstream prints its own struct.
fn format_term(term: &Value) -> String {
    let list = |kind: &str| {
        let one = |requirement: &Value| {
            format!(
                "{{\"Key\":{},\"Operator\":{},\"Values\":{}}}",
                requirement["key"], requirement["operator"], requirement["values"]
            )
        };
        match items(&term[kind]) {
            [] => "null".to_owned(),
            some => format!("[{}]", some.iter().map(one).collect::<Vec<_>>().join(",")),
        }
    };
    format!(
        "{{\"MatchExpressions\":{},\"MatchFields\":{}}}",
        list("matchExpressions"),
        list("matchFields")
    )
}
