//! Affinity of a pod to nodes and to other pods.

use api_meta::labels;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::{each, name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_OPERATOR: &str = "not a valid selector operator";

/// Validates `affinity` at `field`; appends a cause for each problem.
pub fn all(field: &str, affinity: &Value, causes: &mut Vec<Cause>) {
    nodes(&format!("{field}.nodeAffinity"), &affinity["nodeAffinity"], causes);
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (field, given) = (format!("{field}.{kind}"), &affinity[kind]);
        for (path, term) in each(&format!("{field}.{REQUIRED}"), &given[REQUIRED]) {
            pod_term(&path, term, causes);
        }
        for (path, preference) in each(&format!("{field}.{PREFERRED}"), &given[PREFERRED]) {
            weight(&path, preference, causes);
            pod_term(&format!("{path}.podAffinityTerm"), &preference["podAffinityTerm"], causes);
        }
    }
}

fn weight(path: &str, preference: &Value, causes: &mut Vec<Cause>) {
    let weight = super::int(&preference["weight"]);
    if !(1..=100).contains(&weight) {
        let path = format!("{path}.weight");
        causes.push(Cause::invalid(path, &weight.into(), "must be in the range 1-100"));
    }
}

fn nodes(field: &str, affinity: &Value, causes: &mut Vec<Cause>) {
    if affinity[REQUIRED].is_object() {
        node_selector(&format!("{field}.{REQUIRED}"), &affinity[REQUIRED], causes);
    }
    for (path, preference) in each(&format!("{field}.{PREFERRED}"), &affinity[PREFERRED]) {
        weight(&path, preference, causes);
        node_term(&format!("{path}.preference"), &preference["preference"], causes);
    }
}

/// Validates terms of which a node must match one; appends a cause for each problem.
pub fn node_selector(field: &str, selector: &Value, causes: &mut Vec<Cause>) {
    let (path, terms) = (format!("{field}.nodeSelectorTerms"), &selector["nodeSelectorTerms"]);
    if items(terms).is_empty() {
        causes.push(Cause::required(&path, "must have at least one node selector term"));
    }
    each(&path, terms).for_each(|(path, term)| node_term(&path, term, causes));
}

fn node_term(path: &str, term: &Value, causes: &mut Vec<Cause>) {
    let labels = "matchExpressions";
    for (path, requirement) in each(&format!("{path}.{labels}"), &term[labels]) {
        node_labels(&path, requirement, causes);
    }
    let fields = "matchFields";
    for (path, requirement) in each(&format!("{path}.{fields}"), &term[fields]) {
        node_fields(&path, requirement, causes);
    }
}

fn node_labels(path: &str, requirement: &Value, causes: &mut Vec<Cause>) {
    let values = &requirement["values"];
    let (of_values, count) = (format!("{path}.values"), items(values).len());
    let operator = str_of(&requirement["operator"]);
    match (operator, count) {
        ("In" | "NotIn", 0) => {
            let text = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(&of_values, text));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(&of_values, text));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let text = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            causes.push(Cause::required(&of_values, text));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => {
            let path = format!("{path}.operator");
            causes.push(Cause::invalid(path, &operator.into(), NO_OPERATOR));
        }
    }
    name(&format!("{path}.key"), &requirement["key"], names::qualified_name, causes);
    if matches!(operator, "In" | "NotIn") {
        for (path, value) in each(&of_values, values) {
            name(&path, value, names::label_value, causes);
        }
    }
}

fn node_fields(path: &str, requirement: &Value, causes: &mut Vec<Cause>) {
    let (of_values, values) = (format!("{path}.values"), &requirement["values"]);
    match str_of(&requirement["operator"]) {
        "In" | "NotIn" if items(values).len() == 1 => {}
        "In" | "NotIn" => {
            let text = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
                        selector";
            causes.push(Cause::required(&of_values, text));
        }
        operator => {
            let path = format!("{path}.operator");
            causes.push(Cause::invalid(path, &operator.into(), NO_OPERATOR));
        }
    }
    if requirement["key"] == "metadata.name" {
        for (path, value) in each(&of_values, values) {
            name(&path, value, names::dns1123_subdomain, causes);
        }
    } else {
        let key = str_of(&requirement["key"]).into();
        let text = "not a valid field selector key";
        causes.push(Cause::invalid(format!("{path}.key"), &key, text));
    }
}

fn pod_term(path: &str, term: &Value, causes: &mut Vec<Cause>) {
    let at = |name: &str| format!("{path}.{name}");
    for name in ["labelSelector", "namespaceSelector"] {
        if !term[name].is_null() {
            causes.extend(labels::validate_selector(&at(name), &term[name]));
        }
    }
    for namespace in items(&term["namespaces"]) {
        name(&at("namespace"), namespace, names::dns1123_label, causes);
    }
    let selector = &term["labelSelector"];
    let lists = ["matchLabelKeys", "mismatchLabelKeys"];
    for list in lists {
        label_keys(&at(list), &term[list], selector, causes);
    }
    for (path, key) in each(&at(lists[0]), &term[lists[0]]) {
        if items(&term[lists[1]]).contains(key) {
            let text = "exists in both matchLabelKeys and mismatchLabelKeys";
            causes.push(Cause::invalid(path, key, text));
        }
    }
    if str_of(&term["topologyKey"]).is_empty() {
        causes.push(Cause::required(at("topologyKey"), "can not be empty"));
    }
    name(&at("topologyKey"), &term["topologyKey"], names::qualified_name, causes);
}

/// Validates label keys whose values the selector takes from the pod itself; appends a cause for
/// each problem.
pub fn label_keys(field: &str, keys: &Value, selector: &Value, causes: &mut Vec<Cause>) {
    if !items(keys).is_empty() && selector.is_null() {
        let text = "must not be specified when labelSelector is not set";
        causes.push(Cause::forbidden(field, text));
        return;
    }
    for (path, key) in each(field, keys) {
        name(&path, key, names::qualified_name, causes);
    }
}
