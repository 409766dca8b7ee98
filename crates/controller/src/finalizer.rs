//! Removes Drover's finalizer from a management object.
//!
//! Admission adds finalizers at creation, so no controller needs the right to add them. Only
//! management objects have them, never objects that users own.

use kube::Client;
use serde_json::{Value, json};

use crate::error::{Attempt, ReconcileError, is_code};
use crate::status::{StatusTarget, get, merge_patch};

/// Attempts to write an object that other writers keep changing.
const WRITE_TRIES_MAX: usize = 10;

/// Removes `finalizer` from the object; nothing else of it changes. Does nothing when the finalizer
/// or the object does not exist.
///
/// # Errors
/// The API refused the request, or other writers changed the object during each of 10 attempts.
/// Return the error from the reconcile, which is then retried.
pub async fn remove(
    client: &Client,
    target: &StatusTarget,
    finalizer: &str,
) -> Result<(), ReconcileError> {
    let attempt = || format!("remove finalizer \"{finalizer}\" of {}", target.path());
    for _ in 0..WRITE_TRIES_MAX {
        let object = match get(client, target.path()).await {
            Ok(object) => object,
            Err(error) if is_code(&error, 404) => return Ok(()),
            Err(error) => return Err(error).attempt(attempt),
        };
        let metadata = &object["metadata"];
        let present = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        let remaining: Vec<&Value> = present.iter().filter(|name| *name != finalizer).collect();
        if remaining.len() == present.len() {
            return Ok(());
        }
        let version = &metadata["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": remaining}});
        match merge_patch(client, target.path(), &patch).await {
            Ok(_) => return Ok(()),
            Err(error) if is_code(&error, 404) => return Ok(()),
            Err(error) if is_code(&error, 409) => {}
            Err(error) => return Err(error).attempt(attempt),
        }
    }
    Err(ReconcileError::other(attempt(), "other writers changed the object during every attempt"))
}
