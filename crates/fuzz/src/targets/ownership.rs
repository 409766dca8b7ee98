//! Field ownership.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::json;
use structured_merge::{ConvertError, FieldSet, Schema, Typed, Versions, Write};

use super::{documents, parts};

/// Lines: two sets encoded as `fieldsV1`. A decoded set survives a round trip, and both obey the
/// laws of sets.
pub fn field_set(input: &[u8]) {
    let [one, other] = parts::<2>(input).unwrap_or([input, b"{}"]);
    let read = |part: &[u8]| FieldSet::from_json(std::str::from_utf8(part).ok()?).ok();
    let (Some(a), Some(b)) = (read(one), read(other)) else { return };
    for set in [&a, &b] {
        assert_eq!(FieldSet::from_json(&set.to_json()).as_ref().ok(), Some(set));
        assert_eq!(FieldSet::from_value(&set.to_value()).as_ref().ok(), Some(set));
        assert_eq!(set.paths().len(), set.len());
        assert!(set.paths().iter().all(|path| set.contains(&path.0)));
    }
    assert_eq!(a.union(&b), b.union(&a));
    assert_eq!(a.intersection(&b), b.intersection(&a));
    assert_eq!(a.difference(&b).union(&a.intersection(&b)), a);
    assert!(a.difference(&b).intersection(&b).is_empty());
}

/// A field with each type of list and map.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let item =
        json!({"type": "object", "properties": {"name": text, "value": text, "more": texts}});
    let models = json!({"Root": {"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": {"type": "object"},
        "text": text, "count": {"type": "integer"}, "texts": texts,
        "whole": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "list": {"type": "array", "items": item},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "items": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}});
    let models = models.as_object().expect("written as one");
    Schema::from_openapi(models, "Root").expect("no mark is unknown")
});

struct OneVersion;

impl Versions for OneVersion {
    fn convert<'a>(&'a self, object: &Typed<'a>, version: &str) -> Result<Typed<'a>, ConvertError> {
        match version {
            "v1" => Ok(object.clone()),
            _ => Err(ConvertError::MissingVersion(version.to_owned())),
        }
    }
}

/// An object with its managers on the first line, an apply configuration on the second. Applying it
/// to the result changes nothing.
pub fn apply(input: &[u8]) {
    let Some([live, config]) = documents::<2>(input) else { return };
    if !live.is_object() || !config.is_object() {
        return;
    }
    for compiled in [false, true] {
        let write = Write {
            versions: &OneVersion,
            schema: &SCHEMA,
            api_version: "v1",
            subresource: "",
            manager: "one",
            now: Timestamp::UNIX_EPOCH,
            compiled,
        };
        let _ = write.update(Some(&live), &config);
        for live in [None, Some(&live)] {
            let Ok(once) = write.apply(live, &config, true) else { continue };
            let twice = write.apply(Some(&once.object), &config, true);
            let twice = twice.unwrap_or_else(|error| panic!("{live:?} {config}: {error}"));
            assert!(!twice.changed, "{live:?} {config}: {} {}", once.object, twice.object);
            // A manager without fields is not stored, and an object without managers was never
            // applied: then its fields get a manager.
            if !once.object["metadata"]["managedFields"].is_null() {
                assert_eq!(once.object, twice.object);
            }
        }
    }
}
