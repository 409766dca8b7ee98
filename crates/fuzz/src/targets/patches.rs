//! Patches: a document on the first line, a patch of it on the second.

use api_meta::patch::{self, ListStrategy, MergeKeys};
use serde_json::Value;

use super::documents;

/// The result equals that of an independent library.
pub fn json_patch(input: &[u8]) {
    let Some([document, operations]) = documents::<2>(input) else { return };
    let mut actual = document.clone();
    let outcome = patch::json_patch(&mut actual, &operations);
    if patch::check_json_patch(&operations).is_err() {
        assert!(outcome.is_err());
        return;
    }
    // It differs where Kubernetes' library does: a `test` of a missing value compares null, a
    // `replace` of a missing value adds it, a `copy` of one copies null, an index may begin with
    // zeros or a sign, and an element may be moved into the one that follows it.
    let Ok(reference) = serde_json::from_value::<json_patch::Patch>(operations.clone()) else {
        return;
    };
    let of_interest = |operation: &Value| {
        let pointers = [&operation["path"], &operation["from"]];
        let is_inner = match pointers.map(Value::as_str) {
            [Some(path), Some(from)] => path.len() > from.len() && path.starts_with(from),
            _ => false,
        };
        operation["op"] != "test"
            && operation["op"] != "replace"
            && !(operation["op"] == "move" && is_inner)
            && pointers.into_iter().filter_map(Value::as_str).all(|text| {
                let is_odd = |step: &str| step.len() > 1 && step.starts_with(['0', '+', '-']);
                !text.is_empty() && !text.split('/').any(is_odd)
            })
    };
    if !operations.as_array().into_iter().flatten().all(of_interest) {
        return;
    }
    let mut expected = document.clone();
    // Not the function that rolls back after a failure: it panics when an earlier operation added a
    // value behind the end of a list.
    match (outcome, json_patch::patch_unsafe(&mut expected, &reference)) {
        (Ok(()), Ok(())) => assert_eq!(actual, expected),
        (Err(_), Err(_)) => {}
        (Ok(()), Err(_)) if operations.to_string().contains("\"copy\"") => {}
        (actual, expected) => {
            panic!("{document} {operations}: actual {actual:?}, reference {expected:?}")
        }
    }
}

/// The result equals that of the other library, and applying the patch again changes nothing.
pub fn merge_patch(input: &[u8]) {
    let Some([document, patch]) = documents::<2>(input) else { return };
    let mut once = document.clone();
    if patch::merge_patch(&mut once, &patch).is_err() {
        return;
    }
    let mut twice = once.clone();
    patch::merge_patch(&mut twice, &patch).expect("it could be applied before");
    assert_eq!(once, twice);
    let mut reference = document;
    json_patch::merge(&mut reference, &patch);
    assert_eq!(once, reference);
}

/// Lists called `set…` are sets, those called `by…` have elements with a name.
struct Keys;

impl MergeKeys for Keys {
    fn list(&self, path: &[&str]) -> ListStrategy {
        match path.last() {
            Some(name) if name.starts_with("set") => ListStrategy::Set,
            Some(name) if name.starts_with("by") => ListStrategy::MergeBy("name"),
            _ => ListStrategy::Replace,
        }
    }
}

/// The result has no directives. A patch without directives is idempotent.
pub fn strategic_merge_patch(input: &[u8]) {
    let Some([document, patch]) = documents::<2>(input) else { return };
    if !document.is_object() || has_directives(&document) {
        return;
    }
    let mut once = document.clone();
    if patch::strategic_merge_patch(&mut once, &patch, &Keys).is_err() {
        return;
    }
    assert!(once.is_object());
    if has_directives(&patch) {
        return;
    }
    let mut twice = once.clone();
    if patch::strategic_merge_patch(&mut twice, &patch, &Keys).is_ok() {
        assert_eq!(once, twice, "{document} {patch}");
    }
}

fn has_directives(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(key, value)| key.starts_with('$') || has_directives(value))
        }
        Value::Array(items) => items.iter().any(has_directives),
        _ => false,
    }
}
