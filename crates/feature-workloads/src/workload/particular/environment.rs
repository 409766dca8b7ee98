//! Variables: the view has those with a value in a map, and those from other sources in a list.
//!
//! The order of variables matters, since one may use those before it. A variable that stays retains
//! its position.

use rest_view::ApiError;
use serde_json::{Map, Value, json};

use crate::workload::path::{read_keys, write_keys};

const PLAIN: &str = "environment";
const FROM: &str = "environmentFrom";
/// A source of one variable: its word in the view, its field below `valueFrom`, the fields there
/// that the view calls `sourceName` and `sourceKey`, and whether it may be missing.
const SOURCES: [(&str, &str, &str, Option<&str>, bool); 4] = [
    ("field", "fieldRef", "fieldPath", None, false),
    ("resource", "resourceFieldRef", "containerName", Some("resource"), false),
    ("configMap", "configMapKeyRef", "name", Some("key"), true),
    ("secret", "secretKeyRef", "name", Some("key"), true),
];
/// A source of all its entries: its word and its field.
const WHOLE: [(&str, &str); 2] = [("secret", "secretRef"), ("configMap", "configMapRef")];

/// Adds the variables of a container to the view.
pub fn get(stored: &Value, view: &mut Map<String, Value>) {
    let mut plain = Map::new();
    let mut from = Vec::new();
    for entry in list(stored, "env") {
        match entry.get("valueFrom").filter(|from| !from.is_null()) {
            None => plain.extend(name_of(entry).map(|name| {
                let value = entry.get("value").and_then(Value::as_str).unwrap_or_default();
                (name.to_owned(), value.into())
            })),
            Some(_) => from.extend(shown(entry)),
        }
    }
    from.extend(list(stored, "envFrom").filter_map(shown_whole));
    if !plain.is_empty() {
        view.insert(PLAIN.to_owned(), plain.into());
    }
    if !from.is_empty() {
        view.insert(FROM.to_owned(), from.into());
    }
}

/// Writes the variables of the view into a container.
///
/// # Errors
/// A field is of another type.
pub fn put(view: &Map<String, Value>, stored: &mut Value) -> Result<(), ApiError> {
    let nothing = Map::new();
    let mut plain = match view.get(PLAIN) {
        None | Some(Value::Null) => nothing,
        Some(Value::Object(map)) => map.clone(),
        Some(_) => return Err(wrong(PLAIN, "map[string]")),
    };
    let mut open = match view.get(FROM) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(_) => return Err(wrong(FROM, "array[environmentFrom]")),
    };
    let mut env = Vec::new();
    let mut named: Vec<String> = Vec::new();
    for entry in list(stored, "env") {
        if entry.get("valueFrom").is_some_and(|from| !from.is_null()) {
            match shown(entry) {
                Some(shown) if !take_equal(&mut open, &shown) => {}
                // Unchanged, or from a source that the view does not know.
                _ => env.push(entry.clone()),
            }
            continue;
        }
        let Some((name, value)) = name_of(entry).and_then(|name| Some((name, plain.get(name)?)))
        else {
            continue;
        };
        let mut entry = entry.clone();
        let current = last_value(stored, name);
        if text(value, PLAIN)? != current {
            write_keys(&mut entry, &["value"], value.clone());
        }
        named.push(name.to_owned());
        env.push(entry);
    }
    plain.retain(|name, _| !named.contains(name));
    for (name, value) in &plain {
        env.push(json!({"name": name, "value": text(value, PLAIN)?}));
    }
    let mut env_from = Vec::new();
    for entry in list(stored, "envFrom") {
        match shown_whole(entry) {
            Some(shown) if !take_equal(&mut open, &shown) => {}
            _ => env_from.push(entry.clone()),
        }
    }
    for item in &open {
        match one(item)? {
            One::Variable(entry) => env.push(entry),
            One::Whole(entry) => env_from.push(entry),
        }
    }
    for (key, list) in [("env", env), ("envFrom", env_from)] {
        let Some(map) = stored.as_object_mut() else { return Ok(()) };
        if !list.is_empty() {
            map.insert(key.to_owned(), list.into());
        } else if map.get(key).and_then(Value::as_array).is_some_and(|old| !old.is_empty()) {
            map.remove(key);
        }
    }
    Ok(())
}

