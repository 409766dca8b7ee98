//! Conditions of pods that the server itself sets.

use serde_json::{Value, json};

/// Puts a condition in the place of the one of its type, or at the end.
pub fn set_condition(status: &mut Value, condition: Value) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
}
