//! Ports of containers. The view also shows how each port is reached from outside, which the
//! objects store in an annotation of the pod template (a list for each container, in the order of
//! the view).

use rest_view::ApiError;
use serde_json::{Map, Value, json};

use crate::workload::path::{object, read_keys};

/// Annotation of pod templates: the ports as the view has them.
pub const ANNOTATION: &str = "field.cattle.io/ports";
/// Fields that only the annotation has.
const NOTED: [&str; 3] = ["kind", "sourcePort", "dnsName"];
const HOST_PORT: &str = "HostPort";
const CLUSTER_IP: &str = "ClusterIP";
/// The digit at the end of a made-up name says how the port is reached.
const DIGITS: [(&str, char); 4] =
    [(HOST_PORT, '0'), ("NodePort", '1'), (CLUSTER_IP, '2'), ("LoadBalancer", '3')];

/// How a port is reached as far as the container says it.
pub fn get(stored: &Value, view: &mut Map<String, Value>) {
    let host_port = read_keys(stored, &["hostPort"]).filter(|port| **port != 0).cloned();
    let kind = if host_port.is_some() { HOST_PORT } else { CLUSTER_IP };
    view.insert("kind".to_owned(), kind.into());
    view.extend(host_port.map(|port| ("sourcePort".to_owned(), port)));
}

/// A port of the host is the source of a port of that kind.
pub fn put(view: &Map<String, Value>, stored: &mut Value) {
    let source = view.get("sourcePort").filter(|port| port.as_i64().is_some_and(|port| port > 0));
    let map = object(stored);
    match (view.get("kind").and_then(Value::as_str), source) {
        (Some(HOST_PORT), Some(port)) => drop(map.insert("hostPort".to_owned(), port.clone())),
        (Some(HOST_PORT) | None, None) => {}
        _ => drop(map.remove("hostPort")),
    }
}

/// Merges the annotation into the ports of containers as the view has them.
pub fn annotate(containers: &mut Value, annotation: Option<&Value>) {
    let Some(noted) = annotation.and_then(Value::as_str) else { return };
    let Ok(Value::Array(noted)) = serde_json::from_str::<Value>(noted) else { return };
    let containers = containers.as_array_mut().into_iter().flatten();
    for (container, noted) in containers.zip(&noted) {
        let ports = container.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = port.get("name").cloned();
            let all = noted.as_array().into_iter().flatten();
            let Some(found) = all.into_iter().find(|n| n.get("name") == name.as_ref()) else {
                continue;
            };
            for key in NOTED {
                if let Some(value) = found.get(key).filter(|value| !value.is_null()) {
                    port.insert(key.to_owned(), value.clone());
                }
            }
        }
    }
}

/// Completes ports that are to be stored, and returns the annotation for them.
///
/// `before`: the containers as the view showed them. Ports that did not change are left alone; when
/// none changed, and the containers are the same, there is no new annotation.
///
/// # Errors
/// Two ports of one container have the same name.
pub fn settle(
    workload: &str,
    before: &Value,
    containers: &mut Value,
) -> Result<Option<String>, ApiError> {
    let names = |list: &Value| -> Vec<Value> {
        let list = list.as_array().into_iter().flatten();
        list.map(|c| c.get("name").cloned().unwrap_or_default()).collect()
    };
    let has_ports = |list: &Value| list.as_array().into_iter().flatten().any(|c| !is_empty(c));
    let mut changed = names(before) != names(containers) && has_ports(before);
    let mut all = Vec::new();
    for (at, container) in containers.as_array_mut().into_iter().flatten().enumerate() {
        let old = partner(before, at, container).and_then(|(_, old)| old.get("ports"));
        let old = old.and_then(Value::as_array);
        let ports = container.get_mut("ports").and_then(Value::as_array_mut);
        let Some(ports) = ports else {
            changed |= old.is_some_and(|old| !old.is_empty());
            all.push(json!([]));
            continue;
        };
        if old.map_or(&[][..], Vec::as_slice) != ports.as_slice() {
            changed = true;
            complete(workload, ports)?;
        }
        all.push(Value::Array(ports.clone()));
    }
    Ok(changed.then(|| Value::Array(all).to_string()))
}

/// The container in `list` that `container`, at position `at` of its own list, is a version of.
pub fn partner<'l>(list: &'l Value, at: usize, container: &Value) -> Option<(usize, &'l Value)> {
    let list = list.as_array()?;
    let is_same = |old: &Value| old.get("name") == container.get("name");
    let here = list.get(at).filter(|old| is_same(old)).map(|old| (at, old));
    here.or_else(|| list.iter().enumerate().find(|(_, old)| is_same(old)))
}

fn is_empty(container: &Value) -> bool {
    container.get("ports").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Fills in how ports are reached, and what they are called.
fn complete(workload: &str, ports: &mut [Value]) -> Result<(), ApiError> {
    let mut used = Vec::new();
    for port in ports.iter_mut().filter_map(Value::as_object_mut) {
        let text = |port: &Map<String, Value>, key: &str| {
            port.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let number = |port: &Map<String, Value>, key: &str| {
            port.get(key).and_then(Value::as_i64).unwrap_or_default()
        };
        if text(port, "kind").is_empty() {
            let kind = if number(port, "hostPort") > 0 { HOST_PORT } else { CLUSTER_IP };
            port.insert("kind".to_owned(), kind.into());
        }
        let kind = text(port, "kind");
        if kind == HOST_PORT && number(port, "sourcePort") == 0 && number(port, "hostPort") > 0 {
            port.insert("sourcePort".to_owned(), number(port, "hostPort").into());
        }
        let protocol = match text(port, "protocol") {
            empty if empty.is_empty() => "tcp".to_owned(),
            protocol => protocol.to_lowercase(),
        };
        let start = format!("{}{protocol}", number(port, "containerPort"));
        let mut name = text(port, "name");
        if name.is_empty() || name.starts_with(&start) {
            let digit = DIGITS.iter().find(|(known, _)| *known == kind).map_or('0', |(_, d)| *d);
            name = format!("{start}{}{digit}", number(port, "sourcePort"));
        }
        if used.contains(&name) {
            let text = format!(
                "two ports are called \"{name}\": give ports of one container different names"
            );
            return Err(ApiError::invalid_field("InvalidOption", "ports", text));
        }
        port.insert("name".to_owned(), name.as_str().into());
        used.push(name);
        let dns = text(port, "dnsName");
        let is_made_up =
            dns.is_empty() || dns == workload || dns.starts_with(&format!("{workload}-"));
        if is_made_up && !workload.is_empty() {
            let dns = match kind.as_str() {
                CLUSTER_IP => workload.to_lowercase(),
                kind => format!("{workload}-{kind}").to_lowercase(),
            };
            port.insert("dnsName".to_owned(), dns.into());
        }
    }
    Ok(())
}
