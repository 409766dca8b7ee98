//! Structural rules of a pod spec, in pods and in templates.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use serde_json::Value;

use crate::builtin::fields::{items, str_of};

const VALUE_SOURCES: &[&str] =
    &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];

/// All problems of the spec at `field`.
pub fn spec(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let volumes = volumes(&format!("{field}.volumes"), &spec["volumes"], &mut causes);
    let mut seen = BTreeSet::new();
    if items(&spec["containers"]).is_empty() {
        causes.push(Cause::required(format!("{field}.containers"), ""));
    }
    for kind in ["containers", "initContainers"] {
        for (index, value) in items(&spec[kind]).iter().enumerate() {
            let path = format!("{field}.{kind}[{index}]");
            container(&path, value, &volumes, &mut seen, &mut causes);
        }
    }
    one_of(field, spec, "restartPolicy", &["Always", "OnFailure", "Never"], &mut causes);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(field, spec, "dnsPolicy", &policies, &mut causes);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let path = format!("{field}.activeDeadlineSeconds");
        let text = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(path, &seconds.into(), text));
    }
    let checked = [
        ("serviceAccountName", names::dns1123_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::dns1123_subdomain),
        ("hostname", names::dns1123_label),
        ("subdomain", names::dns1123_label),
    ];
    for (name, check) in checked {
        let value = str_of(&spec[name]);
        if !value.is_empty() {
            for problem in check(value) {
                causes.push(Cause::invalid(format!("{field}.{name}"), &spec[name], &problem));
            }
        }
    }
    let selector = format!("{field}.nodeSelector");
    causes.extend(api_meta::labels::validate_labels(&selector, &spec["nodeSelector"]));
    tolerations(&format!("{field}.tolerations"), &spec["tolerations"], &mut causes);
    for (index, alias) in items(&spec["hostAliases"]).iter().enumerate() {
        if str_of(&alias["ip"]).parse::<std::net::IpAddr>().is_err() {
            let text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            let path = format!("{field}.hostAliases[{index}].ip");
            causes.push(Cause::invalid(path, &alias["ip"], text));
        }
    }
    causes
}

fn one_of(field: &str, object: &Value, name: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    let value = str_of(&object[name]);
    if !value.is_empty() && !allowed.contains(&value) {
        causes.push(Cause::not_supported(format!("{field}.{name}"), &object[name], allowed));
    }
}

/// A name that must be there, be a label, and be new.
fn label_name(path: &str, value: &Value, seen: &mut BTreeSet<String>, causes: &mut Vec<Cause>) {
    let name = str_of(value);
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    for problem in names::dns1123_label(name) {
        causes.push(Cause::invalid(path, value, &problem));
    }
    if !seen.insert(name.to_owned()) {
        causes.push(Cause::duplicate(path, value));
    }
}

/// Checks volumes and returns their names.
fn volumes(field: &str, list: &Value, causes: &mut Vec<Cause>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (index, volume) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        label_name(&format!("{path}.name"), &volume["name"], &mut seen, causes);
        let kinds: Vec<&String> = volume
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys())
            .filter(|key| *key != "name")
            .collect();
        for extra in kinds.iter().skip(1) {
            let text = "may not specify more than 1 volume type";
            causes.push(Cause::forbidden(format!("{path}.{extra}"), text));
        }
        // Upstream stops at the first kind.
        if kinds.len() > 1 {
            continue;
        }
        let required = [
            ("secret", "secretName"),
            ("hostPath", "path"),
            ("persistentVolumeClaim", "claimName"),
            ("csi", "driver"),
        ];
        for (kind, name) in required {
            if volume[kind].is_object() && str_of(&volume[kind][name]).is_empty() {
                causes.push(Cause::required(format!("{path}.{kind}.{name}"), ""));
            }
        }
    }
    seen
}

/// Name and image of a container.
pub fn container_basics(
    path: &str,
    container: &Value,
    seen: &mut BTreeSet<String>,
    causes: &mut Vec<Cause>,
) {
    label_name(&format!("{path}.name"), &container["name"], seen, causes);
    let image = str_of(&container["image"]);
    if image.is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    } else if image != image.trim() {
        let text = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{path}.image"), &container["image"], text));
    }
}

fn container(
    path: &str,
    container: &Value,
    volumes: &BTreeSet<String>,
    seen: &mut BTreeSet<String>,
    causes: &mut Vec<Cause>,
) {
    container_basics(path, container, seen, causes);
    ports(&format!("{path}.ports"), &container["ports"], causes);
    environment(&format!("{path}.env"), &container["env"], causes);
    mounts(&format!("{path}.volumeMounts"), &container["volumeMounts"], volumes, causes);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        if probe.is_object() && !HANDLERS.iter().any(|handler| probe[handler].is_object()) {
            let text = "must specify a handler type";
            causes.push(Cause::required(format!("{path}.{name}"), text));
        }
    }
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(path, container, "terminationMessagePolicy", &policies, causes);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(path, container, "imagePullPolicy", &policies, causes);
    resources(&format!("{path}.resources"), &container["resources"], causes);
}

