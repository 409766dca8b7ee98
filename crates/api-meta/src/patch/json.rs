//! JSON patch (RFC 6902), with the ways of upstream's library beyond it:
//!
//! - `replace` of an absent map key adds it, and a `value` that is not there is `null`;
//! - `copy` of an absent map key copies `null`, and such a key passes a `test` for `null`;
//! - numbers before a list's beginning count from its end, `-1` being the last element, or the place
//!   after it where one is added;
//! - the whole document, whose path is empty, can be tested and replaced, and nothing else;
//! - what stands before the first `/` of a path means nothing.

use serde::Deserialize;
use serde_json::Value;

use super::{COPY_SIZE_MAX, PatchError};
use crate::decode;

/// Operations that one patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// Levels of nesting that an object may have between operations.
const PATCHED_DEPTH_MAX: usize = decode::DEPTH_MAX + decode::OWNERS_DEPTH;
/// How often one patch may come so near to the limit that the whole object is walked to know.
const WALKS_MAX: usize = 100;

#[derive(Clone, Debug, Default, Deserialize)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    #[serde(default)]
    value: Value,
}

fn decode_operations(document: &Value) -> Result<Vec<Operation>, PatchError> {
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
    let operation = |item| Option::<Operation>::deserialize(item).map(Option::unwrap_or_default);
    let operations: Result<_, _> = items.iter().map(operation).collect();
    operations.map_err(|error| malformed(format!("json: cannot unmarshal patch: {error}")))
}

/// Whether a document is a JSON patch at all; it may still not fit an object.
///
/// # Errors
/// `Malformed` when it is no list of operations, `TooManyOperations`.
pub fn check_json_patch(document: &Value) -> Result<(), PatchError> {
    decode_operations(document).map(drop)
}

/// Why an operation does not fit an object, in the words of upstream's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A test found another value.
    #[error("testing value {0} failed: test failed")]
    Test(String),
    #[error("{0}")]
    Operation(String),
}

/// Applies all operations in order.
///
/// # Errors
/// As [`check_json_patch`], and `Rejected` when an operation does not fit; the object is then
/// partly changed.
pub fn json_patch(object: &mut Value, document: &Value) -> Result<(), PatchError> {
    let operations = decode_operations(document)?;
    apply_all(object, &operations).map_err(|_| PatchError::Rejected)
}

/// As [`json_patch`], and says which operation does not fit and why.
///
/// # Errors
/// The document is no patch, or an operation does not fit.
pub fn json_patch_explained(object: &mut Value, document: &Value) -> Result<(), Unfit> {
    let operations =
        decode_operations(document).map_err(|error| Unfit::Operation(error.to_string()))?;
    apply_all(object, &operations)
}

fn apply_all(object: &mut Value, operations: &[Operation]) -> Result<(), Unfit> {
    let mut copied = 0;
    let mut depth = Depth { bound: decode::depth(object), walks: 0 };
    for operation in operations {
        depth.check(object)?;
        apply(object, operation, &mut copied)?;
        depth.grow(operation);
    }
    depth.check(object)
}

/// How deep the object may be by now.
struct Depth {
    /// Invariant: the object is not deeper.
    bound: usize,
    walks: usize,
}

impl Depth {
    /// Refuses an object that is too deep, before anything can be put into its depths.
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

    fn grow(&mut self, operation: &Operation) {
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

fn apply(object: &mut Value, operation: &Operation, copied: &mut usize) -> Result<(), Unfit> {
    let op = operation.op.as_deref().unwrap_or_default();
    let told = operation.path.as_deref().unwrap_or_default();
    let told_from = operation.from.as_deref().unwrap_or_default();
    let missing = |what: &str, path: &str| {
        let text = format!("doc is missing {what}: {path}: missing value");
        Unfit::Operation(format!("{op} operation does not apply: {text}"))
    };
    let failed = |path: &str, problem: &str| {
        Unfit::Operation(format!("error in {op} for path: '{path}': {problem}"))
    };
    let unfit = |misfit, missing_path: Unfit| match misfit {
        Misfit::Parent => missing_path,
        Misfit::Place(problem) => failed(told, &problem),
    };
    let path = operation.path.as_deref().and_then(pointer);
    let path = path.ok_or_else(|| missing("path", &format!("\"{told}\"")))?;
    let from = || {
        let from = operation.from.as_deref().and_then(pointer);
        from.ok_or_else(|| missing("from path", told_from))
    };
    let value = || operation.value.clone();
    match op {
        "add" => add(object, &path, value())
            .map_err(|misfit| unfit(misfit, missing("path", &format!("\"{told}\"")))),
        "remove" => remove(object, &path)
            .map(drop)
            .map_err(|misfit| unfit(misfit, missing("path", &format!("\"{told}\"")))),
        "replace" => replace(object, &path, value()).map_err(|misfit| match misfit {
            Misfit::Parent => missing("path", told),
            Misfit::Place(_) => missing("key", told),
        }),
        "move" => {
            let from = from()?;
            let moved = remove(object, &from).map_err(|misfit| match misfit {
                Misfit::Parent => missing("from path", told_from),
                Misfit::Place(problem) => failed(from.last().map_or("", String::as_str), &problem),
            })?;
            add(object, &path, moved)
                .map_err(|misfit| unfit(misfit, missing("destination path", told)))
        }
        "copy" => {
            let from = from()?;
            let found = from.split_last().ok_or(Misfit::Parent);
            let source = found.and_then(|(key, parent)| get(find(object, parent)?, key));
            let source = source.map_err(|_| missing("from path", told_from))?;
            *copied += size(source);
            if *copied > COPY_SIZE_MAX {
                return Err(Unfit::Operation(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is \
                     {copied}, exceeding the limit {COPY_SIZE_MAX}"
                )));
            }
            let copy = source.clone();
            add(object, &path, copy).map_err(|misfit| match misfit {
                Misfit::Parent => missing("destination path", told),
                Misfit::Place(problem) => {
                    Unfit::Operation(format!("error while adding value during copy: {problem}"))
                }
            })
        }
        "test" => {
            let found = match path.split_last() {
                None => Ok(&*object),
                Some((key, parent)) => find(object, parent).and_then(|found| get(found, key)),
            };
            let found = found.map_err(|_| missing("path", told))?;
            if *found == operation.value { Ok(()) } else { Err(Unfit::Test(told.to_owned())) }
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

/// Why there is no place for a value.
enum Misfit {
    /// There is nothing that it could be in.
    Parent,
    /// What it would be in does not take it.
    Place(String),
}

/// The place in a list of `places` that a step names.
fn index(step: &str, places: usize) -> Result<usize, Misfit> {
    let Ok(number) = step.parse::<isize>() else {
        return Err(Misfit::Place(format!("strconv.Atoi: parsing \"{step}\": invalid syntax")));
    };
    let index = match number {
        0.. => Some(number.unsigned_abs()),
        _ => places.checked_sub(number.unsigned_abs()),
    };
    index.filter(|index| *index < places).ok_or_else(|| {
        Misfit::Place(format!("Unable to access invalid index: {step}: invalid index referenced"))
    })
}

/// What a container holds; of a map also what it does not, which is `null`.
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
                Misfit::Place(problem) if problem.starts_with("strconv") => Misfit::Place(format!(
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
            Misfit::Place(format!("Unable to remove nonexistent key: {last}: missing value"))
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

/// About the encoded size.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(k, v)| k.len() + 4 + size(v)).sum::<usize>(),
        _ => 5,
    }
}
