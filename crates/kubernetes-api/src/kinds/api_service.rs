//! APIService: which server has a version of a group, this one or an aggregated one behind a
//! Service. [`apiserver::aggregation`] reconciles those of this server and checks the others.

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use api_meta::time;
use apiserver::aggregation::{AVAILABLE, GROUP, LOCAL, LOCAL_MESSAGE, PLURAL, condition};
use apiserver::fields::{child, items, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

/// Upper bounds of the two priorities; the messages state them like upstream.
const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1_000;
const HTTPS_PORT: i64 = 443;

/// The kind APIService, with the rules of kube-apiserver.
pub fn kind() -> Kind {
    let mut kind = Kind {
        namespaced: false,
        categories: &["api-extensions"],
        name_rule: names::NameRule::PathSegment,
        prefix: "/registry/apiregistration.k8s.io/apiservices/",
        columns: &[NAME, ("Service", "string", "", 0), ("Available", "string", "", 0), AGE],
        // `prepare` replaces the status that a client sends.
        keeps_status: true,
        hooks: Hooks { default, prepare, validate, cells: row, ..Hooks::default() },
        ..Kind::new(GROUP, PLURAL, "apiservice", "APIService").with_status()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn default(object: &mut Value) {
    let spec = map(object).and_then(|object| child(object, "spec"));
    if let Some(service) = spec.and_then(|spec| child(spec, "service")) {
        preset(service, "port", HTTPS_PORT);
    }
}

/// A version of this server is available from the start. The availability of aggregated ones is
/// checked later.
fn prepare(write: &Write<'_>, object: &mut Value, _old: Option<&Value>) {
    if write.operation != Operation::Create {
        return;
    }
    object["status"] = json!({});
    if object["spec"]["service"].is_null() {
        let now = time::format_seconds(jiff::Timestamp::now().as_second());
        let local = condition(&Value::Null, "True", LOCAL, LOCAL_MESSAGE, &now);
        object["status"]["conditions"] = json!([local]);
    }
}

fn validate(_write: &Write<'_>, object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    let (group, version) = (str_of(&spec["group"]), str_of(&spec["version"]));
    let expected = format!("{version}.{group}");
    if object.name() != expected && !object.name().is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        causes.push(Cause::invalid("metadata.name", &object.name().into(), &detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        causes.push(Cause::required("spec.group", detail));
    }
    if !group.is_empty() {
        refuse(&mut causes, "spec.group", &group.into(), names::dns1123_subdomain(group));
    }
    refuse(&mut causes, "spec.version", &version.into(), names::dns1035_label(version));
    for (field, max) in
        [("groupPriorityMinimum", GROUP_PRIORITY_MAX), ("versionPriority", VERSION_PRIORITY_MAX)]
    {
        let priority = spec[field].as_i64().unwrap_or_default();
        if !(1..=max).contains(&priority) {
            let detail = format!("must be positive and less than {max}");
            causes.push(Cause::invalid(format!("spec.{field}"), &priority.into(), &detail));
        }
    }
    let bundle = str_of(&spec["caBundle"]);
    let unverified = spec["insecureSkipTLSVerify"] == true;
    let service = &spec["service"];
    if service.is_null() {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", decoded_length(bundle));
            let detail = "local APIServices may not have a caBundle";
            causes.push(Cause::invalid("spec.caBundle", &shown.into(), detail));
        }
        if unverified {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            causes.push(Cause::invalid("spec.insecureSkipTLSVerify", &true.into(), detail));
        }
        return causes;
    }
    for field in ["namespace", "name"] {
        if str_of(&service[field]).is_empty() {
            causes.push(Cause::required(format!("spec.service.{field}"), ""));
        }
    }
    if !service["port"].as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid("spec.service.port", &service["port"], detail));
    }
    if unverified && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        causes.push(Cause::invalid("spec.insecureSkipTLSVerify", &true.into(), detail));
    }
    causes
}

fn refuse(causes: &mut Vec<Cause>, field: &str, value: &Value, problems: Vec<String>) {
    causes.extend(problems.iter().map(|problem| Cause::invalid(field, value, problem)));
}

/// Number of bytes that a base64 text encodes.
fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let service = &object["spec"]["service"];
    let place = match service {
        Value::Null => LOCAL.to_owned(),
        service => format!("{}/{}", str_of(&service["namespace"]), str_of(&service["name"])),
    };
    let conditions = items(&object["status"]["conditions"]);
    let available = match conditions.iter().find(|one| one["type"] == AVAILABLE) {
        None => cells::UNKNOWN.to_owned(),
        Some(one) if one["status"] == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", str_of(&one["status"]), str_of(&one["reason"])),
    };
    vec![cells::name(object), place.into(), available.into(), cells::age(object, now)]
}
