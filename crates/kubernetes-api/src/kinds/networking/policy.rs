//! Validation of the spec of a NetworkPolicy.

use std::collections::HashSet;

use api_meta::labels::validate_selector;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::port_problem;
use crate::kinds::ip::{self, Range};

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const TYPES: [&str; 2] = ["Ingress", "Egress"];
/// The direction of traffic, and the field that names the peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// Returns all causes to refuse a spec. Ranges that `old` has are accepted as they are.
pub fn validate(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let before = old.map(ranges).unwrap_or_default();
    let mut causes = validate_selector("spec.podSelector", &spec["podSelector"]);
    for (direction, other) in DIRECTIONS {
        for (index, rule) in items(&spec[direction]).iter().enumerate() {
            let field = format!("spec.{direction}[{index}]");
            for (index, one) in items(&rule["ports"]).iter().enumerate() {
                port(&format!("{field}.ports[{index}]"), one, &mut causes);
            }
            for (index, one) in items(&rule[other]).iter().enumerate() {
                peer(&format!("{field}.{other}[{index}]"), one, &before, &mut causes);
            }
        }
    }
    let types = &spec["policyTypes"];
    if items(types).len() > TYPES.len() {
        let why = "may not specify more than two policyTypes";
        causes.push(Cause::invalid("spec.policyTypes", types, why));
        return causes;
    }
    for (index, kind) in items(types).iter().enumerate() {
        if !TYPES.contains(&str_of(kind)) {
            let field = format!("spec.policyTypes[{index}]");
            causes.push(Cause::not_supported(field, kind, &TYPES));
        }
    }
    causes
}

/// All address ranges in a spec.
fn ranges(spec: &Value) -> HashSet<&str> {
    let rules = DIRECTIONS.iter().flat_map(|(direction, other)| {
        items(&spec[*direction]).iter().flat_map(|rule| items(&rule[*other]))
    });
    let blocks = rules.map(|peer| &peer["ipBlock"]);
    blocks
        .flat_map(|block| [&block["cidr"]].into_iter().chain(items(&block["except"])))
        .map(str_of)
        .collect()
}

fn port(field: &str, port: &Value, causes: &mut Vec<Cause>) {
    let protocol = &port["protocol"];
    if protocol.is_string() && !PROTOCOLS.contains(&str_of(protocol)) {
        causes.push(Cause::not_supported(format!("{field}.protocol"), protocol, &PROTOCOLS));
    }
    let (first, last) = (&port["port"], &port["endPort"]);
    let (first_field, last_field) = (format!("{field}.port"), format!("{field}.endPort"));
    match first {
        Value::Number(number) => {
            causes.extend(port_problem(&first_field, first));
            if last.is_number() {
                if last.as_i64() < number.as_i64() {
                    let why = "must be greater than or equal to `port`";
                    causes.push(Cause::invalid(last_field.as_str(), first, why));
                }
                causes.extend(port_problem(&last_field, last));
            }
        }
        Value::String(name) => {
            if last.is_number() {
                let why = "may not be specified when `port` is non-numeric";
                causes.push(Cause::invalid(last_field, last, why));
            }
            let problems = names::port_name(name);
            let cause = |why: &String| Cause::invalid(first_field.as_str(), first, why);
            causes.extend(problems.iter().map(cause));
        }
        _ if last.is_number() => {
            let why = "may not be specified when `port` is not specified";
            causes.push(Cause::invalid(last_field, last, why));
        }
        _ => {}
    }
}

fn peer(field: &str, peer: &Value, before: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let mut has_selector = false;
    for name in ["podSelector", "namespaceSelector"] {
        if peer[name].is_object() {
            has_selector = true;
            causes.extend(validate_selector(&format!("{field}.{name}"), &peer[name]));
        }
    }
    let block = &peer["ipBlock"];
    if block.is_object() {
        ip_block(&format!("{field}.ipBlock"), block, before, causes);
    }
    match (has_selector, block.is_object()) {
        (false, false) => causes.push(Cause::required(field, "must specify a peer")),
        (true, true) => {
            let why = "may not specify both ipBlock and another peer";
            causes.push(Cause::forbidden(field, why));
        }
        _ => {}
    }
}

fn ip_block(field: &str, block: &Value, before: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let whole = &block["cidr"];
    let path = format!("{field}.cidr");
    if str_of(whole).is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    causes.extend(ip::new_range(&path, whole, before));
    let Some(range) = Range::read(str_of(whole)) else { return };
    for (index, except) in items(&block["except"]).iter().enumerate() {
        let path = format!("{field}.except[{index}]");
        causes.extend(ip::new_range(&path, except, before));
        if Range::read(str_of(except)).is_some_and(|except| !range.is_wider_than(except)) {
            let why = "must be a strict subset of `cidr`";
            causes.push(Cause::invalid(path, except, why));
        }
    }
}
