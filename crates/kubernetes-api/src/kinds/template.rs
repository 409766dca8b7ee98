//! Pod templates, and the rules that the workload kinds share.

use api_meta::labels::{self, LabelSelector};
use api_meta::status::Cause;
use apiserver::fields::{Object, ensure, str_of};
use serde_json::{Value, json};

use super::pod;

/// Sets the defaults of the template in `template` of `owner`.
pub fn default(owner: &mut Object) {
    let Some(template) = ensure(owner, "template") else { return };
    ensure(template, "metadata");
    if let Some(spec) = ensure(template, "spec") {
        pod::spec::default(spec);
    }
}

/// Returns all causes to refuse `spec.selector` and `spec.template` below it. Only pods that are
/// always restarted are allowed.
pub fn validate(object: &Value, kind: &str) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    let selector = &spec["selector"];
    if selector.is_null() {
        if kind != "daemonset" {
            causes.push(Cause::required("spec.selector", ""));
        }
    } else {
        causes.extend(labels::validate_selector("spec.selector", selector));
        // With an invalid selector the template is not validated, since it has to match; daemon
        // sets do not need one.
        if !causes.is_empty() && kind != "daemonset" {
            let why = if kind == "statefulset" { "" } else { ": invalid label selector" };
            causes.push(whole_selector("spec.selector", selector, why));
            return causes;
        }
        if LabelSelector::from_object(selector).is_ok_and(|s| s.is_everything()) {
            let text = format!("empty selector is invalid for {kind}");
            causes.push(Cause::invalid("spec.selector", &json!({}), &text));
        }
    }
    if kind == "statefulset" {
        // Upstream checks them twice.
        causes.extend(pod::validate::template_metadata("spec.template", &spec["template"]));
    }
    causes.extend(selector_mismatch("spec.template", spec));
    let owner = match kind {
        "daemonset" => "DaemonSet",
        "statefulset" => "StatefulSet",
        _ => "ReplicaSet",
    };
    causes.extend(of_running(&spec["template"], owner));
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        causes.extend(not_negative(&format!("spec.{field}"), &spec[field]));
    }
    causes
}

/// A cause at `field` that prints a whole selector, its parts in upstream's order.
pub fn whole_selector(field: &str, selector: &Value, why: &str) -> Cause {
    if selector.is_null() {
        return Cause::new("FieldValueInvalid", field, format!("Invalid value: null{why}"));
    }
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter(|part| !selector[part].is_null())
        .map(|part| format!("\"{part}\":{}", selector[part]))
        .collect();
    let message = format!("Invalid value: {{{}}}{why}", parts.join(","));
    Cause::new("FieldValueInvalid", field, message)
}

/// Causes for the template at `spec.template` of an `owner` whose pods are always restarted.
pub fn of_running(template: &Value, owner: &str) -> Vec<Cause> {
    let mut causes = pod::validate::template("spec.template", template);
    let policy = &template["spec"]["restartPolicy"];
    if !matches!(str_of(policy), "" | "Always") {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause::not_supported(field, policy, &["Always"]));
    }
    if template["spec"]["activeDeadlineSeconds"].is_number() {
        let text = format!("activeDeadlineSeconds in {owner} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &text));
    }
    causes
}

/// A cause when the selector does not match the template's labels.
pub fn selector_mismatch(field: &str, spec: &Value) -> Option<Cause> {
    let labels = &spec["template"]["metadata"]["labels"];
    let fits = match LabelSelector::from_object(&spec["selector"]) {
        Ok(selector) => selector.is_everything() || selector.matches_labels(labels),
        Err(_) => true,
    };
    let text = "`selector` does not match template `labels`";
    (!fits).then(|| Cause::invalid(format!("{field}.metadata.labels"), labels, text))
}

/// A cause for a negative number; `None` for an absent one.
pub fn not_negative(field: &str, value: &Value) -> Option<Cause> {
    let text = "must be greater than or equal to 0";
    value.as_i64().is_some_and(|n| n < 0).then(|| Cause::invalid(field, value, text))
}

/// A cause when the selector of a workload changes: it is immutable.
pub fn selector_change(object: &Value, old: Option<&Value>) -> Option<Cause> {
    let old = old?;
    let (new, old) = (&object["spec"]["selector"], &old["spec"]["selector"]);
    (new != old).then(|| whole_selector("spec.selector", new, ": field is immutable"))
}

/// A cause for a value that is neither a non-negative number nor a percentage up to 100 %.
pub fn percentage(field: &str, value: &Value) -> Option<Cause> {
    match value {
        Value::String(text) => match text.strip_suffix('%').map(str::parse::<u32>) {
            Some(Ok(0..=100)) => None,
            Some(Ok(_)) if !field.ends_with("maxSurge") => {
                Some(Cause::invalid(field, value, "must not be greater than 100%"))
            }
            Some(Ok(_)) => None,
            _ => Some(Cause::invalid(
                field,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
                 '1%',  or '93%', regex used for validation is '[0-9]+%')",
            )),
        },
        other => not_negative(field, other),
    }
}
