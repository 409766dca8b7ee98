//! EndpointSlice: some of the endpoints of a service's pods.

mod validate;

use apiserver::fields::{each, ensure, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::endpoints::shorten_list;

/// The kind EndpointSlice of the group `discovery.k8s.io`: namespaced, with the defaults,
/// validation and columns of kube-apiserver.
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
                // A field of version v1beta1, which this version drops.
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
                    if ports.is_empty() { cells::UNSET.into() } else { shorten_list(&ports) },
                    if addresses.is_empty() {
                        cells::UNSET.into()
                    } else {
                        shorten_list(&addresses)
                    },
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new("discovery.k8s.io", "endpointslices", "endpointslice", "EndpointSlice")
            .counted()
    }
}
