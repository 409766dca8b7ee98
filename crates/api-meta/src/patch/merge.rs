//! Merge patch (RFC 7396).

use serde_json::{Map, Value};

use super::{PatchError, check_depth};

/// Merges `patch` into `object`: null deletes, maps merge, everything else replaces.
///
/// # Errors
/// `Malformed` when the patch is nested too deep.
pub fn merge_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    merge(object, patch, 0)
}

fn merge(object: &mut Value, patch: &Value, depth: usize) -> Result<(), PatchError> {
    check_depth(depth)?;
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut().expect("made an object above");
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.as_str()).or_insert(Value::Null), value, depth + 1)?;
        }
    }
    Ok(())
}
