//! Seals stored values with the current encryption key.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};

use super::Encrypted;
use crate::{Expect, KeyValue, RangeRequest, Storage as _, StorageError};

/// Keys of one page, which bounds memory.
const PAGE_KEYS: usize = 100;
/// Concurrent writes: few, so that other writers do not wait.
const WRITES: usize = 8;
/// Shortest time to live that a rewritten key gets.
const TTL_MIN: Duration = Duration::from_millis(1);

/// The progress of a rewrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Keys that were read.
    pub seen: u64,
    /// Keys that were plain or sealed with another encryption key, and are now sealed with the
    /// current one.
    pub rewritten: u64,
}

impl Encrypted {
    /// Seals every value that is plain or sealed with another key than the first. Once it returns,
    /// the other keys are no longer needed. It calls `progress` after each page.
    ///
    /// A rewritten key has a new revision and an event, with the same value. Other processes may
    /// write meanwhile with the same encryption key. Dropping the future ends the rewrite between
    /// two writes; the next rewrite continues with the remaining keys.
    ///
    /// # Errors
    /// The storage failed, or a value cannot be opened. Call it again after the cause is removed.
    pub async fn rewrite(
        &self,
        mut progress: impl FnMut(Rewritten),
    ) -> Result<Rewritten, StorageError> {
        let begun = Instant::now();
        let deadlines: HashMap<String, Duration> =
            self.inner.expiring().await?.into_iter().collect();
        let mut done = Rewritten::default();
        let all = RangeRequest::prefix("/");
        let mut start = all.start;
        loop {
            let page =
                RangeRequest { start, end: all.end.clone(), limit: Some(PAGE_KEYS), at: None };
            let page = self.inner.range(page).await?;
            done.seen += page.items.len() as u64;
            let Some(last) = page.items.last() else { return Ok(done) };
            start = format!("{}\0", last.key);
            let outdated =
                page.items.into_iter().filter(|item| !self.sealer.is_current(&item.value));
            let rewritten: Vec<bool> = futures::stream::iter(outdated)
                .map(|item| {
                    let left = deadlines.get(&*item.key);
                    let ttl = left.map(|left| left.saturating_sub(begun.elapsed()).max(TTL_MIN));
                    self.rewrite_one(item, ttl)
                })
                .buffer_unordered(WRITES)
                .try_collect()
                .await?;
            done.rewritten += rewritten.into_iter().filter(|rewritten| *rewritten).count() as u64;
            progress(done);
        }
    }

    /// False when another writer wrote or deleted the key, which needs no rewrite.
    async fn rewrite_one(
        &self,
        item: KeyValue,
        ttl: Option<Duration>,
    ) -> Result<bool, StorageError> {
        let expect = Expect::Revision(item.mod_revision);
        let item = self.sealer.state(item)?;
        match self.put(&item.key, item.value, expect, ttl).await {
            Ok(_) => Ok(true),
            Err(StorageError::Unexpected { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
