//! JSON patch (RFC 6902), with the leniency of upstream: `replace` of an absent map key adds it.

use serde::Deserialize;
use serde_json::Value;

use super::{COPY_SIZE_MAX, PatchError};
use crate::decode;

/// Operations that one patch may have.
pub const OPERATIONS_MAX: usize = 10_000;

#[derive(Clone, Debug, Deserialize)]
struct Operation {
    #[serde(default)]
    op: String,
    path: Option<String>,
    from: Option<String>,
    // Present `null` differs from absent.
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(decoder: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(decoder).map(Some)
}

fn decode_operations(document: &Value) -> Result<Vec<Operation>, PatchError> {
    let malformed = |text: String| PatchError::Malformed(format!("error decoding patch: {text}"));
    let Value::Array(items) = document else {
        return Err(malformed(format!(
            "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            decode::type_name(document)
        )));
    };
    if items.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(items.len()));
    }
    let operations: Result<_, _> = items.iter().map(Operation::deserialize).collect();
    operations.map_err(|error| malformed(format!("json: cannot unmarshal patch: {error}")))
}

/// Whether a document is a JSON patch at all; it may still not fit an object.
///
/// # Errors
/// `Malformed` when it is no list of operations, `TooManyOperations`.
pub fn check_json_patch(document: &Value) -> Result<(), PatchError> {
    decode_operations(document).map(drop)
}

/// Applies all operations in order.
///
/// # Errors
/// As [`check_json_patch`], and `Rejected` when an operation does not fit; the object is then
/// partly changed.
pub fn json_patch(object: &mut Value, document: &Value) -> Result<(), PatchError> {
    let mut copied = 0;
    for operation in &decode_operations(document)? {
        apply(object, operation, &mut copied)?;
    }
    Ok(())
}

fn apply(object: &mut Value, operation: &Operation, copied: &mut usize) -> Result<(), PatchError> {
    let path = pointer(operation.path.as_deref())?;
    let value = || operation.value.clone().ok_or(PatchError::Rejected);
    match operation.op.as_str() {
        "add" => add(object, &path, value()?),
        "remove" => remove(object, &path).map(drop),
        "replace" => replace(object, &path, value()?),
        "move" => {
            let from = pointer(operation.from.as_deref())?;
            // A value cannot move into itself.
            if path.len() > from.len() && path.starts_with(&from) {
                return Err(PatchError::Rejected);
            }
            let moved = remove(object, &from)?;
            add(object, &path, moved)
        }
        "copy" => {
            let from = pointer(operation.from.as_deref())?;
            let source = find(object, &from).ok_or(PatchError::Rejected)?;
            *copied += size(source);
            if *copied > COPY_SIZE_MAX {
                return Err(PatchError::Rejected);
            }
            let copy = source.clone();
            add(object, &path, copy)
        }
        "test" => {
            let wanted = operation.value.as_ref().unwrap_or(&Value::Null);
            let found = find(object, &path).unwrap_or(&Value::Null);
            if found == wanted { Ok(()) } else { Err(PatchError::Rejected) }
        }
        _ => Err(PatchError::Rejected),
    }
}

/// The steps of a JSON pointer, unescaped.
fn pointer(text: Option<&str>) -> Result<Vec<String>, PatchError> {
    let text = text.ok_or(PatchError::Rejected)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let rest = text.strip_prefix('/').ok_or(PatchError::Rejected)?;
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn index(step: &str, length: usize) -> Option<usize> {
    let plain = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    let index: usize = if plain { step.parse().ok()? } else { return None };
    (index < length).then_some(index)
}

fn find<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match value {
        Value::Object(map) => map.get(step),
        Value::Array(list) => list.get(index(step, list.len())?),
        _ => None,
    })
}

fn find_mut<'a>(object: &'a mut Value, path: &[String]) -> Result<&'a mut Value, PatchError> {
    let found = path.iter().try_fold(object, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(list) => {
            let index = index(step, list.len())?;
            list.get_mut(index)
        }
        _ => None,
    });
    found.ok_or(PatchError::Rejected)
}

fn add(object: &mut Value, path: &[String], value: Value) -> Result<(), PatchError> {
    let Some((last, parent)) = path.split_last() else {
        *object = value;
        return Ok(());
    };
    match find_mut(object, parent)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
        }
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(last, list.len() + 1).ok_or(PatchError::Rejected)?;
            list.insert(index, value);
        }
        _ => return Err(PatchError::Rejected),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &[String]) -> Result<Value, PatchError> {
    let (last, parent) = path.split_last().ok_or(PatchError::Rejected)?;
    match find_mut(object, parent)? {
        Value::Object(map) => map.remove(last).ok_or(PatchError::Rejected),
        Value::Array(list) => {
            let index = index(last, list.len()).ok_or(PatchError::Rejected)?;
            Ok(list.remove(index))
        }
        _ => Err(PatchError::Rejected),
    }
}

fn replace(object: &mut Value, path: &[String], value: Value) -> Result<(), PatchError> {
    let Some((last, parent)) = path.split_last() else {
        *object = value;
        return Ok(());
    };
    match find_mut(object, parent)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
        }
        Value::Array(list) => {
            let index = index(last, list.len()).ok_or(PatchError::Rejected)?;
            list[index] = value;
        }
        _ => return Err(PatchError::Rejected),
    }
    Ok(())
}

/// About the encoded size.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(k, v)| k.len() + 4 + size(v)).sum::<usize>(),
        _ => 5,
    }
}
