//! The management API's caches as what indexes of the REST view are made from.

use std::sync::Arc;

use apiserver::Registry;
use apiserver::registry::{Subscription, Update};
use apiserver::stored::Stored;
use futures::FutureExt;
use futures::future::BoxFuture;
use rest_view::journal::{Change, Ended, News, Recorded};
use rest_view::{ApiError, Follow, Journal, Key, KubeResource};

/// See [`Journal`]. The objects are those of the caches, not copies.
pub struct Caches(pub Arc<Registry>);

impl Journal for Caches {
    fn follow(&self, wanted: &KubeResource) -> Option<Box<dyn Follow>> {
        let resource = self.0.find(&wanted.group, &wanted.plural)?;
        (resource.version == wanted.version)
            .then(|| Box::new(Followed(self.0.subscribe(&resource))) as Box<dyn Follow>)
    }

    fn settled(&self) -> BoxFuture<'_, Result<(), ApiError>> {
        let fresh = self.0.fresh();
        Box::pin(async {
            fresh.await.map(drop).map_err(|status| ApiError::server_error(status.message))
        })
    }
}

struct Followed(Subscription);

impl Follow for Followed {
    fn news(&mut self) -> Result<Option<News>, Ended> {
        let Some(update) = self.0.next().now_or_never() else { return Ok(None) };
        let news = match update.ok_or(Ended)? {
            Update::Reset(objects) => {
                let objects = objects.iter().map(|object| self.recorded(object));
                News::All(objects.collect::<Result<_, _>>()?)
            }
            Update::Events(events) => {
                let changes = events.iter().map(|event| match event.deleted {
                    true => Ok(Change::Gone(key(&event.current))),
                    false => self.recorded(&event.current).map(Change::Is),
                });
                News::Changes(changes.collect::<Result<_, _>>()?)
            }
        };
        Ok(Some(news))
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
