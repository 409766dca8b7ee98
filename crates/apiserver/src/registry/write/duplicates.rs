//! Owner references that stand twice.

use serde_json::Value;

/// Leaves one of equal references, and tells whose stood more than once.
pub(super) fn deduplicate(object: &mut Value) -> Option<String> {
    let references = object["metadata"].get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut repeated = Vec::new();
    for reference in references.drain(..) {
        if kept.contains(&reference) {
            repeated.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(reference);
        }
    }
    *references = kept;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}
