//! Following a resource inside the process: a full state first, then each change.

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

/// What a follower learns.
pub enum Update {
    /// The whole state; forget what was known.
    Reset(Vec<Arc<Stored>>),
    /// Changes since, in order.
    Events(Vec<Arc<CacheEvent>>),
}

impl Update {
    /// Brings what is known of each object, by its name, up to date.
    pub fn keep<T>(self, known: &mut BTreeMap<String, T>, read: impl Fn(&Stored) -> T) {
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

/// A place in a resource's history. Nothing is lost: when it falls behind it starts again with the whole state.
pub struct Subscription {
    registry: Arc<Registry>,
    resource: Arc<Resource>,
    follow: Option<Follow>,
}

struct Follow {
    cache: Arc<Cache>,
    cursor: Revision,
    newest: watch::Receiver<Revision>,
}

impl Registry {
    /// Follows all objects of a stored resource, in all namespaces.
    pub fn subscribe(self: &Arc<Self>, resource: &Arc<Resource>) -> Subscription {
        Subscription { registry: self.clone(), resource: resource.clone(), follow: None }
    }

    /// As [`Registry::subscribe`], of the resource with these names.
    ///
    /// # Errors
    /// There is none.
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
    /// The next update; `None` when the resource is served no more. Cancel-safe.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            let Some(follow) = &mut self.follow else {
                return self.reset();
            };
            follow.newest.borrow_and_update();
            match follow.cache.since(follow.cursor) {
                Since::Events(events) => match events.last() {
                    Some(last) => {
                        follow.cursor = last.revision;
                        return Some(Update::Events(events));
                    }
                    None => follow.newest.changed().await.ok()?,
                },
                Since::Gone | Since::Closed => self.follow = None,
            }
        }
    }

    /// The JSON of an object as the resource serves it; `None` when that takes a webhook.
    pub fn served(&self, object: &Stored) -> Option<Bytes> {
        let converts = self.resource.strategy.conversion().is_some();
        (!converts).then(|| served_bytes(&self.resource, object))
    }

    fn reset(&mut self) -> Option<Update> {
        let cache = self.registry.cache(&self.resource).ok()?;
        let Backend::Stored { prefix } = &self.resource.backend else { return None };
        let newest = cache.subscribe();
        let (objects, cursor) = cache.list(prefix);
        self.follow = Some(Follow { cache, cursor, newest });
        Some(Update::Reset(objects))
    }
}
