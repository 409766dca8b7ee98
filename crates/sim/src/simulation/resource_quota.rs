//! Invariant: the status of a quota reports its limits, and the usage by the objects of its
//! namespace. Admission charges the same status for each write. This controller releases the usage
//! of deleted objects, and counts objects that existed before the quota.
//!
//! It watches the whole storage, since quotas limit objects of any kind.

use std::sync::Arc;
use std::time::Duration;

use api_meta::status::Status;
use apiserver::quota;
use apiserver::registry::{ListQuery, ReadVersion, WriteTarget};
use apiserver::strategy::Operation;
use serde_json::Value;
use tokio::sync::watch;

use super::{World, tolerate, wait_until_set};

const COMPONENT: &str = "system:serviceaccount:kube-system:resourcequota-controller";
/// Changes come in bursts: delay between the first change and the count.
const SETTLE_PAUSE: Duration = Duration::from_millis(50);
/// Pause before failed work is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Counts the usage of quotas until `ended` is set. Failed counts are retried.
pub async fn run(world: Arc<World>, mut ended: watch::Receiver<bool>) {
    let mut progress = world.registry.progress();
    loop {
        progress.borrow_and_update();
        let failed = match settle(&world).await {
            Ok(()) => false,
            Err(status) => {
                tracing::warn!(%status, "cannot count the usage of quotas");
                true
            }
        };
        tokio::select! {
            () = wait_until_set(&mut ended) => return,
            changed = progress.changed(), if !failed => {
                if changed.is_err() {
                    return;
                }
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
            () = tokio::time::sleep(RETRY_PAUSE), if failed => {}
        }
    }
}

async fn settle(world: &World) -> Result<(), Status> {
    // Own writes must be in the caches, or they would be repeated.
    world.registry.fresh().await?;
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
    for quota in world.registry.list(&world.kinds.quotas, &query).await?.items {
        let seen = quota.value();
        let status = quota::status(&world.registry, &seen).await?;
        if seen["status"] == status {
            continue;
        }
        let target = WriteTarget {
            resource: &world.kinds.quotas,
            namespace: &quota.namespace,
            name: &quota.name,
        };
        let change = |now: &Value| {
            let mut new = now.clone();
            // Otherwise a write was charged meanwhile; its event triggers the next count.
            if now["metadata"]["resourceVersion"] == seen["metadata"]["resourceVersion"] {
                new["status"] = status.clone();
            }
            Ok(new)
        };
        let options = World::options(COMPONENT);
        tolerate(world.registry.modify(&target, Operation::UpdateStatus, &options, &change).await)?;
    }
    Ok(())
}
