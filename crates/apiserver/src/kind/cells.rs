//! Table cells that several kinds share.

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::time;
use serde_json::Value;

use crate::fields::{items, str_of};

/// A cell without a value.
pub const NONE: &str = "<none>";
/// A time or count that is not known.
pub const UNKNOWN: &str = "<unknown>";
/// A field that is not set, where kubectl prints it so.
pub const UNSET: &str = "<unset>";

/// The name of the object.
pub fn name(object: &Value) -> Value {
    object.name().into()
}

/// The age of the object at `now`, in unix seconds.
pub fn age(object: &Value, now: i64) -> Value {
    since(object.meta_str("creationTimestamp"), now).into()
}

/// The time from `at` (RFC 3339) to `now` (unix seconds), as kubectl prints durations; `<unknown>`
/// without a valid time.
pub fn since(at: &str, now: i64) -> String {
    match time::parse_seconds(at) {
        Some(at) => time::human_duration(now - at),
        None => UNKNOWN.to_owned(),
    }
}

/// The text, or `<none>` when it is empty.
pub fn or_none(text: &str) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

/// A map as `a=b,c=d`, `<none>` when it is empty.
pub fn pairs(map: &Value) -> Value {
    let pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", str_of(value)))
        .collect();
    or_none(&pairs.join(","))
}

/// A label selector object as text; `<error>` when it is invalid.
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

/// Access modes of a volume in short, as `RWO,ROX`.
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

/// A number or percentage as it is written; `absent` when there is none.
pub fn int_or_text(value: &Value, absent: &str) -> Value {
    match value {
        Value::Null => absent.into(),
        Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}
