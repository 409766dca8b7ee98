//! Follows a resource inside the process: the full state first, then each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::Status;
use bytes::Bytes;
use storage::Revision;
use tokio::sync::watch;

use crate::cache::{Cache, CacheEvent, Since};
use crate::registry::{Registry, served_bytes};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;

/// An update of a subscription.
pub enum Update {
    /// The whole state: discard what was known.
    Reset(Vec<Arc<Stored>>),
    /// The changes since the last update, in order.
    Events(Vec<Arc<CacheEvent>>),
}

impl Update {
    /// Applies the update to what is known of each object, by its name; `read` extracts it from an
    /// object.
    pub fn apply_to<T>(self, known: &mut BTreeMap<String, T>, read: impl Fn(&Stored) -> T) {
        let entry = |object: &Stored| (object.name.to_string(), read(object));
        match self {
            Self::Reset(objects) => *known = objects.iter().map(|object| entry(object)).collect(),
            Self::Events(events) => {
                for event in events {
                    if event.deleted {
                        known.remove(&*event.current.name);
                    } else {
                        known.extend([entry(&event.current)]);
                    }
                }
            }
        }
    }
}

/// A position in the history of a resource. No change is lost: a subscription that falls behind
/// starts again with the whole state.
pub struct Subscription {
    registry: Arc<Registry>,
    resource: Arc<Resource>,
    followed: Option<FollowedCache>,
}

struct FollowedCache {
    cache: Arc<Cache>,
    cursor: Revision,
    newest: watch::Receiver<Revision>,
}

impl Registry {
    /// Follows all objects of a stored resource, in all namespaces.
    pub fn subscribe(self: &Arc<Self>, resource: &Arc<Resource>) -> Subscription {
        Subscription { registry: self.clone(), resource: resource.clone(), followed: None }
    }

    /// Like [`Registry::subscribe`], for the resource with these names.
    ///
    /// # Errors
    /// 404 when it is not served.
    pub fn subscribe_to(
        self: &Arc<Self>,
        group: &str,
        plural: &str,
    ) -> Result<Subscription, Status> {
        let resource = self.find(group, plural).ok_or_else(Status::unknown_resource)?;
        Ok(self.subscribe(&resource))
    }
}

impl Subscription {
    /// The next update; `None` when the resource is no longer served. Cancel-safe.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            let Some(followed) = &mut self.followed else {
                return self.reset();
            };
            followed.newest.borrow_and_update();
            match followed.cache.since(followed.cursor) {
                Since::Events(events) => match events.last() {
                    Some(last) => {
                        followed.cursor = last.revision;
                        return Some(Update::Events(events));
                    }
                    None => followed.newest.changed().await.ok()?,
                },
                Since::Gone | Since::Closed => self.followed = None,
            }
        }
    }

    /// The JSON of an object in the version of the resource; `None` when that needs a webhook.
    pub fn served(&self, object: &Stored) -> Option<Bytes> {
        let converts = self.resource.strategy.conversion().is_some();
        (!converts).then(|| served_bytes(&self.resource, object))
    }

    fn reset(&mut self) -> Option<Update> {
        let cache = self.registry.cache(&self.resource).ok()?;
        let Backend::Stored { prefix } = &self.resource.backend else { return None };
        let newest = cache.subscribe();
        let (objects, cursor) = cache.list(prefix);
        self.followed = Some(FollowedCache { cache, cursor, newest });
        Some(Update::Reset(objects))
    }
}
