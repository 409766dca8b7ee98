//! Schemas of custom resources, and paths into objects.

use serde_json::Value;
use structural_schema::{JsonPath, Schema, check};

use super::{documents, parts};

/// A schema on the first line, an object on the second. A valid schema can be compiled;
/// pruning and defaulting are idempotent; a pruned object has no unknown fields; an unchanged value
/// passes ratcheting validation.
pub fn schema(input: &[u8]) {
    let Some([schema, object]) = documents::<2>(input) else { return };
    let compiled = Schema::compile(&schema);
    if !check(&schema, "schema").is_empty() {
        return;
    }
    let compiled = compiled.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let mut pruned = object;
    let unknown = compiled.unknown_fields(&pruned);
    let before = pruned.clone();
    compiled.prune(&mut pruned);
    assert!(!unknown.is_empty() || pruned == before, "{schema} {before}: {pruned}");
    assert_eq!(compiled.unknown_fields(&pruned), [""; 0], "{schema} {before}: {pruned}");
    let mut again = pruned.clone();
    compiled.prune(&mut again);
    assert_eq!(pruned, again);
    compiled.default(&mut pruned);
    let mut again = pruned.clone();
    compiled.default(&mut again);
    assert_eq!(pruned, again, "{schema}");
    let _ = compiled.validate(&pruned, None);
    if !compiled.has_rules() {
        assert_eq!(compiled.validate(&pruned, Some(&pruned)), []);
    }
}

/// A path on the first line, an object after it. The result is in the object.
pub fn json_path(input: &[u8]) {
    let Some([path, object]) = parts::<2>(input) else { return };
    let Ok(Ok(path)) = std::str::from_utf8(path).map(JsonPath::parse) else { return };
    let Ok(object) = serde_json::from_slice::<Value>(object) else { return };
    let found = path.find(&object);
    assert_eq!(path.first(&object), found.first().copied());
    if let Some(fields) = path.fields() {
        let at = fields.iter().try_fold(&object, |value, field| value.get(field));
        assert_eq!(found.first().copied(), at, "{fields:?}");
    }
}
