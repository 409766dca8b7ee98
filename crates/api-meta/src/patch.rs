//! The patch formats of the Kubernetes API on dynamic objects: JSON patch, merge patch, strategic
//! merge patch.
//!
//! Pure: the caller decodes, applies to the object in the version of the request, and validates
//! afterwards.

mod json;
mod merge;
mod strategic;
#[cfg(test)]
mod tests;

pub use json::{OPERATIONS_MAX, Unfit, check_json_patch, json_patch, json_patch_explained};
pub use merge::merge_patch;
pub use strategic::{ListStrategy, MergeKeys, strategic_merge_patch};

use serde_json::Value;

use crate::decode;
use crate::status::Status;

/// Bytes that the `copy` operations of one JSON patch may add.
pub const COPY_SIZE_MAX: usize = 3 * 1024 * 1024;
/// Levels of nesting that a patch may have.
pub const DEPTH_MAX: usize = decode::DEPTH_MAX;

/// Why a patch was not applied. The object is then partly changed: drop it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The document is no patch of its kind.
    #[error("{0}")]
    Malformed(String),
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is \
         {OPERATIONS_MAX}, got {0}"
    )]
    TooManyOperations(usize),
    /// A JSON patch operation does not fit the object, or its test failed.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// A strategic merge patch uses its directives wrongly.
    #[error("{0}")]
    Directive(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => Self::bad_request(message),
            PatchError::TooManyOperations(_) => Self::too_large(message),
            PatchError::Rejected => {
                let mut status = Self::new(422, "Invalid", message);
                status.details = Some(Box::default());
                status
            }
            PatchError::Directive(_) => Self::new(500, "", message),
        }
    }
}

/// Decodes a merge or strategic merge patch, which must be a JSON object.
///
/// # Errors
/// [`PatchError::Malformed`] with the message of the endpoint: strategic patches lack the prefix
/// `error decoding patch`.
pub fn decode_object(body: &[u8], strategic: bool) -> Result<Value, PatchError> {
    let prefix = if strategic { "" } else { "error decoding patch: " };
    let patch: Value = serde_json::from_slice(body).map_err(|error| {
        PatchError::Malformed(format!("{prefix}{}", decode::syntax_problem(body, &error)))
    })?;
    match patch {
        _ if decode::object_depth(&patch) > DEPTH_MAX => {
            Err(PatchError::Malformed(format!("{prefix}{}", decode::TOO_DEEP)))
        }
        Value::Object(_) => Ok(patch),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        other => Err(PatchError::Malformed(format!(
            "{prefix}json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            decode::type_name(&other)
        ))),
    }
}

fn check_depth(depth: usize) -> Result<(), PatchError> {
    if depth > DEPTH_MAX {
        return Err(PatchError::Malformed(format!(
            "patch is nested deeper than {DEPTH_MAX} levels"
        )));
    }
    Ok(())
}
