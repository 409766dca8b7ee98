//! Validation of a Node, with kube-apiserver's messages and order.

use api_meta::decode::syntax_problem;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use crate::kinds::ip::{RANGE_FORM, range_problem};
use crate::kinds::pod;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Annotations from before there were fields.
const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const FEATURE_LENGTH_MAX: usize = 253;

/// Returns all causes to refuse `node`. `old` is the node before an update.
pub fn validate(node: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    annotations(node, &mut causes);
    taints("metadata.taints", &node["spec"]["taints"], &mut causes);
    amounts(node, &mut causes);
    let swap = &node["status"]["nodeInfo"]["swap"]["capacity"];
    if swap.as_i64().is_some_and(|capacity| capacity <= 0) {
        let text = "must be greater than zero";
        causes.push(Cause::invalid("metadata.nodeSwapStatus.capacity", swap, text));
    }
    features(&node["status"]["declaredFeatures"], &mut causes);
    ranges(&node["spec"]["podCIDRs"], &mut causes);
    // Upstream checks some of it again.
    causes.extend(old.into_iter().flat_map(|old| changes(node, old)));
    causes
}

/// Causes for the change from `old` to `node`, of its status or of other fields.
pub fn changes(node: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    annotations(node, &mut causes);
    amounts(node, &mut causes);
    features(&node["status"]["declaredFeatures"], &mut causes);
    addresses(&node["status"]["addresses"], &mut causes);
    kept_ranges(node, old, &mut causes);
    let provider = |node: &Value| str_of(&node["spec"]["providerID"]).to_owned();
    if !provider(old).is_empty() && provider(old) != provider(node) {
        let text = "node updates may not change providerID except from \"\" to valid";
        causes.push(Cause::forbidden("spec.providerID", text));
    }
    taints("metadata.taints", &node["spec"]["taints"], &mut causes);
    let external = |node: &Value| str_of(&node["spec"]["externalID"]).to_owned();
    if external(old) != external(node) {
        causes.push(Cause::forbidden("spec.externalID", "may not be updated"));
    }
    causes
}

fn annotations(node: &Value, causes: &mut Vec<Cause>) {
    let field = "metadata.annotations";
    let read = |name: &str, field: String, causes: &mut Vec<Cause>| {
        let text = str_of(&node["metadata"]["annotations"][name]);
        let read = serde_json::from_str::<Value>(text);
        if let Err(error) = read.as_ref().map_err(|error| syntax_problem(text.as_bytes(), error))
            && !text.is_empty()
        {
            causes.push(Cause::invalid(field, &name.into(), &error));
        }
        read.unwrap_or_default()
    };
    let given = read(TAINTS, field.to_owned(), causes);
    taints(&format!("{field}.{TAINTS}"), &given, causes);
    let given = read(AVOIDED, format!("{field}.AvoidPods"), causes);
    for (index, avoided) in items(&given["preferAvoidPods"]).iter().enumerate() {
        let field = format!("{field}.{AVOIDED}[{index}].PodSignature");
        let owner = &avoided["podSignature"]["podController"];
        if owner.is_null() {
            causes.push(Cause::required(field, ""));
        } else if owner["controller"] != true {
            let field = format!("{field}.PodController.Controller");
            causes.push(Cause::invalid(field, &false.into(), "must point to a controller"));
        }
    }
}

fn taints(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let list = items(list);
    let key = |taint: &Value| [&taint["key"], &taint["effect"]].map(|part| str_of(part).to_owned());
    for (index, taint) in list.iter().enumerate() {
        let path = format!("{field}[{index}]");
        let [name, value, effect] =
            ["key", "value", "effect"].map(|part| Value::from(str_of(&taint[part])));
        for problem in names::qualified_name(str_of(&name)) {
            causes.push(Cause::invalid(format!("{path}.key"), &name, &problem));
        }
        let problems = names::label_value(str_of(&value));
        if !problems.is_empty() {
            causes.push(Cause::invalid(format!("{path}.value"), &value, &problems.join(";")));
        }
        let of_effect = format!("{path}.effect");
        if effect == "" {
            causes.push(Cause::required(of_effect, ""));
        } else if !EFFECTS.contains(&str_of(&effect)) {
            causes.push(Cause::not_supported(of_effect, &effect, &EFFECTS));
        }
        if list[..index].iter().any(|before| key(before) == key(taint)) {
            // In the notation of upstream's internal type.
            let message = format!(
                "Duplicate value: {{\"Key\":{name},\"Value\":{value},\"Effect\":{effect},\
                 \"TimeAdded\":{}}}: taints must be unique by key and effect pair",
                taint["timeAdded"],
            );
            causes.push(Cause::new("FieldValueDuplicate", path, message));
        }
    }
}

