//! Secret: `stringData`, types with required keys, size, immutability. Values are never part of
//! messages.

use api_meta::decode;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{ensure, map, preset, str_of};
use apiserver::kind::cells;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::config_map::{SIZE_MAX, base64_problem, decoded_size, immutable_changes};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// The kind Secret of the core group: namespaced, with the defaults, validation, columns and
/// selectable fields of kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        columns: &[NAME, ("Type", "string", "", 0), ("Data", "string", "", 0), AGE],
        fields: vec![FieldSpec::text("type")],
        hooks: Hooks {
            default,
            validate,
            decode_problem: |object| base64_problem(&object["data"]),
            cells: |object, now| {
                let data = object["data"].as_object().map_or(0, |map| map.len());
                let kind = str_of(&object["type"]);
                vec![cells::name(object), kind.into(), data.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "secrets", "secret", "Secret")
    }
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(Value::Object(plain)) = object.remove("stringData")
        && !plain.is_empty()
        && let Some(data) = ensure(object, "data")
    {
        for (key, value) in plain {
            data.insert(key, STANDARD.encode(str_of(&value)).into());
        }
    }
    preset(object, "type", "Opaque");
}

fn validate(_write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let shown = Value::from(key.as_str());
        for problem in names::config_key(key) {
            causes.push(Cause::invalid(format!("data[{key}]"), &shown, &problem));
        }
        size += decoded_size(str_of(value));
    }
    if size > SIZE_MAX {
        causes.push(Cause::too_long("data", SIZE_MAX));
    }
    causes.extend(type_problems(object));
    if let Some(old) = old {
        if object["type"] != old["type"] {
            causes.push(Cause::invalid("type", &object["type"], "field is immutable"));
        }
        causes.extend(immutable_changes(object, old));
    }
    causes
}

/// The requirements of the type on the data.
fn type_problems(object: &Value) -> Vec<Cause> {
    let data = &object["data"];
    let required = |keys: &[&str]| -> Vec<Cause> {
        keys.iter()
            .filter(|key| data.get(key).is_none())
            .map(|key| Cause::required(format!("data[{key}]"), ""))
            .collect()
    };
    match str_of(&object["type"]) {
        "kubernetes.io/tls" => required(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => required(&["ssh-privatekey"]),
        "kubernetes.io/dockercfg" => docker_problems(data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_problems(data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let given = ["username", "password"].iter().any(|key| data.get(key).is_some());
            if given { Vec::new() } else { required(&["username", "password"]) }
        }
        "kubernetes.io/service-account-token" => {
            let name = &object["metadata"]["annotations"][SERVICE_ACCOUNT_NAME];
            if str_of(name).is_empty() {
                let field = format!("metadata.annotations[{SERVICE_ACCOUNT_NAME}]");
                vec![Cause::required(field, "")]
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

fn docker_problems(data: &Value, key: &str) -> Vec<Cause> {
    let field = format!("data[{key}]");
    let Some(value) = data.get(key) else {
        return vec![Cause::required(field, "")];
    };
    // Data that is no base64 is refused as undecodable earlier.
    let bytes = STANDARD.decode(str_of(value)).unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let problem = decode::syntax_problem(&bytes, &error);
            // Upstream escapes the angle brackets.
            let shown = "\"\\u003csecret contents redacted\\u003e\"";
            let message = format!("Invalid value: {shown}: {problem}");
            vec![Cause::new("FieldValueInvalid", field, message)]
        }
    }
}
