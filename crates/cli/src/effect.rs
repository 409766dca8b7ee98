//! Objects and fields that the server stores without acting on them. Their state looks like that of
//! a reconciled object, so it is always shown with this note.

use api_management::condition::FALSE;
use api_management::unimplemented;
use serde_json::Value;

use crate::api::text;

/// Suffix of the state of an object that nothing acts on.
pub const NO_EFFECT: &str = "no effect yet";

/// Why the object or a part of it has no effect; none if the server acts on all of it.
fn message(resource: &Value) -> Option<&str> {
    let mut conditions = resource["conditions"].as_array()?.iter();
    let effective = conditions.find(|condition| {
        text(condition, "type") == unimplemented::EFFECTIVE && text(condition, "status") == FALSE
    });
    effective.map(|condition| text(condition, "message"))
}

/// The state for a table: `active`, `active, no effect yet`, `active, partly no effect yet`.
pub fn state(resource: &Value) -> String {
    let state = text(resource, "state");
    match message(resource) {
        None => state.to_owned(),
        Some(unimplemented::MESSAGE) => format!("{state}, {NO_EFFECT}"),
        Some(_) => format!("{state}, partly {NO_EFFECT}"),
    }
}

/// Warns on stderr if nothing acts on an object, or on some of its fields.
pub fn warn_if_none(resource: &Value, title: &str) {
    if let Some(message) = message(resource) {
        notify!("warning: {title}: {message}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_shows_that_nothing_acts_on_an_object() {
        let object = |message: &str| {
            let effective = json!({"type": "Effective", "status": "False", "message": message});
            json!({"state": "active", "conditions": [{"type": "Ready", "status": "True"}, effective]})
        };
        assert_eq!(state(&json!({"state": "active"})), "active");
        assert_eq!(state(&json!({"state": "active", "conditions": []})), "active");
        assert_eq!(state(&object(unimplemented::MESSAGE)), "active, no effect yet");
        assert_eq!(
            state(&object("does not act on: resourceQuota")),
            "active, partly no effect yet"
        );
        let mut acted_on = object(unimplemented::MESSAGE);
        acted_on["conditions"][1]["status"] = "True".into();
        assert_eq!(state(&acted_on), "active");
    }
}
