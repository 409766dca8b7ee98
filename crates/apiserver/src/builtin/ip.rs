//! Addresses of the internet protocol in fields that took any before rules came.

use std::collections::HashSet;
use std::net::IpAddr;

use api_meta::status::Cause;
use serde_json::Value;

use super::fields::str_of;

/// What is wrong with an address.
pub fn problems(text: &str) -> Vec<String> {
    if text.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    // Some read such numbers as octal ones.
    let parts: Vec<Option<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    let is_padded =
        parts.len() == 4 && parts.iter().all(|part| part.is_some_and(|part| part <= 255));
    let text = if is_padded {
        "must not have leading 0s"
    } else {
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    };
    vec![text.to_owned()]
}

/// Problems of an address that was not among those of `before`.
pub fn new_address<'a>(field: &str, address: &'a Value, before: &HashSet<&'a str>) -> Vec<Cause> {
    let text = str_of(address);
    if before.contains(text) {
        return Vec::new();
    }
    problems(text).iter().map(|problem| Cause::invalid(field, address, problem)).collect()
}
