//! The problems of strict validation in a JSON document, in the order of the document.
//!
//! Kubernetes decodes the JSON of built-in kinds in one pass that finds unknown fields and
//! duplicate keys together. A tree has neither the order of keys nor the values that a later key
//! replaced, so a document with problems is parsed again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use api_meta::go_text::quoted;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{Path, Repeats, Tree};

/// The number of problems of one document that are reported, like in kube-apiserver.
const PROBLEMS_MAX: usize = 100;

/// Finds the problems of a document that was decoded before, each once. `prune` removes the fields
/// that the kind does not have. Empty for invalid JSON.
pub fn problems(document: &[u8], prune: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut parser = serde_json::Deserializer::from_slice(document);
    let whole = Tree { path: &Path::Root, repeats: Repeats::Merged };
    let Ok(mut known) = whole.deserialize(&mut parser) else { return Vec::new() };
    prune(&mut known);
    let found = RefCell::default();
    let mut parser = serde_json::Deserializer::from_slice(document);
    let walk = Walk { path: &Path::Root, known: Some(&known), found: &found };
    // The same parser has parsed the same document, so it does not fail.
    let _ = walk.deserialize(&mut parser);
    found.into_inner()
}

/// Visits a value and reports the problems below it.
struct Walk<'a> {
    path: &'a Path<'a>,
    /// The pruned value; `None` where any field is allowed.
    known: Option<&'a Value>,
    found: &'a RefCell<Vec<String>>,
}

impl Walk<'_> {
    fn report(&self, problem: &str, path: &Path<'_>) {
        let mut found = self.found.borrow_mut();
        if found.len() < PROBLEMS_MAX {
            let text = format!("{problem} {}", quoted(&path.to_string()));
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for index in 0.. {
            let path = Path::Item(self.path, index);
            let known = self.known.and_then(|known| known.get(index));
            let item = Walk { path: &path, known, found: self.found };
            if seq.next_element_seed(item)?.is_none() {
                break;
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = Path::Field(self.path, &key);
            let known = self.known.and_then(|known| known.get(&key));
            if self.known.is_some_and(Value::is_object) && known.is_none() {
                self.report("unknown field", &path);
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if seen.contains(&key) {
                self.report("duplicate field", &path);
            }
            map.next_value_seed(Walk { path: &path, known, found: self.found })?;
            seen.insert(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems when objects have the fields `a`, `b` and `list`, at any level.
    fn problems_in(document: &str) -> Vec<String> {
        fn prune(value: &mut Value) {
            match value {
                Value::Object(fields) => {
                    fields.retain(|key, _| matches!(key.as_str(), "a" | "b" | "list"));
                    fields.values_mut().for_each(prune);
                }
                Value::Array(items) => items.iter_mut().for_each(prune),
                _ => {}
            }
        }
        problems(document.as_bytes(), prune)
    }

    #[test]
    fn problems_are_in_the_order_of_the_document() {
        let document = r#"{"zoo": 1, "b": 1, "b": 2, "ant": {"a": 1, "a": 2}, "a": 1, "a": 2}"#;
        let expected = [
            r#"unknown field "zoo""#,
            r#"duplicate field "b""#,
            r#"unknown field "ant""#,
            r#"duplicate field "a""#,
        ];
        assert_eq!(problems_in(document), expected);
    }

    #[test]
    fn replaced_values_have_their_problems_reported_too() {
        let document = r#"{"a": {"x": 1, "list": [{"y": 1}, {}]}, "a": {"list": [{"z": 1}]}}"#;
        let expected = [
            r#"unknown field "a.x""#,
            r#"unknown field "a.list[0].y""#,
            r#"duplicate field "a""#,
            r#"unknown field "a.list[0].z""#,
        ];
        assert_eq!(problems_in(document), expected);
    }

    #[test]
    fn each_problem_is_reported_once_and_their_number_is_limited() {
        assert_eq!(problems_in(r#"{"x": 1, "x": 2, "x": 3}"#), [r#"unknown field "x""#]);
        let fields: Vec<String> = (0..200).map(|number| format!("\"f{number}\": 1")).collect();
        assert_eq!(problems_in(&format!("{{{}}}", fields.join(","))).len(), PROBLEMS_MAX);
    }
}
