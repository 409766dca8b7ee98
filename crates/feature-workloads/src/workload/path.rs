//! Paths inside JSON values. Nothing here fails on an unexpected shape.

use serde_json::{Map, Value};

/// The value at a path; null is none.
pub fn read<'v>(value: &'v Value, way: &[String]) -> Option<&'v Value> {
    way.iter().try_fold(value, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// As [`read`].
pub fn read_keys<'v>(value: &'v Value, way: &[&str]) -> Option<&'v Value> {
    way.iter().try_fold(value, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// Sets the value at a path; what is no object on the way becomes one.
pub fn write(value: &mut Value, way: &[String], new: Value) {
    let mut target = value;
    for key in way {
        target = object(target).entry(key.as_str()).or_insert(Value::Null);
    }
    *target = new;
}

/// As [`write`].
pub fn write_keys(value: &mut Value, way: &[&str], new: Value) {
    let way: Vec<String> = way.iter().map(|&key| key.to_owned()).collect();
    write(value, &way, new);
}

/// Removes the value at a path, and the objects on the way that it leaves empty.
pub fn remove(value: &mut Value, way: &[String]) {
    let Some((first, rest)) = way.split_first() else { return };
    let Some(map) = value.as_object_mut() else { return };
    if rest.is_empty() {
        map.remove(first);
        return;
    }
    let Some(inner) = map.get_mut(first) else { return };
    let had = read(inner, rest).is_some();
    remove(inner, rest);
    if had && inner.as_object().is_some_and(Map::is_empty) {
        map.remove(first);
    }
}

/// As [`remove`].
pub fn remove_keys(value: &mut Value, way: &[&str]) {
    let way: Vec<String> = way.iter().map(|&key| key.to_owned()).collect();
    remove(value, &way);
}

/// The value as an object, which it becomes if it is none.
pub fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it has just become an object"),
    }
}
