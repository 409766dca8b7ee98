//! Validation of EndpointSlices.

use std::collections::HashSet;
use std::net::IpAddr;

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use apiserver::strategy::Write;
use serde_json::Value;

use crate::kinds::endpoints::{PROTOCOLS, problems};
use crate::kinds::ip;

const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1_000;
/// Number of addresses of one endpoint.
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;
const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

/// Returns all causes to refuse the slice, or its change from `old`.
pub fn all(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let kind = &object["addressType"];
    let mut causes = Vec::new();
    if str_of(kind).is_empty() {
        causes.push(Cause::required("addressType", ""));
    } else if !ADDRESS_TYPES.contains(&str_of(kind)) {
        causes.push(Cause::not_supported("addressType", kind, &ADDRESS_TYPES));
    }
    causes.extend(ports(&object["ports"]));
    // Unchanged addresses stay valid, and the server's own addresses are not checked.
    if !write.is_by_server() && old.is_none_or(|old| old["endpoints"] != object["endpoints"]) {
        causes.extend(endpoints(&object["endpoints"], str_of(kind)));
    }
    if old.is_some_and(|old| old["addressType"] != *kind) {
        causes.push(Cause::invalid("addressType", kind, "field is immutable"));
    }
    causes
}

fn ports(list: &Value) -> Vec<Cause> {
    if let Some(cause) = Cause::too_many("ports", items(list).len(), PORTS_MAX) {
        return vec![cause];
    }
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, port) in items(list).iter().enumerate() {
        let field = format!("ports[{index}]");
        let name = &port["name"];
        if !str_of(name).is_empty() {
            causes.extend(problems(&format!("{field}.name"), name, names::dns1123_label));
        }
        if !seen.insert(str_of(name)) {
            causes.push(Cause::duplicate(format!("{field}.name"), name));
        }
        let protocol = &port["protocol"];
        if !PROTOCOLS.contains(&str_of(protocol)) {
            let path = format!("{field}.protocol");
            causes.push(Cause::not_supported(path, protocol, &PROTOCOLS));
        }
        let protocol = &port["appProtocol"];
        causes.extend(problems(&format!("{field}.appProtocol"), protocol, names::qualified_name));
    }
    causes
}

fn endpoints(list: &Value, kind: &str) -> Vec<Cause> {
    if let Some(cause) = Cause::too_many("endpoints", items(list).len(), ENDPOINTS_MAX) {
        return vec![cause];
    }
    let each = items(list).iter().enumerate();
    each.flat_map(|(index, one)| endpoint(&format!("endpoints[{index}]"), one, kind)).collect()
}

fn endpoint(field: &str, endpoint: &Value, kind: &str) -> Vec<Cause> {
    let mut causes = addresses(&format!("{field}.addresses"), &endpoint["addresses"], kind);
    let node = &endpoint["nodeName"];
    causes.extend(problems(&format!("{field}.nodeName"), node, names::dns1123_subdomain));
    let host = &endpoint["hostname"];
    causes.extend(problems(&format!("{field}.hostname"), host, names::dns1123_label));
    let hints = &endpoint["hints"];
    causes.extend(validate_hints(
        &format!("{field}.hints.forZones"),
        &hints["forZones"],
        names::label_value,
    ));
    // With too many zones, no more causes are reported.
    if items(&hints["forZones"]).len() <= HINTS_MAX {
        let path = format!("{field}.hints.forNodes");
        causes.extend(validate_hints(&path, &hints["forNodes"], names::dns1123_subdomain));
    }
    causes
}

fn addresses(field: &str, list: &Value, kind: &str) -> Vec<Cause> {
    let count = items(list).len();
    let mut causes = Vec::new();
    if count == 0 {
        causes.push(Cause::required(field, "must contain at least 1 address"));
    }
    causes.extend(Cause::too_many(field, count, ADDRESSES_MAX));
    for (index, address) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        match kind {
            "IPv4" | "IPv6" => causes.extend(ip_address(field, &path, str_of(address), kind)),
            "FQDN" => causes.extend(domain_name(&path, str_of(address))),
            _ => {}
        }
    }
    causes
}

fn ip_address(list: &str, field: &str, text: &str, kind: &str) -> Vec<Cause> {
    let shown = Value::from(text);
    let problems = ip::problems(text);
    let Some(address) = ip::read(text).filter(|_| problems.is_empty()) else {
        return problems.iter().map(|why| Cause::invalid(field, &shown, why)).collect();
    };
    // The stricter rules require the canonical representation.
    if kind == "IPv6" && address.to_string() != text {
        let why = format!("must be in canonical form (\"{address}\")");
        return vec![Cause::invalid(field, &shown, &why)];
    }
    let fits = matches!((kind, address), ("IPv4", IpAddr::V4(_)) | ("IPv6", IpAddr::V6(_)));
    let why = format!("must be an {kind} address");
    let other = (!fits).then(|| Cause::invalid(list, &shown, &why));
    other.into_iter().chain(ip::of_endpoint(field, text)).collect()
}

fn domain_name(field: &str, text: &str) -> Vec<Cause> {
    if text.is_empty() {
        return vec![Cause::required(field, "")];
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let invalid = |part: &str, why: &str| vec![Cause::invalid(field, &part.into(), why)];
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        return invalid(name, &problems.join(","));
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return invalid(name, why);
    }
    let wrong = name.split('.').find(|label| !names::dns1123_label(label).is_empty());
    // The older check of one label counts characters.
    let message = |label| names::dns1123_label(label).join(",").replace(" bytes", " characters");
    wrong.map(|label| invalid(label, &message(label))).unwrap_or_default()
}

/// Validates the hints of an endpoint.
fn validate_hints(field: &str, list: &Value, check: fn(&str) -> Vec<String>) -> Vec<Cause> {
    if let Some(cause) = Cause::too_many(field, items(list).len(), HINTS_MAX) {
        return vec![cause];
    }
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, hint) in items(list).iter().enumerate() {
        let (path, name) = (format!("{field}[{index}].name"), &hint["name"]);
        if !seen.insert(str_of(name)) {
            causes.push(Cause::duplicate(path.as_str(), name));
        }
        causes.extend(problems(&path, name, check));
    }
    causes
}
