//! Invariant: the recorded allocations are those of the stored services.

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::registry::{Registry, Subscription, Update};
use apiserver::stored::Stored;
use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{Addresses, places};

/// Number of writes whose requests can wait in the channel to the follower.
const CATCH_UP_REQUESTS_MAX: usize = 64;

/// Tracks the stored services until it is dropped.
pub struct AddressFollower {
    _tasks: JoinSet<()>,
}

/// Reads the stored services, then follows them in a background task.
///
/// # Errors
/// Services are not served, or the storage cannot be read. The server must not start without it.
pub async fn start(
    registry: &Arc<Registry>,
    addresses: &Arc<Addresses>,
) -> Result<AddressFollower, Status> {
    registry.fresh().await?;
    let mut services = registry.subscribe_to("", "services")?;
    addresses.learn(services.next().await.ok_or_else(Status::unknown_resource)?);
    let (requests, receiver) = mpsc::channel(CATCH_UP_REQUESTS_MAX);
    // A second follower of the same addresses would do the same.
    let _ = addresses.follower.set(requests);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(registry.clone(), addresses.clone(), services, receiver));
    Ok(AddressFollower { _tasks: tasks })
}

async fn follow(
    registry: Arc<Registry>,
    addresses: Arc<Addresses>,
    mut services: Subscription,
    mut receiver: mpsc::Receiver<oneshot::Sender<()>>,
) {
    loop {
        tokio::select! {
            update = services.next() => match update {
                Some(update) => addresses.learn(update),
                None => return,
            },
            Some(done) = receiver.recv() => {
                if let Err(status) = registry.fresh().await {
                    tracing::warn!(%status, "the allocations of deleted services may stay reserved for a while");
                }
                while let Some(Some(update)) = services.next().now_or_never() {
                    addresses.learn(update);
                }
                let _ = done.send(());
            }
        }
    }
}

impl Addresses {
    fn learn(&self, update: Update) {
        let owner = |service: &Stored| format!("{}/{}", service.namespace, service.name);
        let mut allocations = self.allocations.lock();
        match update {
            Update::Reset(services) => {
                let known: Vec<String> = allocations.stored.keys().cloned().collect();
                known.iter().for_each(|owner| allocations.release(owner));
                for service in services {
                    allocations.hold(&owner(&service), places(&service.value()));
                }
            }
            Update::Events(events) => {
                for event in events {
                    let service = &event.current;
                    match event.deleted {
                        true => allocations.release(&owner(service)),
                        false => allocations.hold(&owner(service), places(&service.value())),
                    }
                }
            }
        }
    }
}
