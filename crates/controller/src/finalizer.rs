//! Taking our finalizer off a management object.
//!
//! Finalizers are put on by admission at creation, so no controller needs the right to do that; and
//! only ever on our own management objects, never on what users own.

use kube::Client;
use serde_json::{Value, json};

use crate::error::{Attempt, ReconcileError, is_code};
use crate::status::{Target, get, merge_patch};

/// Tries before giving up on a busy object.
const WRITE_TRIES_MAX: usize = 10;

/// Takes `finalizer` off the object; nothing else of it changes. Harmless when it is off already or
/// the object is gone.
///
/// # Errors
/// The API refused, or others kept being faster.
pub async fn remove(
    client: &Client,
    target: &Target,
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
        let kept: Vec<&Value> = present.iter().filter(|name| *name != finalizer).collect();
        if kept.len() == present.len() {
            return Ok(());
        }
        let version = &metadata["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": kept}});
        match merge_patch(client, target.path(), &patch).await {
            Ok(_) => return Ok(()),
            Err(error) if is_code(&error, 404) => return Ok(()),
            Err(error) if is_code(&error, 409) => {}
            Err(error) => return Err(error).attempt(attempt),
        }
    }
    Err(ReconcileError::other(attempt(), "others kept changing the object"))
}
