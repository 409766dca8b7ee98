//! ConfigMap: keys, size, immutability.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use apiserver::kind::cells;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::Value;

/// Largest total size of all values, in bytes.
pub const SIZE_MAX: usize = 1024 * 1024;

/// The kind ConfigMap of the core group: namespaced, with the validation and columns of
/// kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        short_names: &["cm"],
        columns: &[NAME, ("Data", "string", "", 0), AGE],
        hooks: Hooks {
            validate,
            decode_problem: |object| base64_problem(&object["binaryData"]),
            cells: |object, now| {
                let count = |field: &str| object[field].as_object().map_or(0, |map| map.len());
                let data = count("data") + count("binaryData");
                vec![cells::name(object), data.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new("", "configmaps", "configmap", "ConfigMap")
    }
}

fn validate(_write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let shown = Value::from(key.as_str());
            let path = format!("{field}[{key}]");
            for problem in names::config_key(key) {
                causes.push(Cause::invalid(path.clone(), &shown, &problem));
            }
            if field == "data" && object["binaryData"].get(key).is_some() {
                let text = "duplicate of key present in binaryData";
                causes.push(Cause::invalid(path, &shown, text));
            }
            size += match field {
                "data" => str_of(value).len(),
                _ => decoded_size(str_of(value)),
            };
        }
    }
    if size > SIZE_MAX {
        causes.push(Cause::too_long("[]", SIZE_MAX));
    }
    if let Some(old) = old {
        causes.extend(immutable_changes(object, old));
    }
    causes
}

/// Causes for changes of an object that is marked immutable. Also for Secrets.
pub fn immutable_changes(object: &Value, old: &Value) -> Vec<Cause> {
    if old["immutable"].as_bool() != Some(true) {
        return Vec::new();
    }
    let text = "field is immutable when `immutable` is set";
    ["immutable", "data", "binaryData"]
        .into_iter()
        .filter(|field| object[*field] != old[*field])
        .map(|field| Cause::forbidden(field, text))
        .collect()
}

/// Number of bytes that a base64 text encodes.
pub fn decoded_size(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|&byte| byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// Go's error message about the first value that is no base64; `None` when all values are.
pub fn base64_problem(map: &Value) -> Option<String> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    map.as_object().into_iter().flatten().find_map(|(_, value)| {
        let text = str_of(value);
        let error = STANDARD.decode(text).err()?;
        let offset = match error {
            base64::DecodeError::InvalidByte(offset, _)
            | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
            base64::DecodeError::InvalidLength(length) => length,
            base64::DecodeError::InvalidPadding => text.len(),
        };
        Some(format!("illegal base64 data at input byte {offset}"))
    })
}
