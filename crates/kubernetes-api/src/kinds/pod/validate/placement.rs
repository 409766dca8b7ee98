//! Placement of a pod, besides affinities.

use std::collections::BTreeSet;

use api_meta::labels;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::{affinity, each, int, name, name_if_any, require_one_of};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const POLICIES: [&str; 2] = ["Honor", "Ignore"];
const UNSATISFIABLE: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const NOT_POSITIVE: &str = "must be greater than zero";

/// Validates readiness gates and scheduling gates of the spec at `field`.
pub fn gates(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    for (path, gate) in each(&format!("{field}.readinessGates"), &spec["readinessGates"]) {
        let path = format!("{path}.conditionType");
        name(&path, &gate["conditionType"], names::qualified_name, causes);
    }
    let mut seen = BTreeSet::new();
    for (path, gate) in each(&format!("{field}.schedulingGates"), &spec["schedulingGates"]) {
        name(&path, &gate["name"], names::qualified_name, causes);
        super::duplicate(&path, str_of(&gate["name"]), &mut seen, causes);
    }
}

/// Validates tolerations at `field`; appends a cause for each problem.
pub fn tolerations(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    for (path, toleration) in each(field, list) {
        let text = |name: &str| str_of(&toleration[name]);
        let (operator, effect) = (text("operator"), text("effect"));
        name_if_any(&format!("{path}.key"), &toleration["key"], names::qualified_name, causes);
        let (of_operator, of_effect) = (format!("{path}.operator"), format!("{path}.effect"));
        if text("key").is_empty() && operator != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all \
                        values and all keys\"";
            causes.push(Cause::invalid(&of_operator, &operator.into(), text));
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(&of_effect, &effect.into(), text));
        }
        let supported: &[&str] = match operator {
            "" | "Equal" => {
                name(&of_operator, &toleration["value"], names::label_value, causes);
                &[]
            }
            "Exists" if text("value").is_empty() => &[],
            "Exists" => {
                let why = "value must be empty when `operator` is 'Exists'";
                causes.push(Cause::invalid(&of_operator, &toleration["value"], why));
                &[]
            }
            // Known, and behind a feature gate that is disabled.
            "Lt" | "Gt" => &["Equal", "Exists", "Lt", "Gt"],
            _ => &["Equal", "Exists"],
        };
        if !supported.is_empty() {
            causes.push(Cause::not_supported(of_operator, &operator.into(), supported));
        }
        if !effect.is_empty() {
            require_one_of(&of_effect, &toleration["effect"], &EFFECTS, causes);
        }
    }
}

/// Validates the `topologySpreadConstraints` of the spec at `field`.
pub fn spread(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let list = &spec["topologySpreadConstraints"];
    let constraints = each(&format!("{field}.topologySpreadConstraints"), list);
    for (index, (path, constraint)) in constraints.enumerate() {
        let at = |name: &str| format!("{path}.{name}");
        let skew = int(&constraint["maxSkew"]);
        if skew <= 0 {
            causes.push(Cause::invalid(at("maxSkew"), &skew.into(), NOT_POSITIVE));
        }
        let (key, action) =
            (str_of(&constraint["topologyKey"]), str_of(&constraint["whenUnsatisfiable"]));
        if key.is_empty() {
            causes.push(Cause::required(at("topologyKey"), "can not be empty"));
        }
        require_one_of(
            &at("whenUnsatisfiable"),
            &constraint["whenUnsatisfiable"],
            &UNSATISFIABLE,
            causes,
        );
        // The first of two equal constraints is reported.
        let alike = |other: &Value| {
            ["topologyKey", "whenUnsatisfiable"].iter().all(|name| other[name] == constraint[name])
        };
        if items(list)[index + 1..].iter().any(alike) {
            let path = at("{topologyKey, whenUnsatisfiable}");
            causes.push(Cause::duplicate(path, &format!("{{{key}, {action}}}").into()));
        }
        if let Some(domains) = constraint["minDomains"].as_i64() {
            let path = at("minDomains");
            if domains <= 0 {
                causes.push(Cause::invalid(&path, &domains.into(), NOT_POSITIVE));
            }
            if action != "DoNotSchedule" {
                let text = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                causes.push(Cause::invalid(path, &domains.into(), &text));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if !constraint[name].is_null() {
                require_one_of(&at(name), &constraint[name], &POLICIES, causes);
            }
        }
        let selector = &constraint["labelSelector"];
        affinity::label_keys(
            &at("matchLabelKeys"),
            &constraint["matchLabelKeys"],
            selector,
            causes,
        );
        if !selector.is_null() {
            causes.extend(labels::validate_selector(&at("labelSelector"), selector));
        }
    }
}
