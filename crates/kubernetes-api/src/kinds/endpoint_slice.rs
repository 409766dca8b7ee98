//! EndpointSlice: some of the places where a service's pods listen.

mod validate;

use apiserver::fields::{each, ensure, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::endpoints::shortened;

pub fn kind() -> Kind {
    Kind {
        counts_metadata: &["labels"],
        columns: &[
            NAME,
            ("AddressType", "string", "", 0),
            ("Ports", "string", "", 0),
            ("Endpoints", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                preset(object, "endpoints", Value::Null);
                preset(object, "ports", Value::Null);
                each(object, "endpoints", |endpoint| {
                    ensure(endpoint, "conditions");
                });
                each(object, "ports", |port| {
                    preset(port, "name", "");
                    preset(port, "protocol", "TCP");
                });
            },
            prepare: |_, object, _| {
                let Some(object) = map(object) else { return };
                // Of the version before, and not taken in this one.
                each(object, "endpoints", |endpoint| drop(endpoint.remove("deprecatedTopology")));
            },
            validate: validate::all,
            cells: |object, now| {
                let ports: Vec<String> = items(&object["ports"])
                    .iter()
                    .map(|port| match &port["port"] {
                        Value::Null => "*".to_owned(),
                        number => number.to_string(),
                    })
                    .collect();
                let addresses: Vec<String> = items(&object["endpoints"])
                    .iter()
                    .flat_map(|endpoint| items(&endpoint["addresses"]))
                    .map(|address| str_of(address).to_owned())
                    .collect();
                vec![
                    cells::name(object),
                    str_of(&object["addressType"]).into(),
                    if ports.is_empty() { cells::UNSET.into() } else { shortened(&ports) },
                    if addresses.is_empty() { cells::UNSET.into() } else { shortened(&addresses) },
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new("discovery.k8s.io", "endpointslices", "endpointslice", "EndpointSlice")
            .counted()
    }
}
