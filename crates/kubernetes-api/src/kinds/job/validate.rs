//! Validation of the spec of a Job, alone and in the template of a CronJob, with the messages and
//! order of kube-apiserver 1.36.

use api_meta::labels::{self, LabelSelector};
use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::{Value, json};

use super::{
    CONTROLLER_UID, JOB_NAME, OLD_CONTROLLER_UID, OLD_JOB_NAME, failure_policy, success_policy,
};
use crate::kinds::template::{not_negative, whole_selector};
use crate::kinds::{pod, prefixed_path};

const COMPLETION_MODES: [&str; 2] = ["NonIndexed", "Indexed"];
/// Limit of an indexed job. It bounds the list of indexes in the status.
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Number of completions of an indexed job beyond which lower limits apply.
const COMPLETIONS_MANY: i64 = 100_000;
const PARALLELISM_OF_MANY_MAX: i64 = 10_000;
const FAILED_INDEXES_OF_MANY_MAX: i64 = 10_000;
const MANAGED_BY_MAX: usize = 63;

/// Returns all causes to refuse a Job, except those of its metadata.
pub fn job(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    generated_selector(object, old, &mut causes);
    whole(spec, &mut causes);
    if let Some(last) = spec["completions"].as_i64().filter(|count| *count > 0)
        && spec["completionMode"] == "Indexed"
    {
        let host = format!("{}-{}", object.name(), last - 1);
        if !names::dns1123_label(&host).is_empty() {
            let text = format!("will not able to create pod with invalid DNS label: {host}");
            causes.push(Cause::invalid("metadata.name", &object.name().into(), &text));
        }
    }
    if old.is_some() {
        // Upstream checks it twice.
        whole(spec, &mut causes);
    }
    causes
}

/// A generated selector and the labels of pods must be those that the server generated.
fn generated_selector(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return;
    }
    let mut expected = vec![(OLD_CONTROLLER_UID, object.uid()), (OLD_JOB_NAME, object.name())];
    // Jobs of old versions have only these.
    let had = |label| {
        old.is_none_or(|old| old["spec"]["template"]["metadata"]["labels"].get(label).is_some())
    };
    if had(CONTROLLER_UID) && had(JOB_NAME) {
        expected.extend([(CONTROLLER_UID, object.uid()), (JOB_NAME, object.name())]);
    }
    let given = &spec["template"]["metadata"]["labels"];
    for (label, value) in &expected {
        let field = format!("spec.template.metadata.labels[{label}]");
        let text = format!("must be '{value}'");
        match given.get(label) {
            None => causes.push(Cause::required(field, &text)),
            Some(other) if other != value => causes.push(Cause::invalid(field, given, &text)),
            Some(_) => {}
        }
    }
    let lookup =
        |key: &str| expected.iter().find(|(label, _)| *label == key).map(|(_, value)| *value);
    if LabelSelector::from_object(&spec["selector"]).is_ok_and(|selector| !selector.matches(lookup))
    {
        let text = ": `selector` not auto-generated";
        causes.push(whole_selector("spec.selector", &spec["selector"], text));
    }
}

fn whole(spec: &Value, causes: &mut Vec<Cause>) {
    without_selector("spec", spec, causes);
    let (selector, given) = (&spec["selector"], &spec["template"]["metadata"]["labels"]);
    let fits = if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
        false
    } else {
        causes.extend(labels::validate_selector("spec.selector", selector));
        LabelSelector::from_object(selector).map_or(true, |one| one.matches_labels(given))
    };
    if !fits {
        let text = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", given, text));
    }
}

/// Validates the spec at `field` without its selector; appends a cause for each problem.
pub fn without_selector(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    amounts(field, spec, causes);
    managed_by(&format!("{field}.managedBy"), &spec["managedBy"], causes);
    completion_mode(field, spec, causes);
    policies(field, spec, causes);
    let path = format!("{field}.template");
    causes.extend(pod::validate::template(&path, &spec["template"]));
    restart_policy(&format!("{path}.spec.restartPolicy"), spec, causes);
}

fn amounts(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        causes.extend(not_negative(&format!("{field}.{name}"), &spec[name]));
    }
    if spec["maxFailedIndexes"].is_number() && spec["backoffLimitPerIndex"].is_null() {
        let text = "when maxFailedIndexes is specified";
        causes.push(Cause::required(format!("{field}.backoffLimitPerIndex"), text));
    }
}

