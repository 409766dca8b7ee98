//! Strategic merge patch: a merge patch that knows which lists are sets or maps, and obeys
//! directives.
//!
//! Directives: `$patch: delete|replace|merge` in a map or list element, `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`.

use serde_json::{Map, Value};

use super::{PatchError, check_depth};
use crate::decode::go_text;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

/// How a list of the patch is merged into the list of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStrategy {
    /// The patch's list replaces the object's.
    Replace,
    /// A set of scalars.
    Set,
    /// Maps with the same value of this field are the same element.
    MergeBy(&'static str),
}

/// The lists of a kind and how they are merged.
pub trait MergeKeys {
    /// `path` is the fields from the root to the list, without positions: `["spec", "containers",
    /// "ports"]`.
    fn list(&self, path: &[&str]) -> ListStrategy;
}

/// Merges `patch` into `object`.
///
/// # Errors
/// `Directive` for a wrong directive or a list element without its merge key, `Malformed` when
/// nested too deep.
pub fn strategic_merge_patch(
    object: &mut Value,
    patch: &Value,
    keys: &dyn MergeKeys,
) -> Result<(), PatchError> {
    let original = match object.take() {
        Value::Object(original) => original,
        _ => Map::new(),
    };
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("patch is not an object".to_owned()));
    };
    *object = Value::Object(Merge { keys, path: Vec::new() }.map(original, patch.clone())?);
    Ok(())
}

struct Merge<'a> {
    keys: &'a dyn MergeKeys,
    path: Vec<String>,
}

impl Merge<'_> {
    fn map(
        &mut self,
        mut original: Map<String, Value>,
        mut patch: Map<String, Value>,
    ) -> Result<Map<String, Value>, PatchError> {
        check_depth(self.path.len())?;
        match patch.remove(PATCH) {
            None => {}
            Some(Value::String(directive)) if directive == "merge" => {}
            Some(Value::String(directive)) if directive == "replace" => return Ok(patch),
            Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
            Some(directive) => {
                let shown = go_text(&directive);
                patch.insert(PATCH.to_owned(), directive);
                return Err(PatchError::Directive(format!(
                    "unknown patch type: {shown} in map: {}",
                    go_text(&Value::Object(patch))
                )));
            }
        }
        if let Some(retained) = patch.remove(RETAIN_KEYS) {
            retain_keys(&mut original, &patch, &retained)?;
        }
        let deletions = take_directives(&mut patch, DELETE_PREFIX)?;
        let orders = take_directives(&mut patch, ORDER_PREFIX)?;
        let listed: Vec<String> =
            deletions.iter().chain(&orders).map(|(field, _)| field.clone()).collect();
        for field in listed {
            // A list that only a directive names is treated as an empty patch of it.
            if original.get(&field).is_some_and(Value::is_array) {
                patch.entry(field).or_insert_with(|| Value::Array(Vec::new()));
            }
        }
        for (field, value) in patch {
            if value.is_null() {
                original.remove(&field);
                continue;
            }
            let directive = |list: &[(String, Vec<Value>)]| {
                list.iter().find(|(name, _)| *name == field).map(|(_, items)| items.clone())
            };
            let (deleted, order) = (directive(&deletions), directive(&orders));
            self.path.push(field.clone());
            let merged = match (original.remove(&field), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    Value::Object(self.map(old, new)?)
                }
                (Some(Value::Array(old)), Value::Array(new)) => {
                    Value::Array(self.list(old, new, deleted, order)?)
                }
                (_, Value::Array(new)) => {
                    let merged = self.list(Vec::new(), new, None, order)?;
                    Value::Array(merged)
                }
                // Nothing is there to be replaced.
                (_, Value::Object(new)) if new.get(PATCH).is_some_and(|how| how == "replace") => {
                    Value::Object(Map::new())
                }
                (_, new) => without_directives(new),
            };
            self.path.pop();
            original.insert(field, merged);
        }
        Ok(original)
    }

    fn list(
        &mut self,
        original: Vec<Value>,
        patch: Vec<Value>,
        deleted: Option<Vec<Value>>,
        order: Option<Vec<Value>>,
    ) -> Result<Vec<Value>, PatchError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match self.keys.list(&path) {
            ListStrategy::Replace if deleted.is_none() => {
                Ok(patch.into_iter().map(without_directives).collect())
            }
            // Only primitive lists are deleted from by value.
            ListStrategy::Replace | ListStrategy::Set => {
                let server = original.clone();
                let mut merged = original;
                merged.extend(patch.iter().cloned());
                deduplicate(&mut merged);
                let deleted = deleted.unwrap_or_default();
                merged.retain(|item| !deleted.contains(item));
                let first = order.unwrap_or(patch);
                Ok(arrange(merged, &server, &first, &|a, b| a == b))
            }
            ListStrategy::MergeBy(key) => self.keyed_list(original, patch, order, key),
        }
    }

    fn keyed_list(
        &mut self,
        original: Vec<Value>,
        patch: Vec<Value>,
        order: Option<Vec<Value>>,
        key: &'static str,
    ) -> Result<Vec<Value>, PatchError> {
        let mut merged = original.clone();
        let mut elements = Vec::new();
        let mut replace = false;
        for element in patch {
            match element.get(PATCH).map(go_text).as_deref() {
                None => elements.push(element),
                Some("replace") => {
                    replace = true;
                    let mut element = element;
                    element.as_object_mut().expect("has a field").remove(PATCH);
                    if element.get(key).is_some() {
                        elements.push(element);
                    }
                }
                Some("delete") => {
                    let value = merge_key(&element, key)?.clone();
                    merged.retain(|item| item.get(key) != Some(&value));
                }
                Some("merge") => {
                    return Err(PatchError::Directive(
                        "merging list cannot yet be specified in the patch".to_owned(),
                    ));
                }
                Some(other) => {
                    return Err(PatchError::Directive(format!(
                        "unknown patch type: {other} in map: {}",
                        go_text(&element)
                    )));
                }
            }
        }
        if replace {
            return Ok(elements);
        }
        for element in &elements {
            let value = merge_key(element, key)?;
            let new = element.as_object().expect("has its merge key");
            match merged.iter_mut().find(|item| item.get(key) == Some(value)) {
                Some(Value::Object(old)) => *old = self.map(std::mem::take(old), new.clone())?,
                _ => merged.push(Value::Object(self.map(Map::new(), new.clone())?)),
            }
        }
        let first = order.unwrap_or(elements);
        Ok(arrange(merged, &original, &first, &|a, b| a.get(key) == b.get(key)))
    }
}

