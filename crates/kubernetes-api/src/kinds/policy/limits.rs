//! Validation of a LimitRange, with kube-apiserver's messages and order.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use crate::kinds::pod::validate::{container_name_problems, is_compressible, name_problems};

const TYPES: [&str; 3] = ["Container", "PersistentVolumeClaim", "Pod"];
const DEFAULTS: [&str; 2] = ["default", "defaultRequest"];
const RATIO: &str = "maxLimitRequestRatio";

/// Two bounds of one resource of which the first must not exceed the second.
struct Order {
    low: &'static str,
    high: &'static str,
    /// The bound whose field a violation names, and the bound whose amount it names.
    reported_bounds: (&'static str, &'static str),
    /// The names of the two bounds in messages.
    words: [&'static str; 2],
}

const ORDERS: [Order; 6] = [
    order("min", "max", ("min", "min"), ["min", "max"]),
    order(
        "min",
        "defaultRequest",
        ("defaultRequest", "defaultRequest"),
        ["min", "default request"],
    ),
    order(
        "defaultRequest",
        "max",
        ("defaultRequest", "defaultRequest"),
        ["default request", "max"],
    ),
    order(
        "defaultRequest",
        "default",
        ("defaultRequest", "defaultRequest"),
        ["default request", "default limit"],
    ),
    order("min", "default", ("default", "min"), ["min", "default"]),
    order("default", "max", ("default", "max"), ["default", "max"]),
];

const fn order(
    low: &'static str,
    high: &'static str,
    reported_bounds: (&'static str, &'static str),
    words: [&'static str; 2],
) -> Order {
    Order { low, high, reported_bounds, words }
}

/// Returns all causes to refuse `spec`.
pub fn validate(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, limit) in items(&spec["limits"]).iter().enumerate() {
        let (field, kind) = (format!("spec.limits[{index}]"), str_of(&limit["type"]));
        let of_kind = format!("{field}.type");
        let problems = type_problems(kind);
        causes.extend(problems.iter().map(|why| Cause::invalid(&*of_kind, &kind.into(), why)));
        if !seen.insert(kind) {
            causes.push(Cause::duplicate(of_kind, &kind.into()));
        }
        bounds(&field, kind, limit, &mut causes);
    }
    causes
}

fn type_problems(kind: &str) -> Vec<String> {
    let problems = names::qualified_name(kind);
    if problems.is_empty() && !kind.contains('/') && !TYPES.contains(&kind) {
        return vec!["must be a standard limit type or fully qualified".to_owned()];
    }
    problems
}

fn bounds(field: &str, kind: &str, limit: &Value, causes: &mut Vec<Cause>) {
    let name_check = if kind == "PersistentVolumeClaim" || !TYPES.contains(&kind) {
        name_problems
    } else {
        container_name_problems
    };
    let mut resources = BTreeSet::new();
    let mut named = |bound: &str, causes: &mut Vec<Cause>| {
        for name in limit[bound].as_object().into_iter().flat_map(|amounts| amounts.keys()) {
            let (path, given) = (format!("{field}.{bound}[{name}]"), name.as_str().into());
            causes.extend(name_check(name).iter().map(|why| Cause::invalid(&*path, &given, why)));
            resources.insert(name);
        }
    };
    named("max", causes);
    named("min", causes);
    let is_pod = kind == "Pod";
    for bound in DEFAULTS {
        if !is_pod {
            named(bound, causes);
        } else if !limit[bound].is_null() {
            let text = "may not be specified when `type` is 'Pod'";
            causes.push(Cause::forbidden(format!("{field}.{bound}"), text));
        }
    }
    let is_bounded = ["min", "max"].iter().any(|bound| !limit[bound]["storage"].is_null());
    if kind == "PersistentVolumeClaim" && !is_bounded {
        let text = "either minimum or maximum storage value is required, but neither was provided";
        causes.push(Cause::required(format!("{field}.limits"), text));
    }
    named(RATIO, causes);
    for name in resources {
        let amount = |bound: &str| {
            let is_set = !(is_pod && DEFAULTS.contains(&bound));
            str_of(&limit[bound][name.as_str()]).parse().ok().filter(|_| is_set)
        };
        of_resource(field, name, amount, causes);
    }
}

/// Compares the bounds of one resource. `amount` returns the value of a bound.
fn of_resource(
    field: &str,
    name: &str,
    amount: impl Fn(&str) -> Option<Quantity>,
    causes: &mut Vec<Cause>,
) {
    let mut report = |bound: &str, value: Quantity, text: String| {
        let path = format!("{field}.{bound}[{name}]");
        causes.push(Cause::invalid(path, &value.to_string().into(), &text));
    };
    for Order { low, high, reported_bounds: (at, shown), words } in &ORDERS {
        let (Some(least), Some(most)) = (amount(low), amount(high)) else { continue };
        if least > most {
            let shown = if shown == low { least } else { most };
            let [low, high] = words;
            report(at, shown, format!("{low} value {least} is greater than {high} value {most}"));
        }
    }
    if let Some(ratio) = amount(RATIO) {
        if ratio < Quantity::from_whole(1) {
            report(RATIO, ratio, format!("ratio {ratio} is less than 1"));
        }
        if let (Some(least), Some(most)) = (amount("min"), amount("max")) {
            let span = most.to_f64() / least.to_f64();
            if ratio.to_f64() > span {
                report(RATIO, ratio, format!("ratio {ratio} is greater than max/min = {span:.6}"));
            }
        }
    }
    if let (Some(limit), Some(request)) = (amount("default"), amount("defaultRequest"))
        && !is_compressible(name)
        && limit != request
    {
        let text =
            format!("default value {limit} must equal to defaultRequest value {request} in {name}");
        report("defaultRequest", request, text);
    }
}
