//! Duplicate owner references.

use serde_json::Value;

/// Removes duplicate references; returns a warning that names them, with the text of
/// kube-apiserver.
pub(super) fn deduplicate(object: &mut Value) -> Option<String> {
    let references = object["metadata"].get_mut("ownerReferences")?.as_array_mut()?;
    let mut unique: Vec<Value> = Vec::with_capacity(references.len());
    let mut repeated = Vec::new();
    for reference in references.drain(..) {
        if unique.contains(&reference) {
            repeated.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            unique.push(reference);
        }
    }
    *references = unique;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}
