//! IngressClass, NetworkPolicy.

mod class;
mod policy;

use api_meta::status::Cause;
use apiserver::fields::{child, each, ensure, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::{Value, json};

pub const GROUP: &str = "networking.k8s.io";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// A cause for a port number that is out of range. An absent number counts as 0.
pub fn port_problem(field: &str, number: &Value) -> Option<Cause> {
    let number = number.as_i64().unwrap_or_default();
    (!(1..=65535).contains(&number)).then(|| Cause::invalid(field, &number.into(), PORT_RANGE))
}

/// The kind IngressClass of the group `networking.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn ingress_class() -> Kind {
    Kind {
        namespaced: false,
        columns: &[NAME, ("Controller", "string", "", 0), ("Parameters", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                if let Some(parameters) = spec.and_then(|spec| child(spec, "parameters")) {
                    preset(parameters, "scope", "Cluster");
                }
            },
            validate: |_, object, old| {
                class::validate(&object["spec"], old.map(|old| &old["spec"]))
            },
            cells: |object, now| {
                let parameters = &object["spec"]["parameters"];
                let shown = match (str_of(&parameters["apiGroup"]), str_of(&parameters["kind"])) {
                    (_, "") => cells::NONE.to_owned(),
                    ("", kind) => format!("{kind}/{}", str_of(&parameters["name"])),
                    (group, kind) => format!("{kind}.{group}/{}", str_of(&parameters["name"])),
                };
                let controller = str_of(&object["spec"]["controller"]);
                vec![cells::name(object), controller.into(), shown.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "ingressclasses", "ingressclass", "IngressClass").counted()
    }
}

/// The kind NetworkPolicy of the group `networking.k8s.io`: namespaced, with the defaults,
/// validation and columns of kube-apiserver.
pub fn network_policy() -> Kind {
    Kind {
        short_names: &["netpol"],
        columns: &[NAME, ("Pod-Selector", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                let Some(spec) = spec else { return };
                ensure(spec, "podSelector");
                let egress = !items(spec.get("egress").unwrap_or(&Value::Null)).is_empty();
                let kinds = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
                preset(spec, "policyTypes", kinds);
                for direction in ["ingress", "egress"] {
                    each(spec, direction, |rule| {
                        each(rule, "ports", |port| preset(port, "protocol", "TCP"));
                    });
                }
            },
            validate: |_, object, old| {
                policy::validate(&object["spec"], old.map(|old| &old["spec"]))
            },
            cells: |object, now| {
                let selector = cells::selector(&object["spec"]["podSelector"]);
                vec![cells::name(object), selector, cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "networkpolicies", "networkpolicy", "NetworkPolicy").counted()
    }
}
