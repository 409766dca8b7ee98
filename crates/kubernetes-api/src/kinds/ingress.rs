//! Ingress.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{ensure, items, map, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::Value;

use super::networking::{GROUP, port_problem};
use super::{ip, old_annotations, status};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const PATH_ABSOLUTE: &str = "must be an absolute path";
/// Parts that would make a path match another one than it appears to.
const PATH_PARTS_REFUSED: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS_REFUSED: [&str; 2] = ["/..", "/."];

/// The kind Ingress of the group `networking.k8s.io`: namespaced, with the defaults, validation and
/// columns of kube-apiserver.
pub fn kind() -> Kind {
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
            validate: |_, object, old| validate(object, old),
            validate_status: |object, old| {
                let addresses =
                    |object: &Value| object["status"]["loadBalancer"]["ingress"].clone();
                let field = "status.loadBalancer.ingress";
                status::balancer(field, &addresses(object), &addresses(old), |_, _| None)
            },
            warnings: old_annotations::of_ingress,
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "ingresses", "ingress", "Ingress").with_status().counted()
    }
}

/// Returns all causes to refuse an ingress. `old` is the object before an update: values that older
/// rules accepted may stay.
fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let before = old.map_or(&Value::Null, |old| &old["spec"]);
    let keeps_wildcards = items(&before["rules"])
        .iter()
        .any(|rule| is_wildcard(rule) && !validate_paths("", rule).is_empty());
    let keeps_secrets =
        items(&before["tls"]).iter().any(|tls| !secret_name("", &tls["secretName"]).is_empty());
    let mut causes = Vec::new();
    if spec["defaultBackend"].is_null() && items(&spec["rules"]).is_empty() {
        let text = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &spec["rules"], text));
    }
    if !spec["defaultBackend"].is_null() {
        causes.extend(validate_backend("spec.defaultBackend", &spec["defaultBackend"]));
    }
    for (index, rule) in items(&spec["rules"]).iter().enumerate() {
        let place = format!("spec.rules[{index}]");
        causes.extend(validate_host(&format!("{place}.host"), str_of(&rule["host"]), true));
        if !(keeps_wildcards && is_wildcard(rule)) {
            causes.extend(validate_paths(&place, rule));
        }
    }
    for (index, tls) in items(&spec["tls"]).iter().enumerate() {
        let place = format!("spec.tls[{index}]");
        for (at, host) in items(&tls["hosts"]).iter().enumerate() {
            causes.extend(validate_host(&format!("{place}.hosts[{at}]"), str_of(host), false));
        }
        if !keeps_secrets {
            causes.extend(secret_name(&format!("{place}.secretName"), &tls["secretName"]));
        }
    }
    causes.extend(validate_subdomain("spec.ingressClassName", &spec["ingressClassName"]));
    if old.is_none() {
        causes.extend(conflicting_class(object));
    }
    causes
}

fn is_wildcard(rule: &Value) -> bool {
    str_of(&rule["host"]).contains('*')
}

fn validate_paths(place: &str, rule: &Value) -> Vec<Cause> {
    if rule["http"].is_null() {
        return Vec::new();
    }
    let place = format!("{place}.http.paths");
    let paths = items(&rule["http"]["paths"]);
    let missing = paths.is_empty().then(|| Cause::required(place.clone(), ""));
    let each = paths.iter().enumerate();
    let of_paths = each.flat_map(|(at, path)| validate_path(&format!("{place}[{at}]"), path));
    missing.into_iter().chain(of_paths).collect()
}

/// The annotation that named the class before there was a field must agree with the field.
fn conflicting_class(object: &Value) -> Option<Cause> {
    let annotation = &object["metadata"]["annotations"][CLASS_ANNOTATION];
    let class = &object["spec"]["ingressClassName"];
    let differs = annotation.is_string() && class.is_string() && annotation != class;
    let why = "must match `ingressClassName` when both are specified";
    differs.then(|| Cause::invalid(format!("annotations.{CLASS_ANNOTATION}"), annotation, why))
}