fn amounts(node: &Value, causes: &mut Vec<Cause>) {
    for kind in ["capacity", "allocatable"] {
        pod::validate::of_node(&format!("status.{kind}"), &node["status"][kind], causes);
    }
}

/// Features that the kubelet declares, in alphabetical order.
fn features(list: &Value, causes: &mut Vec<Cause>) {
    let (field, list) = ("status.declaredFeatures", items(list));
    for (index, feature) in list.iter().enumerate() {
        if let Some(problem) = feature_problem(str_of(feature)) {
            causes.push(Cause::invalid(format!("{field}[{index}]"), feature, &problem));
        }
        let Some(next) = list.get(index + 1) else { break };
        let field = format!("{field}[{}]", index + 1);
        if next == feature {
            causes.push(Cause::duplicate(field, next));
        } else if str_of(next) < str_of(feature) {
            causes.push(Cause::invalid(field, next, "list must be sorted alphabetically"));
        }
    }
}

fn feature_problem(name: &str) -> Option<String> {
    let given = Value::from(name);
    if name.len() > FEATURE_LENGTH_MAX {
        let text = format!("must be no more than {FEATURE_LENGTH_MAX} characters");
        return Some(format!("invalid feature name {given}: {text}"));
    }
    let is_segment = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let fits = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.split('/').all(is_segment);
    (!fits).then(|| {
        format!(
            "invalid feature name {given}: must start with an UpperCamelCase segment, with \
             subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and \
             contain only alphanumeric characters and slashes"
        )
    })
}

/// Address ranges of pods: one, or one of each family.
fn ranges(list: &Value, causes: &mut Vec<Cause>) {
    let (field, ranges) = ("spec.podCIDRs", items(list));
    for (index, range) in ranges.iter().enumerate() {
        let problem = range_problem(str_of(range));
        causes.extend(problem.map(|why| Cause::invalid(format!("{field}[{index}]"), range, why)));
    }
    if ranges.len() < 2 {
        return;
    }
    let is_none = |range: &Value| range_problem(str_of(range)) == Some(RANGE_FORM);
    let unknown = ranges.iter().position(is_none);
    if let Some(index) = unknown {
        let message = format!(
            "Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid \
             CIDR[{index}]: <nil> (invalid CIDR address: {})",
            str_of(&ranges[index]),
        );
        causes.push(Cause::new("InternalError", field, message));
    }
    let count = ranges.iter().filter(|range| str_of(range).contains(':')).count();
    if unknown.is_some() || (ranges.len(), count) != (2, 1) {
        let text = "may specify no more than one CIDR for each IP family";
        causes.push(Cause::invalid(field, list, text));
    }
}

/// Ranges are set once.
fn kept_ranges(node: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let [now, before] = [node, old].map(|node| items(&node["spec"]["podCIDRs"]));
    let changed = match before.len() {
        0 => 0,
        count if count != now.len() => 1,
        _ => before.iter().zip(now).filter(|(before, now)| before != now).count(),
    };
    for _ in 0..changed {
        let text = "node updates may not change podCIDR except from \"\" to valid";
        causes.push(Cause::forbidden("spec.podCIDRs", text));
    }
}

fn addresses(list: &Value, causes: &mut Vec<Cause>) {
    let list = items(list);
    for (index, address) in list.iter().enumerate() {
        if !list[..index].contains(address) {
            continue;
        }
        // In the notation of upstream's internal type.
        let (kind, text) = (str_of(&address["type"]), str_of(&address["address"]));
        let message = format!(r#"Duplicate value: {{"Type":"{kind}","Address":"{text}"}}"#);
        let field = format!("status.addresses[{index}]");
        causes.push(Cause::new("FieldValueDuplicate", field, message));
    }
}
