//! A condition: one typed fact about an object, with its cause and the times of its changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times are RFC 3339 text with seconds, as existing clients parse them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Cause in one CamelCase word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Cause, for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When anything in the condition last changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_update_time: String,
    /// When the status last changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_transition_time: String,
}

/// Status of a condition that holds.
pub const TRUE: &str = "True";
/// Status of a condition that does not hold.
pub const FALSE: &str = "False";
/// Status of a condition that is in progress or cannot be observed.
pub const UNKNOWN: &str = "Unknown";

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Whether the condition exists and is `True`.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == TRUE)
}

/// Whether the condition exists and is `False`.
pub fn is_false(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == FALSE)
}
