//! Validates updates of a Job. Few fields can change; while it is suspended, the placement and
//! resources of its pods can.

use api_meta::status::Cause;
use apiserver::fields::{items, map};
use serde_json::{Value, json};

use super::{failure_policy, success_policy};
use crate::kinds::template::selector_change;

/// Returns all causes to refuse the change from `old` to `object`.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let (new, before) = (&object["spec"], &old["spec"]);
    let mut causes = Vec::new();
    causes.extend(completions(new, before));
    causes.extend(selector_change(object, Some(old)));
    causes.extend(template(new, old));
    let mut reject_change = |field: &str, printed: fn(&Value) -> String| {
        if new[field] != before[field] {
            causes.push(immutable(&format!("spec.{field}"), &printed(&new[field])));
        }
    };
    reject_change("completionMode", Value::to_string);
    reject_change("podFailurePolicy", failure_policy::format_policy);
    reject_change("backoffLimitPerIndex", Value::to_string);
    reject_change("managedBy", Value::to_string);
    reject_change("successPolicy", success_policy::format_policy);
    causes
}

fn immutable(field: &str, shown: &str) -> Cause {
    let message = format!("Invalid value: {shown}: field is immutable");
    Cause::new("FieldValueInvalid", field, message)
}

/// Only an indexed job can scale, and all of its pods run in parallel.
fn completions(new: &Value, old: &Value) -> Option<Cause> {
    let (field, requested) = ("spec.completions", &new["completions"]);
    if *requested == old["completions"] {
        return None;
    }
    if new["completionMode"] != "Indexed" {
        return Some(immutable(field, &requested.to_string()));
    }
    let text = "can only be modified in tandem with spec.parallelism";
    let differs = !requested.is_null() && *requested != new["parallelism"];
    differs.then(|| Cause::invalid(field, requested, text))
}

fn template(new: &Value, old: &Value) -> Option<Cause> {
    let template = &new["template"];
    let mut target = old["spec"]["template"].clone();
    if is_suspended_without_pods(old) {
        copy_placement(template, &mut target);
        for kind in ["containers", "initContainers"] {
            copy_resources(&template["spec"][kind], &mut target["spec"][kind]);
        }
        let (pod, target) = (&template["spec"], &target["spec"]);
        return (without_null(target) != without_null(pod))
            .then(|| immutable("spec.template.spec", &pod.to_string()));
    }
    (*template != target).then(|| immutable("spec.template", &template.to_string()))
}

/// Whether the job is suspended and has no pods.
fn is_suspended_without_pods(job: &Value) -> bool {
    let status = &job["status"];
    let is_suspended =
        |condition: &Value| condition["type"] == "Suspended" && condition["status"] == "True";
    job["spec"]["suspend"] == true
        && (status["startTime"].is_null() || items(&status["conditions"]).iter().any(is_suspended))
        && status["active"].as_i64().unwrap_or_default() == 0
}

/// Copies the fields for placement from `template` to `target`.
fn copy_placement(template: &Value, target: &mut Value) {
    for field in ["annotations", "labels"] {
        copy_field(&template["metadata"], &mut target["metadata"], field);
    }
    let (pod, target) = (&template["spec"], &mut target["spec"]);
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy_field(pod, target, field);
    }
    let (requested, mut affinity) = (&pod["affinity"], target["affinity"].clone());
    if requested.is_null() && affinity.is_null() {
        return;
    }
    if affinity.is_null() {
        affinity = json!({});
    }
    copy_field(requested, &mut affinity, "nodeAffinity");
    let is_empty = requested.is_null() && affinity == json!({});
    target["affinity"] = if is_empty { Value::Null } else { affinity };
}

/// Copies the requested resources to containers with the same name at the same index.
fn copy_resources(requested: &Value, target: &mut Value) {
    if items(requested).len() != items(target).len() {
        return;
    }
    let target = target.as_array_mut().into_iter().flatten();
    for (requested, target) in items(requested).iter().zip(target) {
        if requested["name"] == target["name"] {
            copy_field(requested, target, "resources");
        }
    }
}

fn copy_field(from: &Value, to: &mut Value, field: &str) {
    let Some(to) = map(to) else { return };
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

/// The fields that are set. Accesses to absent fields left nulls behind.
fn without_null(object: &Value) -> Vec<(&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).collect()
}