fn merge_key<'a>(element: &'a Value, key: &str) -> Result<&'a Value, PatchError> {
    element.get(key).ok_or_else(|| {
        PatchError::Directive(format!(
            "map: {} does not contain declared merge key: {key}",
            go_text(element)
        ))
    })
}

/// Takes the directives with `prefix` out of a patch: the field each is about, and its list.
fn take_directives(
    patch: &mut Map<String, Value>,
    prefix: &str,
) -> Result<Vec<(String, Vec<Value>)>, PatchError> {
    let names: Vec<String> = patch.keys().filter(|k| k.starts_with(prefix)).cloned().collect();
    let mut found = Vec::new();
    for name in names {
        match patch.remove(&name) {
            Some(Value::Array(items)) => found.push((name[prefix.len()..].to_owned(), items)),
            other => {
                let shown = other.as_ref().map(go_text).unwrap_or_default();
                return Err(PatchError::Directive(format!(
                    "expecting a list for {name}, but got: {shown}"
                )));
            }
        }
    }
    Ok(found)
}

fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    retained: &Value,
) -> Result<(), PatchError> {
    let list: Vec<&str> = match retained.as_array() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => {
            return Err(PatchError::Directive(format!(
                "retainKeys directive is wrong type: {}",
                go_text(retained)
            )));
        }
    };
    let stray = patch.iter().find(|(key, value)| {
        !value.is_null() && !key.starts_with('$') && !list.contains(&key.as_str())
    });
    if let Some((key, _)) = stray {
        return Err(PatchError::Directive(format!(
            "{key} is not in the list of retained keys: {}",
            go_text(retained)
        )));
    }
    original.retain(|key, _| list.contains(&key.as_str()));
    Ok(())
}

fn deduplicate(items: &mut Vec<Value>) {
    let mut seen: Vec<Value> = Vec::new();
    items.retain(|item| {
        let new = !seen.contains(item);
        if new {
            seen.push(item.clone());
        }
        new
    });
}

/// Orders a merged list: elements of the patch in its order, the others in the server's, woven so
/// that an element
/// that the server had earlier stays earlier where that is possible. New elements come first.
fn arrange(
    merged: Vec<Value>,
    server: &[Value],
    order: &[Value],
    same: &dyn Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut patched, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    patched.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(server, item).unwrap_or(usize::MAX));
    let mut woven = Vec::with_capacity(patched.len() + others.len());
    let (mut patched, mut others) = (patched.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(ours), Some(theirs)) = (patched.peek(), others.peek()) {
        let theirs_first = match (place(server, theirs), place(server, ours)) {
            (Some(theirs), Some(ours)) => theirs < ours,
            _ => false,
        };
        woven.extend(if theirs_first { others.next() } else { patched.next() });
    }
    woven.extend(patched);
    woven.extend(others);
    woven
}

/// A value that is new to the object, without the directives inside it.
fn without_directives(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(key, value)| {
                    let directive = key == PATCH
                        || key == RETAIN_KEYS
                        || key.starts_with(DELETE_PREFIX)
                        || key.starts_with(ORDER_PREFIX);
                    !directive && !value.is_null()
                })
                .map(|(key, value)| (key, without_directives(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_directives).collect()),
        other => other,
    }
}
