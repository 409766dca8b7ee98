//! Decodes YAML like Kubernetes does. Duplicate keys are reported by the lines of their values.

use std::fmt;

use api_meta::go_text::quoted;
use api_meta::status::Status;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::{DUPLICATES_NAMED_MAX, Decoded, Duplicate};

/// The levels of a document: the parser uses more stack per level than that of JSON.
pub const DEPTH_MAX: usize = 64;
/// The levels of a document in which duplicate keys are reported by line: each uses much stack.
/// Deeper documents are refused with the parser's error.
const LINED_DEPTH_MAX: usize = 32;
/// The number of values that the aliases of a document may repeat: a few hundred bytes could expand
/// to millions.
const REPEATED_MAX: usize = 100_000;

/// Decodes one document: `0644` is octal, only `true` and `false` are booleans.
///
/// # Errors
/// 400 for text that is no UTF-8 or no valid YAML, and for documents above the limits.
pub fn yaml(body: &[u8]) -> Result<Decoded, Status> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Status::bad_request("the body of the request is not UTF-8"))?;
    let mut options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
        legacy_octal_numbers: true,
        strict_booleans: true,
    };
    let error = match serde_saphyr::from_str_with_options(text, options.clone()) {
        Ok(value) => return Ok(Decoded { value, duplicates: Vec::new() }),
        Err(error) => error,
    };
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options.budget = serde_saphyr::budget! { max_depth: LINED_DEPTH_MAX };
    match serde_saphyr::from_str_with_options::<Lined>(text, options) {
        Ok(Lined { value, mut duplicates }) if !duplicates.is_empty() => {
            duplicates.truncate(DUPLICATES_NAMED_MAX);
            Ok(Decoded { value, duplicates })
        }
        _ => {
            Err(Status::bad_request(format!("the body of the request is not valid YAML: {error}")))
        }
    }
}

/// A tree with its duplicate keys.
struct Lined {
    value: Value,
    duplicates: Vec<Duplicate>,
}

impl Lined {
    fn plain<E>(value: impl Into<Value>) -> Result<Self, E> {
        Ok(Self { value: value.into(), duplicates: Vec::new() })
    }
}

impl<'de> Deserialize<'de> for Lined {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LinedVisitor)
    }
}

struct LinedVisitor;

impl<'de> Visitor<'de> for LinedVisitor {
    type Value = Lined;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Lined, E> {
        Lined::plain(value)
    }
    fn visit_i64<E>(self, value: i64) -> Result<Lined, E> {
        Lined::plain(value)
    }
    fn visit_u64<E>(self, value: u64) -> Result<Lined, E> {
        Lined::plain(value)
    }
    fn visit_f64<E>(self, value: f64) -> Result<Lined, E> {
        Lined::plain(value)
    }
    fn visit_str<E>(self, value: &str) -> Result<Lined, E> {
        Lined::plain(value)
    }
    fn visit_unit<E>(self) -> Result<Lined, E> {
        Lined::plain(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Lined, E> {
        Lined::plain(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lined, A::Error> {
        let (mut items, mut duplicates) = (Vec::new(), Vec::new());
        while let Some(item) = seq.next_element::<Lined>()? {
            items.push(item.value);
            duplicates.extend(item.duplicates);
        }
        Ok(Lined { value: items.into(), duplicates })
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lined, A::Error> {
        let (mut object, mut duplicates) = (Map::new(), Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            let entry = map.next_value::<Spanned<Lined>>()?;
            duplicates.extend(entry.value.duplicates);
            let name = quoted(&key);
            if object.insert(key, entry.value.value).is_some() {
                let line = entry.referenced.line();
                let text = format!("line {line}: key {name} already set in map");
                duplicates.push(Duplicate::Line(text));
            }
        }
        Ok(Lined { value: object.into(), duplicates })
    }
}
