//! The start of a watch at a revision that the history of the cache no longer has, but the storage
//! does.

use std::sync::Arc;
use std::time::Duration;

use api_meta::status::Status;
use futures::StreamExt;
use storage::{Revision, StorageError, WatchItem};

use super::Watcher;
use crate::cache::CacheEvent;
use crate::registry::Registry;
use crate::stored::Stored;

/// Longest catch-up from storage when a watch begins before the cache's history.
const CATCH_UP_MAX: Duration = Duration::from_secs(10);

impl Watcher {
    /// Replays from the storage the events that the history of the cache no longer has.
    pub(super) async fn catch_up(&mut self, registry: &Registry) -> Result<(), Status> {
        let until = self.cache.complete_after();
        let too_old = |oldest: Revision, cursor: Revision| {
            Status::expired(format!("too old resource version: {cursor} ({oldest})"))
        };
        let failed = |error: StorageError, cursor| match error {
            StorageError::Compacted { oldest, .. } => too_old(oldest, cursor),
            other => crate::registry::storage_status(&other),
        };
        let cursor = self.cursor;
        let mut stream = registry
            .storage()
            .watch(&self.prefix, cursor)
            .await
            .map_err(|error| failed(error, cursor))?;
        let replay = async {
            while let Some(item) = stream.next().await {
                match item.map_err(|error| failed(error, cursor))? {
                    WatchItem::Events(events) => {
                        for event in events.iter().filter(|event| event.revision <= until) {
                            self.replay(event).await;
                            self.cursor = event.revision;
                            if self.ended {
                                return Ok(());
                            }
                        }
                        if events.last().is_some_and(|last| last.revision >= until) {
                            return Ok(());
                        }
                    }
                    WatchItem::Progress(revision) if revision >= until => return Ok(()),
                    WatchItem::Progress(_) => {}
                }
            }
            Err(too_old(until, cursor))
        };
        tokio::time::timeout(CATCH_UP_MAX, replay)
            .await
            .unwrap_or_else(|_| Err(too_old(until, cursor)))?;
        self.cursor = until;
        Ok(())
    }

    async fn replay(&mut self, event: &storage::Event) {
        let decode = |item: &Option<storage::KeyValue>| {
            let item = item.as_ref()?;
            Stored::decode(item, &self.resource.selectable_fields).ok().map(Arc::new)
        };
        let (previous, current) = (decode(&event.previous), decode(&event.current));
        if let Some(event) = CacheEvent::new(event.revision, previous, current) {
            self.queue_event(&event).await;
        }
    }
}
