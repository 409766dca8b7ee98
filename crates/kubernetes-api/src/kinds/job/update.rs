//! What an update of a Job may change: little, and while it is suspended where and with which
//! resources its pods will run.

use api_meta::status::Cause;
use apiserver::fields::{items, map};
use serde_json::{Value, json};

use super::{failure_policy, success_policy};
use crate::kinds::template::selector_is_kept;

/// Problems of the change.
pub fn validate(object: &Value, old: &Value) -> Vec<Cause> {
    let (new, before) = (&object["spec"], &old["spec"]);
    let mut causes = Vec::new();
    causes.extend(completions(new, before));
    causes.extend(selector_is_kept(object, Some(old)));
    causes.extend(template(new, old));
    let mut kept = |field: &str, printed: fn(&Value) -> String| {
        if new[field] != before[field] {
            causes.push(immutable(&format!("spec.{field}"), &printed(&new[field])));
        }
    };
    kept("completionMode", Value::to_string);
    kept("podFailurePolicy", failure_policy::printed);
    kept("backoffLimitPerIndex", Value::to_string);
    kept("managedBy", Value::to_string);
    kept("successPolicy", success_policy::printed);
    causes
}

fn immutable(field: &str, shown: &str) -> Cause {
    let message = format!("Invalid value: {shown}: field is immutable");
    Cause::new("FieldValueInvalid", field, message)
}

/// Only an indexed job grows or shrinks, and all of its pods run at once.
fn completions(new: &Value, old: &Value) -> Option<Cause> {
    let (field, wanted) = ("spec.completions", &new["completions"]);
    if *wanted == old["completions"] {
        return None;
    }
    if new["completionMode"] != "Indexed" {
        return Some(immutable(field, &wanted.to_string()));
    }
    let text = "can only be modified in tandem with spec.parallelism";
    let apart = !wanted.is_null() && *wanted != new["parallelism"];
    apart.then(|| Cause::invalid(field, wanted, text))
}

fn template(new: &Value, old: &Value) -> Option<Cause> {
    let template = &new["template"];
    let mut kept = old["spec"]["template"].clone();
    if rests(old) {
        place(template, &mut kept);
        for kind in ["containers", "initContainers"] {
            resources(&template["spec"][kind], &mut kept["spec"][kind]);
        }
        let (pod, kept) = (&template["spec"], &kept["spec"]);
        return (without_null(kept) != without_null(pod))
            .then(|| immutable("spec.template.spec", &pod.to_string()));
    }
    (*template != kept).then(|| immutable("spec.template", &template.to_string()))
}

/// Suspended, with no pod left.
fn rests(job: &Value) -> bool {
    let status = &job["status"];
    let is_told =
        |condition: &Value| condition["type"] == "Suspended" && condition["status"] == "True";
    job["spec"]["suspend"] == true
        && (status["startTime"].is_null() || items(&status["conditions"]).iter().any(is_told))
        && status["active"].as_i64().unwrap_or_default() == 0
}

/// Gives `kept` what `template` says about where its pods run.
fn place(template: &Value, kept: &mut Value) {
    for field in ["annotations", "labels"] {
        take(&template["metadata"], &mut kept["metadata"], field);
    }
    let (pod, kept) = (&template["spec"], &mut kept["spec"]);
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(pod, kept, field);
    }
    let (wanted, mut affinity) = (&pod["affinity"], kept["affinity"].clone());
    if wanted.is_null() && affinity.is_null() {
        return;
    }
    if affinity.is_null() {
        affinity = json!({});
    }
    take(wanted, &mut affinity, "nodeAffinity");
    let is_gone = wanted.is_null() && affinity == json!({});
    kept["affinity"] = if is_gone { Value::Null } else { affinity };
}

/// Gives containers of the same names in the same places the wanted resources.
fn resources(wanted: &Value, kept: &mut Value) {
    if items(wanted).len() != items(kept).len() {
        return;
    }
    let kept = kept.as_array_mut().into_iter().flatten();
    for (wanted, kept) in items(wanted).iter().zip(kept) {
        if wanted["name"] == kept["name"] {
            take(wanted, kept, "resources");
        }
    }
}

fn take(from: &Value, to: &mut Value, field: &str) {
    let Some(to) = map(to) else { return };
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

/// The fields that are there: reaching for others to change them left nulls behind.
fn without_null(object: &Value) -> Vec<(&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).collect()
}
