//! Status fields that several kinds have, and their validation.

use std::collections::HashSet;
use std::net::IpAddr;

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::ip;
use super::template::not_negative;

const REASON_LENGTH_MAX: usize = 1024;
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;
const CONDITION_STATES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_TEXT: &str = "a condition reason must start with alphabetic character, optionally \
    followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric \
    character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or \
    'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Causes for counts that are negative.
pub fn counts(status: &Value, names: &[&str]) -> Vec<Cause> {
    names.iter().filter_map(|name| not_negative(&format!("status.{name}"), &status[name])).collect()
}

/// Causes for numbers of replicas: each part must not exceed the total, and available ones must be
/// ready. `ready` is the name of the ready ones in messages.
pub fn replicas(status: &Value, parts: &[&str], ready: &str) -> Vec<Cause> {
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    let of_all = parts.iter().map(|part| (*part, "replicas", "status.replicas"));
    of_all
        .chain([("availableReplicas", "readyReplicas", ready)])
        .filter(|(part, whole, _)| count(part) > count(whole))
        .map(|(part, _, whole)| {
            let text = format!("cannot be greater than {whole}");
            Cause::invalid(format!("status.{part}"), &status[part], &text)
        })
        .collect()
}

/// A cause when the count of name collisions decreases.
pub fn collisions(new: &Value, old: &Value) -> Option<Cause> {
    let (new, old) = (new["collisionCount"].as_i64(), old["collisionCount"].as_i64());
    let count = new.unwrap_or_default();
    let shrinks = old.is_some_and(|old| new.is_none() || count < old);
    let text = "cannot be decremented";
    shrinks.then(|| Cause::invalid("status.collisionCount", &count.into(), text))
}

/// Causes for conditions of the type that all newer kinds have.
pub fn conditions(field: &str, list: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, condition) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        let kind = &condition["type"];
        if !seen.insert(str_of(kind)) {
            causes.push(Cause::duplicate(format!("{path}.type"), kind));
        }
        for problem in names::qualified_name(str_of(kind)) {
            causes.push(Cause::invalid(format!("{path}.type"), &str_of(kind).into(), &problem));
        }
        if !CONDITION_STATES.contains(&str_of(&condition["status"])) {
            let given = str_of(&condition["status"]).into();
            causes.push(Cause::not_supported(format!("{path}.status"), &given, &CONDITION_STATES));
        }
        let generation = &condition["observedGeneration"];
        if generation.as_i64().is_some_and(|generation| generation < 0) {
            let text = "must be greater than or equal to zero";
            causes.push(Cause::invalid(format!("{path}.observedGeneration"), generation, text));
        }
        if condition["lastTransitionTime"].is_null() {
            causes.push(Cause::required(format!("{path}.lastTransitionTime"), ""));
        }
        causes.extend(reason(&format!("{path}.reason"), &condition["reason"]));
        if str_of(&condition["message"]).len() > MESSAGE_LENGTH_MAX {
            causes.push(Cause::too_long(format!("{path}.message"), MESSAGE_LENGTH_MAX));
        }
    }
    causes
}

fn reason(field: &str, reason: &Value) -> Vec<Cause> {
    let text = str_of(reason);
    if text.is_empty() {
        return vec![Cause::required(field, "")];
    }
    let mut causes = Vec::new();
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    let fits = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_inner)
        && !text.ends_with([',', ':']);
    if !fits {
        causes.push(Cause::invalid(field, reason, REASON_TEXT));
    }
    if text.len() > REASON_LENGTH_MAX {
        causes.push(Cause::too_long(field, REASON_LENGTH_MAX));
    }
    causes
}

/// Causes for conditions of older kinds, whose types must only be distinct.
pub fn distinct_conditions(list: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, condition) in items(list).iter().enumerate() {
        let field = format!("status.conditions[{index}].type");
        let kind = str_of(&condition["type"]);
        if !seen.insert(kind) {
            causes.push(Cause::duplicate(&*field, &kind.into()));
        }
        if kind.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    causes
}

/// Causes for the addresses of a load balancer at `field`. `mode` validates what a kind states
/// about the packets' path.
pub fn balancer(
    field: &str,
    list: &Value,
    old: &Value,
    mode: fn(&str, &Value) -> Option<Cause>,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let before = items(old).iter().map(|one| str_of(&one["ip"])).collect();
    for (index, ingress) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        if !str_of(&ingress["ip"]).is_empty() {
            causes.extend(ip::new_address(&format!("{path}.ip"), &ingress["ip"], &before));
        }
        causes.extend(mode(&format!("{path}.ipMode"), ingress));
        let (host, path) = (str_of(&ingress["hostname"]), format!("{path}.hostname"));
        if host.is_empty() {
            continue;
        }
        let mut problems = names::dns1123_subdomain(host);
        if host.parse::<IpAddr>().is_ok() {
            problems.push("must be a DNS name, not an IP address".to_owned());
        }
        let host = Value::from(host);
        causes.extend(problems.iter().map(|problem| Cause::invalid(&*path, &host, problem)));
    }
    causes
}

/// A cause for a negative amount of a resource, which prints it as a whole number.
pub fn basic_amount(field: &str, value: &Value) -> Option<Cause> {
    let amount: Quantity = str_of(value).parse().ok()?;
    let text = "must be a valid resource quantity";
    amount.is_negative().then(|| Cause::invalid(field, &amount.value().into(), text))
}
