//! Endpoints: where a service's pods listen, in one object.

use api_meta::status::Cause;
use serde_json::Value;

use super::cells;
use super::fields::{each, items, map, preset, str_of};
use super::kind::{AGE, Hooks, Kind, NAME};

/// Addresses and ports that a row shows before it says `+ n more`.
const SHOWN_MAX: usize = 3;

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
            validate: |_, object, _| validate_endpoints(object),
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

fn validate_endpoints(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, subset) in items(&object["subsets"]).iter().enumerate() {
        for kind in ["addresses", "notReadyAddresses"] {
            for (at, address) in items(&subset[kind]).iter().enumerate() {
                let ip = &address["ip"];
                if str_of(ip).parse::<std::net::IpAddr>().is_err() {
                    let field = format!("subsets[{index}].{kind}[{at}].ip");
                    let text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                    causes.push(Cause::invalid(field.clone(), ip, text));
                    causes.push(Cause::invalid(field, ip, "must be a valid IP address"));
                }
            }
        }
        for (at, port) in items(&subset["ports"]).iter().enumerate() {
            let number = port["port"].as_i64().unwrap_or_default();
            if !(1..=65535).contains(&number) {
                let field = format!("subsets[{index}].ports[{at}].port");
                let text = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(field, &number.into(), text));
            }
        }
    }
    causes
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
    shortened(&places)
}

/// For a row.
pub fn shortened(texts: &[String]) -> Value {
    let shown = texts[..texts.len().min(SHOWN_MAX)].join(",");
    if texts.len() > SHOWN_MAX {
        return format!("{shown} + {} more...", texts.len() - SHOWN_MAX).into();
    }
    cells::or_none(&shown)
}
