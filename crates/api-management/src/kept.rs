//! Objects that are only kept: stored, checked and shown, while nothing acts on them yet.
//!
//! Each says so itself, in a condition. States do not take it into account, so an object shows the state
//! that it would have with nothing left to do.

use serde_json::{Value, json};

use crate::condition::FALSE;

/// Whether what the object asks for is acted on.
pub const EFFECTIVE: &str = "Effective";
/// Reason of [`EFFECTIVE`] being false.
pub const NOT_IMPLEMENTED: &str = "NotImplemented";
/// Its message.
pub const MESSAGE: &str = "The object is stored and checked, but this version does not act on it.";

/// Puts the condition on an object that does not have it. Idempotent.
pub fn mark(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let status = map.entry("status").or_insert_with(|| json!({}));
    if status.is_null() {
        *status = json!({});
    }
    let Some(status) = status.as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut()
        && !list.iter().any(|condition| condition["type"] == EFFECTIVE)
    {
        list.push(json!({
            "type": EFFECTIVE,
            "status": FALSE,
            "reason": NOT_IMPLEMENTED,
            "message": MESSAGE,
        }));
    }
}
