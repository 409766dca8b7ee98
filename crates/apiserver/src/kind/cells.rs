//! Table cells that several kinds share.

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::time;
use serde_json::Value;

use crate::fields::{items, str_of};

pub const NONE: &str = "<none>";
pub const UNKNOWN: &str = "<unknown>";
pub const UNSET: &str = "<unset>";

pub fn name(object: &Value) -> Value {
    object.name().into()
}

/// How long ago the object was made.
pub fn age(object: &Value, now: i64) -> Value {
    since(object.meta_str("creationTimestamp"), now).into()
}

/// How long ago `at` was, as kubectl tells it; `<unknown>` without a time.
pub fn since(at: &str, now: i64) -> String {
    match time::parse_seconds(at) {
        Some(at) => time::human_duration(now - at),
        None => UNKNOWN.to_owned(),
    }
}

/// `<none>` instead of nothing.
pub fn or_none(text: &str) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

/// A map as `a=b,c=d`.
pub fn pairs(map: &Value) -> Value {
    let pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", str_of(value)))
        .collect();
    or_none(&pairs.join(","))
}

/// A selector object in its text form.
pub fn selector(selector: &Value) -> Value {
    match LabelSelector::from_object(selector) {
        Ok(selector) => or_none(&selector.to_string()),
        Err(_) => "<error>".into(),
    }
}

/// Names and images of a pod spec's containers, comma-separated.
pub fn containers(spec: &Value) -> (Value, Value) {
    let list = |field: &str| {
        let texts: Vec<&str> =
            items(&spec["containers"]).iter().map(|c| str_of(&c[field])).collect();
        Value::from(texts.join(","))
    };
    (list("name"), list("image"))
}

/// A number, 0 when absent.
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Modes as `RWO,ROX`.
pub fn access_modes(modes: &Value) -> Value {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    let mut texts: Vec<&str> = items(modes).iter().map(|mode| short(str_of(mode))).collect();
    texts.dedup();
    texts.join(",").into()
}

/// A number or percentage as it is written.
pub fn int_or_text(value: &Value, absent: &str) -> Value {
    match value {
        Value::Null => absent.into(),
        Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}
