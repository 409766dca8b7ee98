//! Keeps true: the status of a quota says its limits, and what the objects of its namespace take of
//! them. Admission charges the same status for each write; this gives back what is deleted, and
//! counts what was there before.
//!
//! Follows the storage as a whole, since quotas limit objects of any kind.

use std::sync::Arc;
use std::time::Duration;

use api_meta::status::Status;
use apiserver::quota;
use apiserver::registry::{ListQuery, Target, Version};
use apiserver::strategy::Operation;
use serde_json::Value;
use tokio::sync::watch;

use super::{World, fired, tolerate};

const COMPONENT: &str = "system:serviceaccount:kube-system:resourcequota-controller";
/// Changes come in bursts; count this long after the first.
const SETTLE_PAUSE: Duration = Duration::from_millis(50);
/// Pause before failed work is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub async fn run(world: Arc<World>, mut ended: watch::Receiver<bool>) {
    let mut progress = world.registry.progress();
    loop {
        progress.borrow_and_update();
        let failed = match settle(&world).await {
            Ok(()) => false,
            Err(status) => {
                tracing::warn!(%status, "cannot count what is used of quotas");
                true
            }
        };
        tokio::select! {
            () = fired(&mut ended) => return,
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
    // Own writes must be in the caches, or they would be done again.
    world.registry.fresh().await?;
    let query = ListQuery { version: Version::Any, ..ListQuery::all("") };
    for quota in world.registry.list(&world.kinds.quotas, &query).await?.items {
        let seen = quota.value();
        let status = quota::status(&world.registry, &seen).await?;
        if seen["status"] == status {
            continue;
        }
        let target = Target {
            resource: &world.kinds.quotas,
            namespace: &quota.namespace,
            name: &quota.name,
        };
        let change = |now: &Value| {
            let mut new = now.clone();
            // Else a write has been charged since; its event brings the next count.
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
