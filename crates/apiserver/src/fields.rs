//! Small tools to reach into JSON maps of uncertain shape. A field of the wrong type is passed
//! over:
//! saying so is validation's task.

use serde_json::{Map, Value};

pub type Object = Map<String, Value>;

/// The map behind a value.
pub fn map(value: &mut Value) -> Option<&mut Object> {
    value.as_object_mut()
}

/// The map in `field`, if there is one.
pub fn child<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.get_mut(field)?.as_object_mut()
}

/// The map in `field`, made when absent. `None` when something else is there.
pub fn ensure<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.entry(field).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Sets `field` unless it is there.
pub fn preset(object: &mut Object, field: &str, value: impl Into<Value>) {
    object.entry(field).or_insert_with(|| value.into());
}

/// Brings the map from text to text in `field` into the form that Go gives it: null is the empty
/// text, and no entries are no field.
pub fn texts(object: &mut Object, field: &str) {
    let Some(texts) = child(object, field) else { return };
    for value in texts.values_mut().filter(|value| value.is_null()) {
        *value = Value::String(String::new());
    }
    if texts.is_empty() {
        object.remove(field);
    }
}

/// Visits each map in the list in `field`.
pub fn each(object: &mut Object, field: &str, mut visit: impl FnMut(&mut Object)) {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&mut visit);
}

/// The text in `field`, empty when absent.
pub fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of the list at `value`; none when it is no list.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Text at `value`, empty when it is none.
pub fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
