//! Access to fields of JSON objects of unknown structure. Fields of the wrong type are ignored:
//! validation reports them.

use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// The object in a value, if it is one.
pub fn map(value: &mut Value) -> Option<&mut Object> {
    value.as_object_mut()
}

/// The object in `field`, if there is one.
pub fn child<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.get_mut(field)?.as_object_mut()
}

/// The object in `field`, which is created if absent. `None` when the field has another type.
pub fn ensure<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.entry(field).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Sets `field` if it is absent. A null counts as present.
pub fn preset(object: &mut Object, field: &str, value: impl Into<Value>) {
    object.entry(field).or_insert_with(|| value.into());
}

/// Normalizes the map of strings in `field` like Go does: null becomes the empty string, and an
/// empty map is removed.
pub fn texts(object: &mut Object, field: &str) {
    let Some(texts) = child(object, field) else { return };
    for value in texts.values_mut().filter(|value| value.is_null()) {
        *value = Value::String(String::new());
    }
    if texts.is_empty() {
        object.remove(field);
    }
}

/// Visits each object in the list in `field`.
pub fn each(object: &mut Object, field: &str, mut visit: impl FnMut(&mut Object)) {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&mut visit);
}

/// The string in `field`; empty when absent.
pub fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of the list in `value`; none when it is no list.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The string in `value`; empty when it is none.
pub fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