fn managed_by(path: &str, value: &Value, causes: &mut Vec<Cause>) {
    let Some(text) = value.as_str() else { return };
    causes.extend(prefixed_path::problems(path, text));
    if text.len() > MANAGED_BY_MAX {
        causes.push(Cause::too_long(path, MANAGED_BY_MAX));
    }
}

fn completion_mode(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let mode = &spec["completionMode"];
    match mode.as_str() {
        Some("Indexed") => validate_indexed(field, spec, causes),
        None | Some("NonIndexed") => {
            for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if spec[name].is_number() {
                    let text = "requires indexed completion mode";
                    causes.push(Cause::invalid(format!("{field}.{name}"), &spec[name], text));
                }
            }
        }
        Some(_) => {
            let path = format!("{field}.completionMode");
            causes.push(Cause::not_supported(path, mode, &COMPLETION_MODES));
        }
    }
}

fn validate_indexed(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let completions = spec["completions"].as_i64();
    if completions.is_none() {
        let text = "when completion mode is Indexed";
        causes.push(Cause::required(format!("{field}.completions"), text));
    }
    let at_most = |name: &str, limit: i64, text: &str| {
        let text = format!("must be less than or equal to {text}");
        let is_over = spec[name].as_i64().is_some_and(|number| number > limit);
        is_over.then(|| Cause::invalid(format!("{field}.{name}"), &spec[name], &text))
    };
    let text = format!("{PARALLELISM_MAX} when completion mode is Indexed");
    causes.extend(at_most("parallelism", PARALLELISM_MAX, &text));
    causes.extend(at_most("maxFailedIndexes", completions.unwrap_or(i64::MAX), "completions"));
    let text = FAILED_INDEXES_MAX.to_string();
    causes.extend(at_most("maxFailedIndexes", FAILED_INDEXES_MAX, &text));
    if completions.is_none_or(|count| count <= COMPLETIONS_MANY)
        || spec["backoffLimitPerIndex"].is_null()
    {
        return;
    }
    if spec["maxFailedIndexes"].is_null() {
        let text = format!("must be specified when completions is above {COMPLETIONS_MANY}");
        causes.push(Cause::required(format!("{field}.maxFailedIndexes"), &text));
    }
    for (name, limit) in
        [("parallelism", PARALLELISM_OF_MANY_MAX), ("maxFailedIndexes", FAILED_INDEXES_OF_MANY_MAX)]
    {
        let text = format!(
            "{limit} when completions are above {COMPLETIONS_MANY} and used with backoff limit per \
             index"
        );
        causes.extend(at_most(name, limit, &text));
    }
}

fn policies(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    if spec["podFailurePolicy"].is_object() {
        failure_policy::validate(&format!("{field}.podFailurePolicy"), spec, causes);
    }
    let (path, policy) = (format!("{field}.successPolicy"), &spec["successPolicy"]);
    if policy.is_object() && spec["completionMode"] != "Indexed" {
        let shown = success_policy::format_policy(policy);
        let message = format!("Invalid value: {shown}: requires indexed completion mode");
        causes.push(Cause::new("FieldValueInvalid", path, message));
    } else if policy.is_object() {
        let completions = spec["completions"].as_i64().unwrap_or_default();
        success_policy::validate(&path, policy, completions, causes);
    }
    let replacement = &spec["podReplacementPolicy"];
    let allowed: &[&str] = if spec["podFailurePolicy"].is_object() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    if replacement.as_str().is_some_and(|text| !allowed.contains(&text)) {
        let path = format!("{field}.podReplacementPolicy");
        causes.push(Cause::not_supported(path, replacement, allowed));
    }
}

fn restart_policy(path: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let policy = &spec["template"]["spec"]["restartPolicy"];
    match str_of(policy) {
        "Never" => {}
        "OnFailure" if spec["podFailurePolicy"].is_null() => {}
        "OnFailure" => {
            let text = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.push(Cause::invalid(path, policy, text));
        }
        "" | "Always" => {
            causes.push(Cause::required(path, "valid values: \"OnFailure\", \"Never\""));
        }
        _ => causes.push(Cause::not_supported(path, policy, &["OnFailure", "Never"])),
    }
}

/// The texts in the notation in which Go prints a list.
pub fn format_list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| json!(text).to_string()).collect();
    format!("[{}]", quoted.join(" "))
}
