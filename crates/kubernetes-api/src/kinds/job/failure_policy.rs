//! The consequences of a failed pod for its job: `podFailurePolicy`.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::{Value, json};

use super::validate::format_list;

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Validates the policy of `spec` at `field`; appends a cause for each problem.
pub fn validate(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let rules_field = format!("{field}.rules");
    let rules = items(&spec["podFailurePolicy"]["rules"]);
    causes.extend(Cause::too_many(&rules_field, rules.len(), RULES_MAX));
    let pod = &spec["template"]["spec"];
    let containers = items(&pod["containers"]).iter().chain(items(&pod["initContainers"]));
    let names: BTreeSet<&str> = containers.map(|container| str_of(&container["name"])).collect();
    for (index, one) in rules.iter().enumerate() {
        rule(&format!("{rules_field}[{index}]"), one, spec, &names, causes);
    }
}

fn rule(
    path: &str,
    rule: &Value,
    spec: &Value,
    containers: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    let action_path = format!("{path}.action");
    if str_of(&rule["action"]) == "FailIndex" {
        if spec["backoffLimitPerIndex"].is_null() {
            let text = "requires the backoffLimitPerIndex to be set";
            causes.push(Cause::invalid(action_path, &rule["action"], text));
        }
    } else {
        require_one_of(action_path, &rule["action"], &ACTIONS, causes);
    }
    let (codes, patterns) = (&rule["onExitCodes"], items(&rule["onPodConditions"]));
    if codes.is_object() {
        exit_codes(&format!("{path}.onExitCodes"), codes, containers, causes);
    }
    conditions(&format!("{path}.onPodConditions"), patterns, causes);
    let text = match (codes.is_object(), patterns.is_empty()) {
        (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    causes.push(Cause::new("FieldValueInvalid", path, format!("Invalid value: {text}")));
}

/// A required text of a set.
fn require_one_of(path: String, value: &Value, allowed: &[&str], causes: &mut Vec<Cause>) {
    let text = str_of(value);
    if text.is_empty() {
        causes.push(Cause::required(path, &format!("valid values: {}", format_list(allowed))));
    } else if !allowed.contains(&text) {
        causes.push(Cause::not_supported(path, value, allowed));
    }
}

fn exit_codes(path: &str, codes: &Value, containers: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
    require_one_of(format!("{path}.operator"), &codes["operator"], &OPERATORS, causes);
    let container = &codes["containerName"];
    if container.as_str().is_some_and(|name| !containers.contains(name)) {
        let text = "must be one of the container or initContainer names in the pod template";
        causes.push(Cause::invalid(format!("{path}.containerName"), container, text));
    }
    let values_path = format!("{path}.values");
    let values = items(&codes["values"]);
    if values.is_empty() {
        causes.push(Cause::invalid(&values_path, &json!([]), "at least one value is required"));
    }
    causes.extend(Cause::too_many(&values_path, values.len(), EXIT_CODES_MAX));
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        let value_path = format!("{values_path}[{index}]");
        if codes["operator"] == "In" && *value == 0 {
            let text = "must not be 0 for the In operator";
            causes.push(Cause::invalid(&value_path, value, text));
        }
        if !seen.insert(value.as_i64()) {
            causes.push(Cause::duplicate(value_path, value));
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        causes.push(Cause::invalid(values_path, &codes["values"], "must be ordered"));
    }
}

fn conditions(path: &str, patterns: &[Value], causes: &mut Vec<Cause>) {
    causes.extend(Cause::too_many(path, patterns.len(), PATTERNS_MAX));
    for (index, pattern) in patterns.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let kind = str_of(&pattern["type"]);
        let cause = |text: String| Cause::invalid(format!("{path}.type"), &kind.into(), &text);
        causes.extend(names::qualified_name(kind).into_iter().map(cause));
        require_one_of(format!("{path}.status"), &pattern["status"], &STATUSES, causes);
    }
}

/// The policy in the notation in which upstream prints its own struct.
pub fn format_policy(policy: &Value) -> String {
    if policy.is_null() {
        return "null".to_owned();
    }
    let rules: Vec<String> = items(&policy["rules"]).iter().map(printed_rule).collect();
    format!("{{\"Rules\":{}}}", list(&rules))
}

fn printed_rule(rule: &Value) -> String {
    let codes = match &rule["onExitCodes"] {
        Value::Null => "null".to_owned(),
        codes => format!(
            "{{\"ContainerName\":{},\"Operator\":{},\"Values\":{}}}",
            codes["containerName"],
            Value::from(str_of(&codes["operator"])),
            codes["values"]
        ),
    };
    let pattern = |pattern: &Value| {
        let [kind, status] = ["type", "status"].map(|field| Value::from(str_of(&pattern[field])));
        format!("{{\"Type\":{kind},\"Status\":{status}}}")
    };
    let patterns: Vec<String> = items(&rule["onPodConditions"]).iter().map(pattern).collect();
    let action = Value::from(str_of(&rule["action"]));
    format!(
        "{{\"Action\":{action},\"OnExitCodes\":{codes},\"OnPodConditions\":{}}}",
        list(&patterns)
    )
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() { "null".to_owned() } else { format!("[{}]", texts.join(",")) }
}
