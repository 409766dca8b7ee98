//! Endpoints: the addresses and ports of a service's pods, in one object.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{each, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::Value;

use super::ip;
use super::networking::port_problem;

pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Number of addresses and ports that a row prints before `+ n more`.
const SHOWN_MAX: usize = 3;

/// The kind Endpoints of the core group: namespaced, with the defaults, validation and columns of
/// kube-apiserver.
pub fn endpoints() -> Kind {
    let mut kind = Kind {
        short_names: &["ep"],
        deprecation: Some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        columns: &[NAME, ("Endpoints", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                each(object, "subsets", |subset| {
                    each(subset, "ports", |port| preset(port, "protocol", "TCP"));
                });
            },
            validate,
            cells: |object, now| {
                vec![cells::name(object), places(&object["subsets"]), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "endpoints", "endpoints", "Endpoints")
    };
    kind.rules.create_on_update = true;
    kind
}

fn validate(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    // Unchanged addresses stay valid, and the server's own addresses are not checked.
    if write.is_by_server() || old.is_some_and(|old| old["subsets"] == object["subsets"]) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    for (index, subset) in items(&object["subsets"]).iter().enumerate() {
        let field = format!("subsets[{index}]");
        let kinds = ["addresses", "notReadyAddresses"];
        if kinds.iter().all(|kind| items(&subset[*kind]).is_empty()) {
            let why = "must specify `addresses` or `notReadyAddresses`";
            causes.push(Cause::required(field.as_str(), why));
        }
        for kind in kinds {
            for (at, one) in items(&subset[kind]).iter().enumerate() {
                address(&format!("{field}.{kind}[{at}]"), one, &mut causes);
            }
        }
        let ports = items(&subset["ports"]);
        for (at, one) in ports.iter().enumerate() {
            port(&format!("{field}.ports[{at}]"), one, ports.len() > 1, &mut causes);
        }
    }
    causes
}

fn address(field: &str, address: &Value, causes: &mut Vec<Cause>) {
    let ip = str_of(&address["ip"]);
    let path = format!("{field}.ip");
    let cause = |why: &String| Cause::invalid(path.as_str(), &ip.into(), why);
    causes.extend(ip::problems(ip).iter().map(cause));
    let host = &address["hostname"];
    if !str_of(host).is_empty() {
        causes.extend(problems(&format!("{field}.hostname"), host, names::dns1123_label));
    }
    let node = &address["nodeName"];
    causes.extend(problems(&format!("{field}.nodeName"), node, names::dns1123_subdomain));
    causes.extend(ip::of_endpoint(&path, ip));
}

/// With `named`, the port must have a name, since there are others.
fn port(field: &str, port: &Value, named: bool, causes: &mut Vec<Cause>) {
    let name = &port["name"];
    let path = format!("{field}.name");
    if !str_of(name).is_empty() {
        causes.extend(problems(&path, name, names::dns1123_label));
    } else if named {
        causes.push(Cause::required(path, ""));
    }
    causes.extend(port_problem(&format!("{field}.port"), &port["port"]));
    let (protocol, path) = (&port["protocol"], format!("{field}.protocol"));
    match str_of(protocol) {
        "" => causes.push(Cause::required(path, "")),
        known if PROTOCOLS.contains(&known) => {}
        _ => causes.push(Cause::not_supported(path, protocol, &PROTOCOLS)),
    }
    let protocol = &port["appProtocol"];
    causes.extend(problems(&format!("{field}.appProtocol"), protocol, names::qualified_name));
}

/// The messages of `check` about a text, as causes at `field`. An absent text has none.
pub fn problems(field: &str, text: &Value, check: fn(&str) -> Vec<String>) -> Vec<Cause> {
    let problems = text.as_str().map(check).unwrap_or_default();
    problems.iter().map(|why| Cause::invalid(field, text, why)).collect()
}

fn places(subsets: &Value) -> Value {
    let mut places = Vec::new();
    for subset in items(subsets) {
        let ports = items(&subset["ports"]);
        let ips = || items(&subset["addresses"]).iter().map(|address| str_of(&address["ip"]));
        if ports.is_empty() {
            places.extend(ips().map(str::to_owned));
        }
        for port in ports {
            places.extend(ips().map(|ip| format!("{ip}:{}", port["port"])));
        }
    }
    shorten_list(&places)
}

/// Joins the texts for a table row, shortened to the first few.
pub fn shorten_list(texts: &[String]) -> Value {
    let shown = texts[..texts.len().min(SHOWN_MAX)].join(",");
    if texts.len() > SHOWN_MAX {
        return format!("{shown} + {} more...", texts.len() - SHOWN_MAX).into();
    }
    cells::or_none(&shown)
}
