//! The management API's caches as what indexes of the REST view are made from.

use std::sync::Arc;

use apiserver::Registry;
use apiserver::registry::{Subscription, Update};
use apiserver::stored::Stored;
use futures::FutureExt;
use futures::future::BoxFuture;
use rest_view::journal::{Ended, JournalUpdate, ObjectChange, Recorded};
use rest_view::{ApiError, Follow, Journal, Key, KubeResource};

/// See [`Journal`]. The objects are those of the caches, not copies.
pub struct Caches(pub Arc<Registry>);

impl Journal for Caches {
    fn follow(&self, followed: &KubeResource) -> Option<Box<dyn Follow>> {
        let resource = self.0.find(&followed.group, &followed.plural)?;
        (resource.version == followed.version)
            .then(|| Box::new(Followed(self.0.subscribe(&resource))) as Box<dyn Follow>)
    }

    fn wait_until_current(&self) -> BoxFuture<'_, Result<(), ApiError>> {
        let fresh = self.0.fresh();
        Box::pin(async {
            fresh.await.map(drop).map_err(|status| ApiError::server_error(status.message))
        })
    }
}

struct Followed(Subscription);

impl Follow for Followed {
    fn poll_update(&mut self) -> Result<Option<JournalUpdate>, Ended> {
        let Some(update) = self.0.next().now_or_never() else { return Ok(None) };
        let pending = match update.ok_or(Ended)? {
            Update::Reset(objects) => {
                let objects = objects.iter().map(|object| self.recorded(object));
                JournalUpdate::Snapshot(objects.collect::<Result<_, _>>()?)
            }
            Update::Events(events) => {
                let changes = events.iter().map(|event| match event.deleted {
                    true => Ok(ObjectChange::Deleted(key(&event.current))),
                    false => self.recorded(&event.current).map(ObjectChange::Stored),
                });
                JournalUpdate::Changes(changes.collect::<Result<_, _>>()?)
            }
        };
        Ok(Some(pending))
    }
}

impl Followed {
    fn recorded(&self, object: &Stored) -> Result<Recorded, Ended> {
        let bytes = self.0.served(object).ok_or(Ended)?;
        Ok(Recorded { key: key(object), bytes })
    }
}

fn key(object: &Stored) -> Key {
    Key { namespace: object.namespace.to_string(), name: object.name.to_string() }
}
