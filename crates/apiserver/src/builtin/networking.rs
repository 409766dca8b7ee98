//! Ingress, IngressClass, NetworkPolicy.

use api_meta::names;
use api_meta::status::Cause;
use serde_json::{Value, json};

use super::cells;
use super::fields::{child, each, ensure, items, map, preset, str_of};
use super::kind::{AGE, Hooks, Kind, NAME};

const GROUP: &str = "networking.k8s.io";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

pub fn ingress() -> Kind {
    Kind {
        short_names: &["ing"],
        columns: &[
            NAME,
            ("Class", "string", "", 0),
            ("Hosts", "string", "", 0),
            ("Address", "string", "", 0),
            ("Ports", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    if let Some(status) = ensure(object, "status") {
                        ensure(status, "loadBalancer");
                    }
                    ensure(object, "spec");
                }
            },
            validate: |_, object, _| validate_ingress(object),
            cells: ingress_row,
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "ingresses", "ingress", "Ingress").with_status().counted()
    }
}

fn validate_ingress(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if spec["defaultBackend"].is_null() && items(&spec["rules"]).is_empty() {
        let shown = items(&spec["rules"]);
        let shown = if shown.is_empty() { Value::Null } else { json!(shown) };
        let text = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &shown, text));
    }
    causes.extend(validate_backend("spec.defaultBackend", &spec["defaultBackend"]));
    for (index, rule) in items(&spec["rules"]).iter().enumerate() {
        causes.extend(validate_host(&format!("spec.rules[{index}].host"), str_of(&rule["host"])));
        for (at, path) in items(&rule["http"]["paths"]).iter().enumerate() {
            let field = format!("spec.rules[{index}].http.paths[{at}].pathType");
            let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
            let place = format!("spec.rules[{index}].http.paths[{at}]");
            let absolute = ["Exact", "Prefix"].contains(&str_of(&path["pathType"]));
            if absolute && !str_of(&path["path"]).starts_with('/') {
                let text = "must be an absolute path";
                causes.push(Cause::invalid(format!("{place}.path"), &path["path"], text));
            }
            causes.extend(validate_backend(&format!("{place}.backend"), &path["backend"]));
            match str_of(&path["pathType"]) {
                "" => causes.push(Cause::required(field, "pathType must be specified")),
                kind if kinds.contains(&kind) => {}
                _ => causes.push(Cause::not_supported(field, &path["pathType"], &kinds)),
            }
        }
    }
    causes
}

/// A host is a name, or a wildcard for the first part of one.
fn validate_host(field: &str, host: &str) -> Vec<Cause> {
    let problems = match host {
        "" => Vec::new(),
        host if host.contains('*') => names::wildcard_dns1123_subdomain(host),
        host => names::dns1123_subdomain(host),
    };
    problems.iter().map(|text| Cause::invalid(field, &host.into(), text)).collect()
}

fn validate_backend(field: &str, backend: &Value) -> Vec<Cause> {
    let service = &backend["service"];
    if service.is_null() {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let port = &service["port"];
    let place = format!("{field}.service");
    match str_of(&service["name"]) {
        "" => causes.push(Cause::required(format!("{place}.name"), "")),
        name => {
            let problems = names::dns1035_label(name);
            let causes_of = problems.iter();
            causes.extend(
                causes_of.map(|text| Cause::invalid(format!("{place}.name"), &name.into(), text)),
            );
        }
    }
    match (str_of(&port["name"]), port["number"].as_i64().unwrap_or_default()) {
        ("", 0) => causes.push(Cause::required(field, "port name or number is required")),
        (name, 0) => {
            let problems = names::port_name(name);
            let path = format!("{place}.port.name");
            causes.extend(
                problems.iter().map(|text| Cause::invalid(path.clone(), &name.into(), text)),
            );
        }
        ("", number) => {
            if !(1..=65535).contains(&number) {
                let path = format!("{place}.port.number");
                causes.push(Cause::invalid(path, &number.into(), PORT_RANGE));
            }
        }
        _ => {
            let text = "cannot set both port name & port number";
            causes.push(Cause::invalid(field, &"".into(), text));
        }
    }
    causes
}

fn ingress_row(object: &Value, now: i64) -> Vec<Value> {
    let spec = &object["spec"];
    let hosts: Vec<&str> = items(&spec["rules"])
        .iter()
        .map(|rule| str_of(&rule["host"]))
        .filter(|host| !host.is_empty())
        .collect();
    let hosts = match hosts.len() {
        0 => "*".to_owned(),
        1..=3 => hosts.join(","),
        count => format!("{} + {} more...", hosts[..3].join(","), count - 3),
    };
    let addresses: Vec<&str> = items(&object["status"]["loadBalancer"]["ingress"])
        .iter()
        .map(|entry| match str_of(&entry["ip"]) {
            "" => str_of(&entry["hostname"]),
            ip => ip,
        })
        .collect();
    let ports = if items(&spec["tls"]).is_empty() { "80" } else { "80, 443" };
    vec![
        cells::name(object),
        cells::or_none(str_of(&spec["ingressClassName"])),
        hosts.into(),
        addresses.join(",").into(),
        ports.into(),
        cells::age(object, now),
    ]
}

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
            validate: |_, object, _| validate_policy(object),
            cells: |object, now| {
                let selector = cells::selector(&object["spec"]["podSelector"]);
                vec![cells::name(object), selector, cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "networkpolicies", "networkpolicy", "NetworkPolicy").counted()
    }
}

fn validate_policy(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for direction in ["ingress", "egress"] {
        for (index, rule) in items(&object["spec"][direction]).iter().enumerate() {
            for (at, port) in items(&rule["ports"]).iter().enumerate() {
                let field = format!("spec.{direction}[{index}].ports[{at}].port");
                match &port["port"] {
                    Value::Number(number)
                        if !(1..=65535).contains(&number.as_i64().unwrap_or(0)) =>
                    {
                        causes.push(Cause::invalid(field, &port["port"], PORT_RANGE));
                    }
                    Value::String(name) => {
                        let problems = names::port_name(name);
                        let shown = Value::from(name.as_str());
                        causes.extend(
                            problems.iter().map(|text| Cause::invalid(field.clone(), &shown, text)),
                        );
                    }
                    _ => {}
                }
            }
        }
    }
    causes
}
