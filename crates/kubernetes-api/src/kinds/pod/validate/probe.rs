//! Probes, and the handlers of a container's lifecycle.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::{PRESENT_MIN, int, port_number};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];
const AMOUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];
const HEADER_TEXT: &str = "a valid HTTP header must consist of alphanumeric characters or '-' \
    (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// Validates probes and lifecycle handlers of the container at `path`. `grace_seconds` is the pod's
/// grace period.
pub fn all(path: &str, container: &Value, grace_seconds: i64, causes: &mut Vec<Cause>) {
    for name in ["postStart", "preStop"] {
        let given = &container["lifecycle"][name];
        if given.is_object() {
            handler(&format!("{path}.lifecycle.{name}"), given, grace_seconds, causes);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            probe(&format!("{path}.{name}"), name, &container[name], grace_seconds, causes);
        }
    }
}

fn probe(path: &str, kind: &str, probe: &Value, grace_seconds: i64, causes: &mut Vec<Cause>) {
    handler(path, probe, grace_seconds, causes);
    for name in AMOUNTS {
        if int(&probe[name]) < 0 {
            causes.push(Cause::invalid(format!("{path}.{name}"), &probe[name], PRESENT_MIN));
        }
    }
    let of_readiness = kind == "readinessProbe";
    let grace = &probe["terminationGracePeriodSeconds"];
    if let Some(seconds) = grace.as_i64() {
        let refused = match (of_readiness, seconds) {
            (true, _) => Some("must not be set for readinessProbes"),
            (false, ..=0) => Some("must be greater than 0"),
            _ => None,
        };
        let field = format!("{path}.terminationGracePeriodSeconds");
        causes.extend(refused.map(|text| Cause::invalid(field, grace, text)));
    }
    let successes = &probe["successThreshold"];
    if !of_readiness && !matches!(int(successes), 0 | 1) {
        causes.push(Cause::invalid(format!("{path}.successThreshold"), successes, "must be 1"));
    }
}

fn handler(path: &str, handler: &Value, grace_seconds: i64, causes: &mut Vec<Cause>) {
    let mut given = HANDLERS.into_iter().filter(|name| handler[name].is_object());
    let Some(first) = given.next() else {
        causes.push(Cause::required(path, "must specify a handler type"));
        return;
    };
    action(&format!("{path}.{first}"), first, &handler[first], grace_seconds, causes);
    for more in given {
        let text = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(format!("{path}.{more}"), text));
    }
}

fn action(path: &str, kind: &str, action: &Value, grace_seconds: i64, causes: &mut Vec<Cause>) {
    match kind {
        "exec" => {
            if items(&action["command"]).is_empty() {
                causes.push(Cause::required(format!("{path}.command"), ""));
            }
        }
        "httpGet" => http_get(path, action, causes),
        "tcpSocket" => port(&format!("{path}.port"), &action["port"], causes),
        "grpc" => port_number(&format!("{path}.port"), int(&action["port"]), causes),
        _ => {
            let seconds = int(&action["seconds"]);
            if !(0..=grace_seconds).contains(&seconds) {
                let text = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds \
                     ({grace_seconds})"
                );
                causes.push(Cause::invalid(path, &seconds.into(), &text));
            }
        }
    }
}

fn http_get(path: &str, get: &Value, causes: &mut Vec<Cause>) {
    // An absent or empty path has a default.
    port(&format!("{path}.port"), &get["port"], causes);
    super::one_of(path, get, "scheme", &SCHEMES, causes);
    for header in items(&get["httpHeaders"]) {
        let name = str_of(&header["name"]);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(fits) {
            let field = format!("{path}.httpHeaders");
            causes.push(Cause::invalid(field, &name.into(), HEADER_TEXT));
        }
    }
}

/// A number, or the name of a port of the container.
fn port(path: &str, port: &Value, causes: &mut Vec<Cause>) {
    match port {
        Value::String(_) => super::name(path, port, names::port_name, causes),
        number => port_number(path, int(number), causes),
    }
}
