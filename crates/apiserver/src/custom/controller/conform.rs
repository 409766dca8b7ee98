//! Finds out whether all stored objects of a kind are as its present schema would have them, so
//! that reads need not bring them there any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::status::Status;

use crate::registry::{ListQuery, Registry};
use crate::resource::Resource;

/// Longer than any write lives that was validated by the schema before.
const AFTER_INSTALL: Duration = Duration::from_secs(90);
/// Objects looked at before others get their turn on the thread.
const BATCH: usize = 64;

/// Checks a kind some time after it was installed. `place` is its group and plural.
pub(super) async fn later(registry: Weak<Registry>, place: (String, String)) {
    let find = || registry.upgrade()?.find(&place.0, &place.1);
    let Some(before) = find() else { return };
    if !before.strategy.rewrites_on_read() {
        return;
    }
    tokio::time::sleep(AFTER_INSTALL).await;
    let (Some(resource), Some(registry)) = (find(), registry.upgrade()) else { return };
    // A newer schema has a check of its own.
    if !Arc::ptr_eq(&before, &resource) {
        return;
    }
    if let Err(status) = check(&registry, &resource).await {
        tracing::warn!(plural = place.1, %status, "cannot check stored objects against the schema");
    }
}

/// Compares every object with the form it would be served in; when none differs, the strategy is
/// told.
///
/// The schema must have been installed for so long that no write is under way that an earlier one
/// validated.
pub async fn check(registry: &Registry, resource: &Arc<Resource>) -> Result<(), Status> {
    let objects = registry.list(resource, &ListQuery::all("")).await?.items;
    for (index, stored) in objects.iter().enumerate() {
        let mut object = stored.value();
        let before = object.clone();
        resource.strategy.on_read(&mut object);
        if object != before {
            return Ok(());
        }
        if index % BATCH == BATCH - 1 {
            tokio::task::yield_now().await;
        }
    }
    resource.strategy.set_conforming();
    Ok(())
}
