//! Validation of the spec of a ResourceQuota, with kube-apiserver's messages and order.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use crate::kinds::pod;

const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
/// Pairs of scopes that exclude each other.
const OPPOSITES: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
/// Scopes without values. For other scopes, an expression names values.
const WITHOUT_VALUES: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
const WITH_VALUES: [&str; 2] = ["PriorityClass", "VolumeAttributesClass"];
const EXISTS_TEXT: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
    ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort \
    or ResourceQuotaScopeCrossNamespacePodAffinity";

/// Returns all causes to refuse `spec`. `old` is the spec before an update.
pub fn validate(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    pod::validate::of_quota("spec.hard", &spec["hard"], &mut causes);
    scopes(spec, &mut causes);
    selector(spec, &mut causes);
    if let Some(old) = old
        && set(&spec["scopes"]) != set(&old["scopes"])
    {
        causes.push(Cause::invalid("spec.scopes", &spec["scopes"], "field is immutable"));
    }
    causes
}

fn set(scopes: &Value) -> BTreeSet<&str> {
    items(scopes).iter().map(str_of).collect()
}

fn is_known(scope: &str) -> bool {
    WITHOUT_VALUES.contains(&scope) || WITH_VALUES.contains(&scope)
}

/// Limited resources to which a scope does not apply.
fn unfit<'a>(scope: &'a str, spec: &'a Value) -> impl Iterator<Item = &'a String> {
    let fits = move |resource: &str| match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => !is_known(scope) || resource == "pods" || COMPUTE.contains(&resource),
    };
    let limited = spec["hard"].as_object().into_iter().flatten().map(|(name, _)| name);
    limited.filter(move |name| pod::validate::is_of_quotas(name) && !fits(name))
}

fn are_opposed(scopes: &BTreeSet<&str>) -> impl Iterator<Item = ()> {
    OPPOSITES.iter().filter(|pair| pair.iter().all(|one| scopes.contains(one))).map(|_| ())
}

fn scopes(spec: &Value, causes: &mut Vec<Cause>) {
    let (field, given) = ("spec.scopes", &spec["scopes"]);
    for scope in items(given).iter().map(str_of) {
        if !is_known(scope) {
            causes.push(Cause::invalid(field, given, "unsupported scope"));
        }
        for _ in unfit(scope, spec) {
            causes.push(Cause::invalid(field, given, "unsupported scope applied to resource"));
        }
    }
    for () in are_opposed(&set(given)) {
        causes.push(Cause::invalid(field, given, "conflicting scopes"));
    }
}

fn selector(spec: &Value, causes: &mut Vec<Cause>) {
    let field = "spec.scopeSelector.matchExpressions";
    let selector = &spec["scopeSelector"];
    let mut seen = BTreeSet::new();
    for expression in items(&selector["matchExpressions"]) {
        let name = str_of(&expression["scopeName"]);
        if !is_known(name) {
            causes.push(Cause::invalid(
                format!("{field}.scopeName"),
                &name.into(),
                "unsupported scope",
            ));
        }
        for _ in unfit(name, spec) {
            // In the notation of upstream's internal type.
            let message = format!(
                "Invalid value: {}: unsupported scope applied to resource",
                format_selector(selector)
            );
            causes.push(Cause::new("FieldValueInvalid", field, message));
        }
        operator(field, expression, causes);
        seen.insert(name);
    }
    for () in are_opposed(&seen) {
        causes.push(Cause::invalid(field, &spec["scopes"], "conflicting scopes"));
    }
}

fn operator(field: &str, expression: &Value, causes: &mut Vec<Cause>) {
    let operator = &expression["operator"];
    let path = format!("{field}.operator");
    let given = Value::from(str_of(operator));
    if WITHOUT_VALUES.contains(&str_of(&expression["scopeName"])) && operator != "Exists" {
        causes.push(Cause::invalid(&*path, &given, EXISTS_TEXT));
    }
    let values = &expression["values"];
    match str_of(operator) {
        "In" | "NotIn" if items(values).is_empty() => {
            let text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                        selector";
            causes.push(Cause::required(format!("{field}.values"), text));
        }
        "Exists" | "DoesNotExist" if !items(values).is_empty() => {
            let text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope \
                        selector";
            causes.push(Cause::invalid(format!("{field}.values"), values, text));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => causes.push(Cause::invalid(path, &given, "not a valid selector operator")),
    }
}

fn format_selector(selector: &Value) -> String {
    let expressions = items(&selector["matchExpressions"]).iter().map(|one| {
        let text = |field: &str| Value::from(str_of(&one[field]));
        format!(
            r#"{{"ScopeName":{},"Operator":{},"Values":{}}}"#,
            text("scopeName"),
            text("operator"),
            one["values"]
        )
    });
    format!(r#"{{"MatchExpressions":[{}]}}"#, expressions.collect::<Vec<_>>().join(","))
}
