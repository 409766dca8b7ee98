//! Validation of the spec of a PodDisruptionBudget, with kube-apiserver's messages and order.

use api_meta::labels;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use crate::kinds::template::percentage;

const EVICTION_POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];

/// Returns all causes to refuse `spec`.
pub fn validate(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        // In the notation of upstream's internal type.
        let message = format!(
            "Invalid value: {{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\
             \"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable cannot be both \
             set",
            format_selector(&spec["selector"]),
            spec["unhealthyPodEvictionPolicy"],
        );
        causes.push(Cause::new("FieldValueInvalid", "spec", message));
    }
    causes.extend(percentage("spec.minAvailable", least));
    causes.extend(percentage("spec.maxUnavailable", most));
    if !spec["selector"].is_null() {
        causes.extend(labels::validate_selector("spec.selector", &spec["selector"]));
    }
    let policy = &spec["unhealthyPodEvictionPolicy"];
    if !policy.is_null() && !EVICTION_POLICIES.contains(&str_of(policy)) {
        let field = "spec.unhealthyPodEvictionPolicy";
        causes.push(Cause::not_supported(field, policy, &EVICTION_POLICIES));
    }
    causes
}

/// A selector with its fields in the order of Go's type.
fn format_selector(selector: &Value) -> String {
    let Value::Object(fields) = selector else { return selector.to_string() };
    let parts = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", fields.get(name)?)));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}
