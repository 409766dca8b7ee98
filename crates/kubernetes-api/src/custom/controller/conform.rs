//! Checks whether all stored objects of a kind conform to its current schema, so that reads need
//! not convert them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::status::Status;
use apiserver::registry::{ListQuery, Registry};
use apiserver::resource::Resource;

/// The delay of a check after the installation: longer than any write that an earlier schema
/// validated.
const AFTER_INSTALL: Duration = Duration::from_secs(90);
/// The number of objects that are checked before the task yields.
const BATCH: usize = 64;

/// Checks a kind some time after it was installed. `kind` is its group and plural.
pub(super) async fn check_after_install(registry: Weak<Registry>, kind: (String, String)) {
    let find = || registry.upgrade()?.find(&kind.0, &kind.1);
    let Some(before) = find() else { return };
    if !before.strategy.rewrites_on_read() {
        return;
    }
    tokio::time::sleep(AFTER_INSTALL).await;
    let (Some(resource), Some(registry)) = (find(), registry.upgrade()) else { return };
    // A newer schema has its own check.
    if !Arc::ptr_eq(&before, &resource) {
        return;
    }
    if let Err(status) = check(&registry, &resource).await {
        tracing::warn!(plural = kind.1, %status, "cannot check stored objects against the schema");
    }
}

/// Compares every object with its served representation. If none differs, marks the strategy as
/// conforming.
///
/// The schema must have been installed for so long that no write is in progress that an earlier one
/// validated.
///
/// # Errors
/// The objects cannot be listed; nothing is marked.
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
