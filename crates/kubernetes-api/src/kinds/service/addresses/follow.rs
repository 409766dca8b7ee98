//! Keeps true: taken is what the stored services have.

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::registry::{Registry, Subscription, Update};
use apiserver::stored::Stored;
use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{Addresses, places};

/// Writes that wait for the follower to catch up before more of them wait to ask it.
const ASKING_MAX: usize = 64;

/// Follows the services, until dropped.
pub struct AddressFollower {
    _tasks: JoinSet<()>,
}

/// Takes what the stored services have, then follows them in a task.
///
/// # Errors
/// Services are not served, or the storage cannot be read.
pub async fn start(
    registry: &Arc<Registry>,
    addresses: &Arc<Addresses>,
) -> Result<AddressFollower, Status> {
    registry.fresh().await?;
    let mut services = registry.subscribe_to("", "services")?;
    addresses.learn(services.next().await.ok_or_else(Status::unknown_resource)?);
    let (ask, asked) = mpsc::channel(ASKING_MAX);
    // A second follower of the same addresses would tell the same.
    let _ = addresses.follower.set(ask);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(registry.clone(), addresses.clone(), services, asked));
    Ok(AddressFollower { _tasks: tasks })
}

async fn follow(
    registry: Arc<Registry>,
    addresses: Arc<Addresses>,
    mut services: Subscription,
    mut asked: mpsc::Receiver<oneshot::Sender<()>>,
) {
    loop {
        tokio::select! {
            update = services.next() => match update {
                Some(update) => addresses.learn(update),
                None => return,
            },
            Some(done) = asked.recv() => {
                if let Err(status) = registry.fresh().await {
                    tracing::warn!(%status, "what deleted services had may be refused for a while");
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
        let mut taken = self.taken.lock();
        match update {
            Update::Reset(services) => {
                let known: Vec<String> = taken.stored.keys().cloned().collect();
                known.iter().for_each(|owner| taken.release(owner));
                for service in services {
                    taken.hold(&owner(&service), places(&service.value()));
                }
            }
            Update::Events(events) => {
                for event in events {
                    let service = &event.current;
                    match event.deleted {
                        true => taken.release(&owner(service)),
                        false => taken.hold(&owner(service), places(&service.value())),
                    }
                }
            }
        }
    }
}
