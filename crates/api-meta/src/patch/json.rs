//! JSON patch (RFC 6902), with the behaviour of kube-apiserver's library beyond it:
//!
//! - `replace` of an absent map key adds it, and an absent `value` is `null`;
//! - `copy` of an absent map key copies `null`, and such a key passes a `test` for `null`;
//! - numbers before the beginning of a list count from its end: `-1` is the last element, or the
//!   position after it where an element is added;
//! - the whole document, whose path is empty, can be tested and replaced, and nothing else;
//! - text before the first `/` of a path is ignored.

use serde::Deserialize;
use serde_json::Value;

use super::{COPY_SIZE_MAX, PatchError};
use crate::decode;

/// Operations that one patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// Levels of nesting that an object may have between operations.
const PATCHED_DEPTH_MAX: usize = decode::DEPTH_MAX + decode::OWNERS_DEPTH;
/// How often one patch may come so near to the limit that the depth of the whole object is
/// measured.
const WALKS_MAX: usize = 100;

#[derive(Clone, Debug, Default, Deserialize)]
struct JsonOperation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    #[serde(default)]
    value: Value,
}

fn decode_operations(document: &Value) -> Result<Vec<JsonOperation>, PatchError> {
    let malformed = |text: String| PatchError::Malformed(format!("error decoding patch: {text}"));
    let items = match document {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        other => {
            return Err(malformed(format!(
                "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                decode::type_name(other)
            )));
        }
    };
    if items.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations(items.len()));
    }
    let operation =
        |item| Option::<JsonOperation>::deserialize(item).map(Option::unwrap_or_default);
    let operations: Result<_, _> = items.iter().map(operation).collect();
    operations.map_err(|error| malformed(format!("json: cannot unmarshal patch: {error}")))
}

/// Checks that a document is a JSON patch. Its operations may still not apply to an object.
///
/// # Errors
/// `Malformed` when it is no list of operations, `TooManyOperations`.
pub fn check_json_patch(document: &Value) -> Result<(), PatchError> {
    decode_operations(document).map(drop)
}

/// Why an operation does not apply to an object, in the messages of kube-apiserver's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A test compared with another value.
    #[error("testing value {0} failed: test failed")]
    Test(String),
    #[error("{0}")]
    Operation(String),
}

/// Applies all operations in order.
///
/// # Errors
/// Those of [`check_json_patch`], and `Rejected` when an operation does not apply; the object is
/// then partly changed.
pub fn json_patch(object: &mut Value, document: &Value) -> Result<(), PatchError> {
    let operations = decode_operations(document)?;
    apply_all(object, &operations).map_err(|_| PatchError::Rejected)
}

/// Like [`json_patch`], with the operation that does not apply and the reason.
///
/// # Errors
/// The document is no patch, or an operation does not apply.
pub fn json_patch_explained(object: &mut Value, document: &Value) -> Result<(), Unfit> {
    let operations =
        decode_operations(document).map_err(|error| Unfit::Operation(error.to_string()))?;
    apply_all(object, &operations)
}

fn apply_all(object: &mut Value, operations: &[JsonOperation]) -> Result<(), Unfit> {
    let mut copied = 0;
    let mut depth = Depth { bound: decode::depth(object), walks: 0 };
    for operation in operations {
        depth.check(object)?;
        apply(object, operation, &mut copied)?;
        depth.grow(operation);
    }
    depth.check(object)
}

/// An upper bound of the depth of the object.
struct Depth {
    /// Invariant: the object is not deeper.
    bound: usize,
    walks: usize,
}

impl Depth {
    /// Refuses an object that is too deep, before deeper values can be added.
    fn check(&mut self, object: &Value) -> Result<(), Unfit> {
        if self.bound <= PATCHED_DEPTH_MAX {
            return Ok(());
        }
        self.walks += 1;
        self.bound = decode::depth(object);
        if self.bound > PATCHED_DEPTH_MAX || self.walks > WALKS_MAX {
            return Err(Unfit::Operation(format!(
                "the object would nest deeper than {PATCHED_DEPTH_MAX} levels"
            )));
        }
        Ok(())
    }

    fn grow(&mut self, operation: &JsonOperation) {
        let steps = |path: &Option<String>| {
            path.as_ref().map_or(0, |path| path.bytes().filter(|byte| *byte == b'/').count())
        };
        let value = match operation.op.as_deref() {
            Some("add" | "replace") => decode::depth(&operation.value),
            Some("copy" | "move") => self.bound.saturating_sub(steps(&operation.from)),
            _ => return,
        };
        self.bound = self.bound.max(steps(&operation.path) + value);
    }
}

