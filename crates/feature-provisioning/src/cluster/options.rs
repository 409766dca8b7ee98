//! The options of a cluster as drivers get them: four maps by type, with the names of the API
//! (`kontainer-driver-grpc.md`, part 3).

use std::collections::{BTreeSet, HashMap};

use api_management::Cluster;
use driver_contract::types::{DriverOptions, StringSlice};
use kube::ResourceExt;
use serde_json::{Map, Value};

/// An object with a name that ends so is not taken apart, but becomes a list of `key=value`.
const LABELS: &str = "labels";
/// The same among what an update adds.
const TAGS: &str = "tags";
/// The entry of the metadata that has everything, as JSON.
const STATE: &str = "state";
/// Parts of names of options that hold secrets, also where the driver does not say so.
const SECRET_WORDS: [&str; 6] =
    ["secret", "password", "token", "credential", "privatekey", "passphrase"];
/// A shorter text is not taken for a secret: it would be everywhere in a log.
const SECRET_LENGTH_MIN: usize = 6;

/// The options of a cluster. `config`: `spec.genericEngineConfig`, with its credentials.
pub fn of_cluster(config: &Value, cluster: &Cluster) -> DriverOptions {
    let mut options = DriverOptions::default();
    if let Some(fields) = config.as_object() {
        flatten(fields, &mut options);
    }
    options.string_options.insert("name".to_owned(), cluster.name_any());
    options.string_options.insert("displayName".to_owned(), cluster.display_name().to_owned());
    options
}

fn flatten(fields: &Map<String, Value>, options: &mut DriverOptions) {
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::Bool(value) => drop(options.bool_options.insert(name.clone(), *value)),
            Value::Number(number) => {
                // A float is cut off; one beyond the range is at its end.
                #[expect(clippy::cast_possible_truncation, reason = "that is what is meant")]
                let whole = number.as_i64().or_else(|| number.as_f64().map(|float| float as i64));
                options.int_options.insert(name.clone(), whole.unwrap_or_default());
            }
            Value::String(text) => drop(options.string_options.insert(name.clone(), text.clone())),
            Value::Array(list) => {
                let texts = list.iter().filter_map(|item| item.as_str().map(str::to_owned));
                let value: Vec<String> = texts.collect();
                // Not an empty one: drivers would take it for one that was given.
                if !value.is_empty() {
                    options.string_slice_options.insert(name.clone(), StringSlice { value });
                }
            }
            Value::Object(labels) if name.to_ascii_lowercase().ends_with(LABELS) => {
                options.string_slice_options.insert(name.clone(), pairs(labels));
            }
            Value::Object(inner) => flatten(inner, options),
        }
    }
}

fn pairs(map: &Map<String, Value>) -> StringSlice {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    StringSlice { value: map.iter().map(|(key, value)| format!("{key}={}", text(value))).collect() }
}

/// For another attempt to create: all that the attempt before left.
pub fn add_for_create(options: &mut DriverOptions, metadata: &HashMap<String, String>) {
    for (key, value) in metadata {
        options.string_options.insert(key.clone(), value.clone());
    }
}

/// For a change: what is known, where the cluster does not say it anew.
pub fn add_for_update(options: &mut DriverOptions, metadata: &HashMap<String, String>) {
    for (key, value) in metadata.iter().filter(|(key, _)| *key != STATE) {
        options.string_options.insert(key.clone(), value.clone());
    }
    let state = metadata.get(STATE).and_then(|state| serde_json::from_str(state).ok());
    let Some(Value::Object(state)) = state else { return };
    let mut known = DriverOptions::default();
    let (tags, state): (Map<_, _>, Map<_, _>) =
        state.into_iter().partition(|(name, value)| name == TAGS && value.is_object());
    flatten(&state, &mut known);
    for (name, value) in &tags {
        let value = value.as_object().map(pairs).unwrap_or_default();
        known.string_slice_options.insert(name.clone(), value);
    }
    for (name, value) in known.bool_options {
        options.bool_options.entry(name).or_insert(value);
    }
    for (name, value) in known.int_options {
        options.int_options.entry(name).or_insert(value);
    }
    for (name, value) in known.string_options {
        options.string_options.entry(name).or_insert(value);
    }
    for (name, value) in known.string_slice_options {
        options.string_slice_options.entry(name).or_insert(value);
    }
}

/// The options that are not as they were applied last; absent and null are the same. Sorted.
pub fn changed<'a>(applied: &'a Value, config: &'a Value) -> BTreeSet<&'a str> {
    let names = [applied, config].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    names.map(String::as_str).filter(|name| applied[name] != config[name]).collect()
}

/// The values that are shown nowhere, such as in a log. `passwords`: the fields that the driver
/// says are secret.
pub fn secrets(options: &DriverOptions, passwords: &[String]) -> Vec<String> {
    let is_secret = |name: &String| {
        let plain = name.to_ascii_lowercase().replace(['-', '_'], "");
        passwords.contains(name) || SECRET_WORDS.iter().any(|word| plain.contains(word))
    };
    let named = options.string_options.iter().filter(|(name, _)| is_secret(name));
    let values = named.map(|(_, value)| value.trim().to_owned());
    values.filter(|value| value.len() >= SECRET_LENGTH_MIN).collect()
}