fn ports(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, port) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        let name = str_of(&port["name"]);
        if !name.is_empty() {
            for problem in names::port_name(name) {
                causes.push(Cause::invalid(format!("{path}.name"), &port["name"], &problem));
            }
            if !seen.insert(name) {
                causes.push(Cause::duplicate(format!("{path}.name"), &port["name"]));
            }
        }
        match port["containerPort"].as_i64() {
            None | Some(0) => causes.push(Cause::required(format!("{path}.containerPort"), "")),
            Some(1..=65535) => {}
            Some(_) => causes.push(Cause::invalid(
                format!("{path}.containerPort"),
                &port["containerPort"],
                "must be between 1 and 65535, inclusive",
            )),
        }
        one_of(&path, port, "protocol", &["SCTP", "TCP", "UDP"], causes);
    }
}

fn environment(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    for (index, variable) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        let name = str_of(&variable["name"]);
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let text = "a valid environment variable name must consist only of printable ASCII \
                        characters other than '='";
            causes.push(Cause::invalid(format!("{path}.name"), &variable["name"], text));
        }
        let source = &variable["valueFrom"];
        if !source.is_object() {
            continue;
        }
        let given = VALUE_SOURCES.iter().filter(|kind| source[**kind].is_object()).count();
        let path = format!("{path}.valueFrom");
        if given == 0 {
            let text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                        `secretKeyRef` or `fileKeyRef`";
            causes.push(Cause::invalid(path, &"".into(), text));
        } else if !str_of(&variable["value"]).is_empty() {
            let text = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(path, &"".into(), text));
        } else {
            let reference = &source["fieldRef"]["fieldPath"];
            if !reference.is_null() && !is_field_path(str_of(reference)) {
                let text = format!(
                    "error converting fieldPath: field label not supported: {}",
                    str_of(reference)
                );
                let path = format!("{path}.fieldRef.fieldPath");
                causes.push(Cause::invalid(path, reference, &text));
            }
            for kind in ["configMapKeyRef", "secretKeyRef"] {
                key_reference(&format!("{path}.{kind}"), &source[kind], causes);
            }
        }
    }
}

/// Fields of the pod that variables may take their value from.
fn is_field_path(path: &str) -> bool {
    let plain = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    plain.contains(&path)
        || path.starts_with("metadata.labels['")
        || path.starts_with("metadata.annotations['")
}

fn key_reference(path: &str, reference: &Value, causes: &mut Vec<Cause>) {
    if !reference.is_object() {
        return;
    }
    let name = Value::from(str_of(&reference["name"]));
    for problem in names::dns1123_subdomain(str_of(&name)) {
        causes.push(Cause::invalid(format!("{path}.name"), &name, &problem));
    }
    if str_of(&reference["key"]).is_empty() {
        causes.push(Cause::required(format!("{path}.key"), ""));
    }
}

fn mounts(field: &str, list: &Value, volumes: &BTreeSet<String>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, mount) in items(list).iter().enumerate() {
        let path = format!("{field}[{index}]");
        let name = str_of(&mount["name"]);
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            let message = format!("Not found: {}", mount["name"]);
            causes.push(Cause::new("FieldValueNotFound", format!("{path}.name"), message));
        }
        let at = str_of(&mount["mountPath"]);
        if at.is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        } else if !seen.insert(at) {
            let value = &mount["mountPath"];
            causes.push(Cause::invalid(format!("{path}.mountPath"), value, "must be unique"));
        }
    }
}

fn resources(field: &str, resources: &Value, causes: &mut Vec<Cause>) {
    let quantity = |value: &Value| str_of(value).parse::<Quantity>().ok();
    for kind in ["limits", "requests"] {
        for (name, value) in resources[kind].as_object().into_iter().flatten() {
            let Some(amount) = quantity(value) else { continue };
            if amount.is_negative() {
                let path = format!("{field}.{kind}[{name}]");
                let text = "must be greater than or equal to 0";
                causes.push(Cause::invalid(path, value, text));
            }
            let limit = &resources["limits"][name];
            if kind == "requests" && quantity(limit).is_some_and(|limit| amount > limit) {
                let text =
                    format!("must be less than or equal to {name} limit of {}", str_of(limit));
                causes.push(Cause::invalid(format!("{field}.requests"), value, &text));
            }
        }
    }
}

fn tolerations(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    for (index, toleration) in items(list).iter().enumerate() {
        let operator = str_of(&toleration["operator"]);
        if str_of(&toleration["key"]).is_empty() && operator != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all \
                        values and all keys\"";
            let path = format!("{field}[{index}].operator");
            causes.push(Cause::invalid(path, &operator.into(), text));
        }
    }
}