/// An empty name counts as absent.
fn secret_name(field: &str, name: &Value) -> Vec<Cause> {
    if str_of(name).is_empty() { Vec::new() } else { validate_subdomain(field, name) }
}

fn invalid(field: &str, value: &str, problems: &[String]) -> Vec<Cause> {
    problems.iter().map(|text| Cause::invalid(field, &value.into(), text)).collect()
}

/// An optional name.
fn validate_subdomain(field: &str, name: &Value) -> Vec<Cause> {
    match name.as_str() {
        None => Vec::new(),
        Some(name) => invalid(field, name, &names::dns1123_subdomain(name)),
    }
}

/// A host is a name, or a name with a wildcard as its first part.
fn validate_host(field: &str, host: &str, of_rule: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if of_rule && ip::read(host).is_some() {
        causes.push(Cause::invalid(field, &host.into(), "must be a DNS name, not an IP address"));
    }
    let problems = match host {
        "" if of_rule => Vec::new(),
        host if host.contains('*') => names::wildcard_dns1123_subdomain(host),
        host => names::dns1123_subdomain(host),
    };
    causes.extend(invalid(field, host, &problems));
    causes
}

fn validate_path(place: &str, path: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = str_of(&path["path"]);
    let mut refuse =
        |why: &str| causes.push(Cause::invalid(format!("{place}.path"), &text.into(), why));
    let field = format!("{place}.pathType");
    match str_of(&path["pathType"]) {
        "" => return vec![Cause::required(field, "pathType must be specified")],
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                refuse(PATH_ABSOLUTE);
            }
            for part in PATH_PARTS_REFUSED.into_iter().filter(|part| text.contains(part)) {
                refuse(&format!("must not contain '{part}'"));
            }
            for end in PATH_ENDS_REFUSED.into_iter().filter(|end| text.ends_with(end)) {
                refuse(&format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                refuse(PATH_ABSOLUTE);
            }
        }
        _ => causes.push(Cause::not_supported(field, &path["pathType"], &PATH_TYPES)),
    }
    causes.extend(validate_backend(&format!("{place}.backend"), &path["backend"]));
    causes
}

fn validate_backend(field: &str, backend: &Value) -> Vec<Cause> {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    let refused = |text: &str| vec![Cause::invalid(field, &"".into(), text)];
    match (service.is_null(), resource.is_null()) {
        (false, false) => refused("cannot set both resource and service backends"),
        (true, true) => refused("resource or service backend is required"),
        (true, false) => validate_resource(&format!("{field}.resource"), resource),
        (false, true) => validate_service(field, service),
    }
}

fn validate_resource(field: &str, resource: &Value) -> Vec<Cause> {
    let mut causes = validate_subdomain(&format!("{field}.apiGroup"), &resource["apiGroup"]);
    for part in ["kind", "name"] {
        let place = format!("{field}.{part}");
        match str_of(&resource[part]) {
            "" => causes.push(Cause::required(place, "")),
            text => causes.extend(invalid(&place, text, &names::path_segment(text, false))),
        }
    }
    causes
}

fn validate_service(field: &str, service: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let port = &service["port"];
    let place = format!("{field}.service");
    let of_name = format!("{place}.name");
    match str_of(&service["name"]) {
        "" => causes.push(Cause::required(of_name, "")),
        name => causes.extend(invalid(&of_name, name, &names::dns1123_label(name))),
    }
    match (str_of(&port["name"]), port["number"].as_i64().unwrap_or_default()) {
        ("", 0) => causes.push(Cause::required(field, "port name or number is required")),
        (name, 0) => {
            causes.extend(invalid(&format!("{place}.port.name"), name, &names::port_name(name)));
        }
        ("", _) => causes.extend(port_problem(&format!("{place}.port.number"), &port["number"])),
        _ => {
            let text = "cannot set both port name & port number";
            causes.push(Cause::invalid(field, &"".into(), text));
        }
    }
    causes
}

fn row(object: &Value, now: i64) -> Vec<Value> {
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
