//! What the server stores and does not act on: whole objects, or fields of objects. Their state is the one that they
//! would have with nothing left to do, so it is never shown without this.

use api_management::condition::FALSE;
use api_management::kept;
use serde_json::Value;

use crate::api::text;

/// How a state ends that nothing came of.
pub const NO_EFFECT: &str = "no effect yet";

/// Why the object, or a part of it, has no effect; none when all of it is acted on.
fn message(resource: &Value) -> Option<&str> {
    let mut conditions = resource["conditions"].as_array()?.iter();
    let kept = conditions.find(|condition| {
        text(condition, "type") == kept::EFFECTIVE && text(condition, "status") == FALSE
    });
    kept.map(|condition| text(condition, "message"))
}

/// The state for a table: `active`, `active, no effect yet`, `active, partly no effect yet`.
pub fn state(resource: &Value) -> String {
    let state = text(resource, "state");
    match message(resource) {
        None => state.to_owned(),
        Some(kept::MESSAGE) => format!("{state}, {NO_EFFECT}"),
        Some(_) => format!("{state}, partly {NO_EFFECT}"),
    }
}

/// Says on stderr when nothing acts on an object, or on some of its fields.
pub fn warn_if_none(resource: &Value, title: &str) {
    if let Some(message) = message(resource) {
        tell!("warning: {title}: {message}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nothing_acts_on_is_said_with_the_state() {
        let object = |message: &str| {
            let effective = json!({"type": "Effective", "status": "False", "message": message});
            json!({"state": "active", "conditions": [{"type": "Ready", "status": "True"}, effective]})
        };
        assert_eq!(state(&json!({"state": "active"})), "active");
        assert_eq!(state(&json!({"state": "active", "conditions": []})), "active");
        assert_eq!(state(&object(kept::MESSAGE)), "active, no effect yet");
        assert_eq!(
            state(&object("does not act on: resourceQuota")),
            "active, partly no effect yet"
        );
        let mut acted_on = object(kept::MESSAGE);
        acted_on["conditions"][1]["status"] = "True".into();
        assert_eq!(state(&acted_on), "active");
    }
}
