//! Ingresses. The view names services and certificates by their ids, and nests the paths in their
//! rule.

use rest_view::{ApiError, Mapper, Presentation, Resource};
use serde_json::{Map, Value, json};

pub const TYPE: &str = "ingress";
/// Kubernetes requires it for each path, and older clients do not send it.
const PATH_TYPE: &str = "ImplementationSpecific";

/// Maps between the view's rules and those of Kubernetes.
pub struct IngressRules;

impl Mapper for IngressRules {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let namespace = stored["metadata"]["namespace"].as_str().unwrap_or_default();
        let spec = &stored["spec"];
        let backend = &spec["defaultBackend"];
        if backend.is_object() {
            fields.insert("defaultBackend".to_owned(), shown_backend(namespace, backend));
        }
        if let Some(rules) = spec["rules"].as_array() {
            let rules = rules.iter().map(|rule| shown_rule(namespace, rule)).collect();
            fields.insert("rules".to_owned(), Value::Array(rules));
        }
        if let Some(tls) = spec["tls"].as_array() {
            let shown = tls.iter().map(|entry| {
                let mut out = json!({"certificateId": id_of(namespace, &entry["secretName"])});
                copy(entry, &mut out, &["hosts"]);
                out
            });
            fields.insert("tls".to_owned(), shown.collect());
        }
    }

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let default = input.get("defaultBackend").or_else(|| input.get("backend"));
        set(stored, "defaultBackend", default, stored_backend);
        set(stored, "rules", input.get("rules"), |rules| each(rules, stored_rule));
        set(stored, "tls", input.get("tls"), |tls| {
            each(tls, |entry| {
                let mut out = json!({});
                if let Some(name) = name_of(&entry["certificateId"]) {
                    out["secretName"] = name.into();
                }
                copy(entry, &mut out, &["hosts"]);
                out
            })
        });
    }
}

fn shown_rule(namespace: &str, rule: &Value) -> Value {
    let mut out = json!({});
    copy(rule, &mut out, &["host"]);
    let paths = rule["http"]["paths"].as_array().into_iter().flatten().map(|path| {
        let mut out = shown_backend(namespace, &path["backend"]);
        copy(path, &mut out, &["path", "pathType"]);
        out
    });
    out["paths"] = paths.collect();
    out
}

fn shown_backend(namespace: &str, backend: &Value) -> Value {
    let mut out = json!({"serviceId": Value::Null});
    let service = &backend["service"];
    if service.is_object() {
        out["serviceId"] = id_of(namespace, &service["name"]);
        let port = &service["port"];
        let port = if port["number"].is_number() { &port["number"] } else { &port["name"] };
        out["targetPort"] = port.clone();
    }
    copy(backend, &mut out, &["resource"]);
    out
}

fn stored_rule(rule: &Value) -> Value {
    let mut out = json!({});
    copy(rule, &mut out, &["host"]);
    let paths = each(&rule["paths"], |path| {
        let mut out = json!({"backend": stored_backend(path), "pathType": PATH_TYPE});
        copy(path, &mut out, &["path", "pathType"]);
        out
    });
    if paths.as_array().is_some_and(|paths| !paths.is_empty()) {
        out["http"] = json!({ "paths": paths });
    }
    out
}

fn stored_backend(backend: &Value) -> Value {
    if let Some(name) = name_of(&backend["serviceId"]) {
        let port = match &backend["targetPort"] {
            Value::String(name) => json!({ "name": name }),
            number => json!({ "number": number }),
        };
        return json!({"service": {"name": name, "port": port}});
    }
    let mut out = json!({});
    copy(backend, &mut out, &["service", "resource"]);
    out
}

fn id_of(namespace: &str, name: &Value) -> Value {
    match name.as_str() {
        Some(name) if !name.is_empty() => format!("{namespace}:{name}").into(),
        _ => Value::Null,
    }
}

fn name_of(id: &Value) -> Option<&str> {
    let id = id.as_str().filter(|id| !id.is_empty())?;
    Some(id.rsplit(':').next().unwrap_or(id))
}

fn each(list: &Value, change: impl Fn(&Value) -> Value) -> Value {
    list.as_array().into_iter().flatten().map(change).collect()
}

fn copy(from: &Value, to: &mut Value, names: &[&str]) {
    for name in names {
        if !from[name].is_null() {
            to[name] = from[name].clone();
        }
    }
}

/// Absent stays as it is, null removes.
fn set(stored: &mut Value, name: &str, sent: Option<&Value>, change: impl Fn(&Value) -> Value) {
    match sent {
        None => {}
        Some(Value::Null) => {
            if let Some(spec) = stored["spec"].as_object_mut() {
                spec.remove(name);
            }
        }
        Some(sent) => stored["spec"][name] = change(sent),
    }
}

/// Services and certificates must be in the namespace of the ingress. Workloads as targets would
/// need Services that nothing creates, and are refused.
///
/// # Errors
/// 422, naming the field.
pub fn check(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let namespace = match stored {
        Some(stored) => &stored["metadata"]["namespace"],
        None => input.get("namespaceId").unwrap_or(&Value::Null),
    };
    let namespace = namespace.as_str().unwrap_or_default();
    let rules = input.get("rules").and_then(Value::as_array).into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["paths"].as_array().into_iter().flatten());
    let default = ["defaultBackend", "backend"].into_iter().filter_map(|name| input.get(name));
    let mut tls = input.get("tls").and_then(Value::as_array).into_iter().flatten();
    for backend in paths.chain(default) {
        if backend["workloadIds"].as_array().is_some_and(|ids| !ids.is_empty()) {
            let text = "workloads as targets are not offered; give the serviceId of their Service";
            return Err(ApiError::invalid_field("InvalidOption", "workloadIds", text));
        }
        check_home("serviceId", &backend["serviceId"], namespace)?;
    }
    tls.try_for_each(|entry| check_home("certificateId", &entry["certificateId"], namespace))
}

fn check_home(field: &str, id: &Value, namespace: &str) -> Result<(), ApiError> {
    match id.as_str().and_then(|id| id.rsplit_once(':')) {
        Some((home, _)) if home != namespace => {
            let text = format!("\"{home}\" is not the namespace of the ingress, \"{namespace}\"");
            Err(ApiError::invalid_field("InvalidReference", field, text))
        }
        _ => Ok(()),
    }
}

/// An ingress is shown as initializing until it has an address.
pub fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let addresses = stored["status"]["loadBalancer"]["ingress"].as_array();
    let without = addresses.is_none_or(Vec::is_empty);
    if without && resource.fields.get("state").is_some_and(|state| state == "active") {
        resource.fields.insert("state".to_owned(), "initializing".into());
        resource.fields.insert("transitioning".to_owned(), "yes".into());
    }
}
