//! Host names, DNS settings and host aliases of a pod.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::{each, one_of};
use crate::kinds::ip;

const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// Total length of all search paths, with a space between them.
const SEARCHES_LENGTH_MAX: usize = 2048;
/// Longest host name of Linux.
const HOSTNAME_LENGTH_MAX: usize = 64;
const SEARCH_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// Validates `dnsPolicy` of the spec at `field`.
pub fn dns_policy(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    one_of(field, spec, "dnsPolicy", &DNS_POLICIES, causes);
}

/// Validates `dnsConfig` of the spec at `field`, with upstream's limits.
pub fn dns_config(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let config = &spec["dnsConfig"];
    let servers = items(&config["nameservers"]);
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            let text = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.push(Cause::required(field, text));
        } else if servers.is_empty() {
            let text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(Cause::required(format!("{field}.nameservers"), text));
        }
    }
    let of_servers = format!("{field}.nameservers");
    if servers.len() > NAMESERVERS_MAX {
        let text = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        causes.push(Cause::invalid(&of_servers, &config["nameservers"], &text));
    }
    for (path, server) in each(&of_servers, &config["nameservers"]) {
        super::name(&path, server, ip::problems, causes);
    }
    searches(&format!("{field}.searches"), &config["searches"], causes);
    for (path, option) in each(&format!("{field}.options"), &config["options"]) {
        if str_of(&option["name"]).is_empty() {
            causes.push(Cause::required(path, "must not be empty"));
        }
    }
}

fn searches(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let paths = items(list);
    if paths.len() > SEARCHES_MAX {
        let text = format!("must not have more than {SEARCHES_MAX} search paths");
        causes.push(Cause::invalid(field, list, &text));
    }
    let spaces = paths.len().saturating_sub(1);
    if paths.iter().map(|path| str_of(path).len()).sum::<usize>() + spaces > SEARCHES_LENGTH_MAX {
        let text = format!(
            "must not have more than {SEARCHES_LENGTH_MAX} characters (including spaces) in the \
             search list"
        );
        causes.push(Cause::invalid(field, list, &text));
    }
    for (path, search) in each(field, list) {
        if search != "." {
            super::name(&path, search, search_problems, causes);
        }
    }
}

/// A subdomain that may contain underscores, and end with a dot.
fn search_problems(search: &str) -> Vec<String> {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part).as_bytes();
        part.first().is_some_and(is_end)
            && part.last().is_some_and(is_end)
            && part.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
    };
    let search = search.strip_suffix('.').unwrap_or(search);
    let mut problems = Vec::new();
    if search.len() > names::SUBDOMAIN_LENGTH_MAX {
        problems.push(format!("must be no more than {} bytes", names::SUBDOMAIN_LENGTH_MAX));
    }
    if !search.split('.').all(fits) {
        problems.push(SEARCH_TEXT.to_owned());
    }
    problems
}

/// Validates `hostAliases`: addresses with their names.
pub fn host_aliases(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    for (path, alias) in each(field, list) {
        super::name(&format!("{path}.ip"), &alias["ip"], ip::problems, causes);
        for (path, host) in each(&format!("{path}.hostnames"), &alias["hostnames"]) {
            super::name(&path, host, names::dns1123_subdomain, causes);
        }
    }
}

/// Validates `hostnameOverride` of the spec at `field`.
pub fn hostname_override(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let path = format!("{field}.hostnameOverride");
    let Value::String(name) = &spec["hostnameOverride"] else { return };
    if name.len() > HOSTNAME_LENGTH_MAX {
        causes.push(Cause::too_long(&path, HOSTNAME_LENGTH_MAX));
    }
    super::name(&path, &spec["hostnameOverride"], names::dns1123_subdomain, causes);
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec[other] == true {
            let text = format!("may not be specified when {other} is true");
            causes.push(Cause::forbidden(&path, &text));
        }
    }
}
