//! One list of containers in the view, of which some are init containers.

use rest_view::ApiError;
use serde_json::{Map, Value};

use super::ports;
use crate::workload::lens::Lens;

const TYPE: &str = "container";
const FIELD: &str = "containers";
const INIT: &str = "initContainer";
/// Where a pod's specification has containers, and whether they are init containers.
const LISTS: [(&str, bool); 2] = [("containers", false), ("initContainers", true)];

/// Adds the containers of a pod template to the view.
pub fn get(lens: &Lens<'_>, stored: &Value, view: &mut Map<String, Value>) {
    let mut all = Vec::new();
    for (key, is_init) in LISTS {
        for container in list(stored, key) {
            let mut shown = lens.get(TYPE, container);
            if is_init {
                shown.insert(INIT.to_owned(), true.into());
            }
            all.push(Value::Object(shown));
        }
    }
    if !all.is_empty() {
        view.insert(FIELD.to_owned(), all.into());
    }
}

/// Writes the containers of the view into the lists of containers and init containers.
///
/// # Errors
/// The field is no list of containers.
pub fn put(lens: &Lens<'_>, view: &Map<String, Value>, stored: &mut Value) -> Result<(), ApiError> {
    let refuse = || {
        let text = "field \"containers\" must be of type array[container]";
        ApiError::invalid_field("InvalidFormat", FIELD, text)
    };
    let new = match view.get(FIELD) {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(items)) => items,
        Some(_) => return Err(refuse()),
    };
    let old: Value = LISTS.iter().flat_map(|(key, _)| list(stored, key)).cloned().collect();
    let mut lists: [Vec<Value>; 2] = [Vec::new(), Vec::new()];
    for (at, container) in new.iter().enumerate() {
        let old = ports::partner(&old, at, container).map(|(_, old)| old);
        let mut container = container.as_object().ok_or_else(refuse)?.clone();
        // In which list it is says the same.
        let is_init = container.remove(INIT) == Some(Value::Bool(true));
        let value = lens.put(TYPE, old, &container)?;
        lists[usize::from(is_init)].push(value);
    }
    let Some(map) = stored.as_object_mut() else { return Ok(()) };
    for ((key, _), list) in LISTS.into_iter().zip(lists) {
        match map.get(key).and_then(Value::as_array) {
            None if list.is_empty() => {}
            Some(current) if list.is_empty() && current.is_empty() => {}
            _ if list.is_empty() => {
                map.remove(key);
            }
            _ => {
                map.insert(key.to_owned(), list.into());
            }
        }
    }
    Ok(())
}

fn list<'v>(stored: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    stored.get(key).and_then(Value::as_array).into_iter().flatten()
}