fn apply(object: &mut Value, operation: &JsonOperation, copied: &mut usize) -> Result<(), Unfit> {
    let op = operation.op.as_deref().unwrap_or_default();
    let sent_path = operation.path.as_deref().unwrap_or_default();
    let sent_from = operation.from.as_deref().unwrap_or_default();
    let missing = |what: &str, path: &str| {
        let text = format!("doc is missing {what}: {path}: missing value");
        Unfit::Operation(format!("{op} operation does not apply: {text}"))
    };
    let failed = |path: &str, problem: &str| {
        Unfit::Operation(format!("error in {op} for path: '{path}': {problem}"))
    };
    let unfit = |misfit, missing_path: Unfit| match misfit {
        Misfit::Parent => missing_path,
        Misfit::Value(problem) => failed(sent_path, &problem),
    };
    let path = operation.path.as_deref().and_then(pointer);
    let path = path.ok_or_else(|| missing("path", &format!("\"{sent_path}\"")))?;
    let from = || {
        let from = operation.from.as_deref().and_then(pointer);
        from.ok_or_else(|| missing("from path", sent_from))
    };
    let value = || operation.value.clone();
    match op {
        "add" => add(object, &path, value())
            .map_err(|misfit| unfit(misfit, missing("path", &format!("\"{sent_path}\"")))),
        "remove" => remove(object, &path)
            .map(drop)
            .map_err(|misfit| unfit(misfit, missing("path", &format!("\"{sent_path}\"")))),
        "replace" => replace(object, &path, value()).map_err(|misfit| match misfit {
            Misfit::Parent => missing("path", sent_path),
            Misfit::Value(_) => missing("key", sent_path),
        }),
        "move" => {
            let from = from()?;
            let moved = remove(object, &from).map_err(|misfit| match misfit {
                Misfit::Parent => missing("from path", sent_from),
                Misfit::Value(problem) => failed(from.last().map_or("", String::as_str), &problem),
            })?;
            add(object, &path, moved)
                .map_err(|misfit| unfit(misfit, missing("destination path", sent_path)))
        }
        "copy" => {
            let from = from()?;
            let found = from.split_last().ok_or(Misfit::Parent);
            let source = found.and_then(|(key, parent)| get(find(object, parent)?, key));
            let source = source.map_err(|_| missing("from path", sent_from))?;
            *copied += size(source);
            if *copied > COPY_SIZE_MAX {
                return Err(Unfit::Operation(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is \
                     {copied}, exceeding the limit {COPY_SIZE_MAX}"
                )));
            }
            let copy = source.clone();
            add(object, &path, copy).map_err(|misfit| match misfit {
                Misfit::Parent => missing("destination path", sent_path),
                Misfit::Value(problem) => {
                    Unfit::Operation(format!("error while adding value during copy: {problem}"))
                }
            })
        }
        "test" => {
            let found = match path.split_last() {
                None => Ok(&*object),
                Some((key, parent)) => find(object, parent).and_then(|found| get(found, key)),
            };
            let found = found.map_err(|_| missing("path", sent_path))?;
            if *found == operation.value { Ok(()) } else { Err(Unfit::Test(sent_path.to_owned())) }
        }
        other => Err(Unfit::Operation(format!("Unexpected kind: {other}"))),
    }
}

/// The steps of a JSON pointer, unescaped.
fn pointer(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let (_, rest) = text.split_once('/')?;
    Some(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// Why a value cannot be stored or found at a path.
enum Misfit {
    /// The parent of the path does not exist or cannot have children.
    Parent,
    /// The parent does not accept the key or index.
    Value(String),
}

/// The index in a list with `positions` positions that a step names.
fn index(step: &str, positions: usize) -> Result<usize, Misfit> {
    let Ok(number) = step.parse::<isize>() else {
        return Err(Misfit::Value(format!("strconv.Atoi: parsing \"{step}\": invalid syntax")));
    };
    let index = match number {
        0.. => Some(number.unsigned_abs()),
        _ => positions.checked_sub(number.unsigned_abs()),
    };
    index.filter(|index| *index < positions).ok_or_else(|| {
        Misfit::Value(format!("Unable to access invalid index: {step}: invalid index referenced"))
    })
}

/// The value at a step of a container; an absent key of a map is `null`.
fn get<'a>(container: &'a Value, step: &str) -> Result<&'a Value, Misfit> {
    match container {
        Value::Object(map) => Ok(map.get(step).unwrap_or(&Value::Null)),
        Value::Array(list) => Ok(&list[index(step, list.len())?]),
        _ => Err(Misfit::Parent),
    }
}

fn find<'a>(object: &'a Value, path: &[String]) -> Result<&'a Value, Misfit> {
    path.iter().try_fold(object, |value, step| get(value, step))
}

fn find_mut<'a>(object: &'a mut Value, path: &[String]) -> Result<&'a mut Value, Misfit> {
    let found = path.iter().try_fold(object, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(list) => {
            let index = index(step, list.len()).ok()?;
            list.get_mut(index)
        }
        _ => None,
    });
    found.ok_or(Misfit::Parent)
}

fn add(object: &mut Value, path: &[String], value: Value) -> Result<(), Misfit> {
    let (last, parent) = path.split_last().ok_or(Misfit::Parent)?;
    match find_mut(object, parent)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
        }
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(last, list.len() + 1).map_err(|misfit| match misfit {
                Misfit::Value(problem) if problem.starts_with("strconv") => Misfit::Value(format!(
                    "value was not a proper array index: '{last}': {problem}"
                )),
                other => other,
            })?;
            list.insert(index, value);
        }
        _ => return Err(Misfit::Parent),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &[String]) -> Result<Value, Misfit> {
    let (last, parent) = path.split_last().ok_or(Misfit::Parent)?;
    match find_mut(object, parent)? {
        Value::Object(map) => map.remove(last).ok_or_else(|| {
            Misfit::Value(format!("Unable to remove nonexistent key: {last}: missing value"))
        }),
        Value::Array(list) => {
            let index = index(last, list.len())?;
            Ok(list.remove(index))
        }
        _ => Err(Misfit::Parent),
    }
}

fn replace(object: &mut Value, path: &[String], value: Value) -> Result<(), Misfit> {
    let Some((last, parent)) = path.split_last() else {
        if !value.is_object() && !value.is_array() {
            return Err(Misfit::Parent);
        }
        *object = value;
        return Ok(());
    };
    match find_mut(object, parent)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
        }
        Value::Array(list) => {
            let index = index(last, list.len())?;
            list[index] = value;
        }
        _ => return Err(Misfit::Parent),
    }
    Ok(())
}

/// The approximate encoded size in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(k, v)| k.len() + 4 + size(v)).sum::<usize>(),
        _ => 5,
    }
}