/// A variable of a known source, as the view has it.
fn shown(entry: &Value) -> Option<Value> {
    let name = name_of(entry)?;
    SOURCES.iter().find_map(|(source, place, named, keyed, may_miss)| {
        let from = read_keys(entry, &["valueFrom", place])?;
        let mut item = json!({"source": source, "targetKey": name});
        copy(from.get(*named), &mut item, "sourceName");
        copy(keyed.and_then(|key| from.get(key)), &mut item, "sourceKey");
        if *may_miss {
            item["optional"] = (from.get("optional") == Some(&Value::Bool(true))).into();
        }
        Some(item)
    })
}

fn shown_whole(entry: &Value) -> Option<Value> {
    WHOLE.iter().find_map(|(source, place)| {
        let from = read_keys(entry, &[place])?;
        let mut item = json!({"source": source});
        item["optional"] = (from.get("optional") == Some(&Value::Bool(true))).into();
        copy(from.get("name"), &mut item, "sourceName");
        copy(entry.get("prefix"), &mut item, "prefix");
        Some(item)
    })
}

fn copy(value: Option<&Value>, item: &mut Value, key: &str) {
    if let Some(text) = value.and_then(Value::as_str).filter(|text| !text.is_empty()) {
        item[key] = text.into();
    }
}

enum One {
    Variable(Value),
    Whole(Value),
}

/// A new item: without a key and a target it means all entries of the source.
fn one(item: &Value) -> Result<One, ApiError> {
    let Value::Object(map) = item else { return Err(wrong(FROM, "array[environmentFrom]")) };
    let said = |key: &str| map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = |field: &str| {
        let text = format!("each item of \"{FROM}\" needs \"{field}\"");
        ApiError::invalid_field("MissingRequired", field, text)
    };
    let word = said("source").ok_or_else(|| missing("source"))?;
    let source = said("sourceName");
    let optional = map.get("optional") == Some(&Value::Bool(true));
    let Some(target) = said("targetKey").or(said("sourceKey")) else {
        let Some((_, place)) = WHOLE.iter().find(|(known, _)| *known == word) else {
            return Err(missing("targetKey"));
        };
        let mut from = json!({"name": source.ok_or_else(|| missing("sourceName"))?});
        if optional {
            from["optional"] = true.into();
        }
        let mut entry = json!({*place: from});
        copy(map.get("prefix"), &mut entry, "prefix");
        return Ok(One::Whole(entry));
    };
    let Some((_, place, named, keyed, may_miss)) = SOURCES.iter().find(|s| s.0 == word) else {
        let text = format!("\"{word}\" is no source: say field, resource, configMap or secret");
        return Err(ApiError::invalid_field("InvalidOption", "source", text));
    };
    let mut from = json!({});
    copy(source.map(Value::from).as_ref(), &mut from, named);
    if let Some(key) = keyed {
        copy(said("sourceKey").map(Value::from).as_ref(), &mut from, key);
    }
    if *may_miss && optional {
        from["optional"] = true.into();
    }
    Ok(One::Variable(json!({"name": target, "valueFrom": {*place: from}})))
}

/// Removes an equal item from `open`, if there is one.
fn take_equal(open: &mut Vec<Value>, searched: &Value) -> bool {
    const KEYS: [&str; 6] =
        ["source", "sourceName", "sourceKey", "targetKey", "prefix", "optional"];
    let is_same = |item: &Value| {
        KEYS.iter().all(|key| {
            let said = |item: &Value| match item.get(*key) {
                None | Some(Value::Null | Value::Bool(false)) => None,
                Some(Value::String(text)) if text.is_empty() => None,
                Some(value) => Some(value.clone()),
            };
            said(item) == said(searched)
        })
    };
    let found = open.iter().position(is_same);
    found.map(|at| open.remove(at)).is_some()
}

/// What a variable is in the end: of several of a name the last counts.
fn last_value<'v>(stored: &'v Value, name: &str) -> &'v str {
    let plain = list(stored, "env").filter(|entry| {
        name_of(entry) == Some(name) && entry.get("valueFrom").is_none_or(Value::is_null)
    });
    plain.last().and_then(|entry| entry.get("value")).and_then(Value::as_str).unwrap_or_default()
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name").and_then(Value::as_str)
}

fn list<'v>(stored: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    stored.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str, ApiError> {
    match value {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        _ => Err(wrong(field, "map[string]")),
    }
}

fn wrong(field: &str, kind: &str) -> ApiError {
    let text = format!("field \"{field}\" must be of type {kind}");
    ApiError::invalid_field("InvalidFormat", field, text)
}
