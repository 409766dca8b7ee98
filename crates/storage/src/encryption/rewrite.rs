//! Brings stored values to the encryption key that is written with.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};

use super::Encrypted;
use crate::{Expect, KeyValue, RangeRequest, Storage as _, StorageError};

/// Keys of one step; bounds the memory that it takes.
const PAGE_KEYS: usize = 100;
/// Writes at once: few, so that others are not kept waiting.
const WRITES: usize = 8;
/// Shortest time to live that a rewritten key gets.
const TTL_MIN: Duration = Duration::from_millis(1);

/// How far a rewriting is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Keys looked at.
    pub seen: u64,
    /// Of these, those that were plain or of another encryption key, and no longer are.
    pub rewritten: u64,
}

impl Encrypted {
    /// Seals every value anew that is plain, or sealed with another key than the first; when it
    /// returns, the other keys are needed no more. Tells `progress` of each step.
    ///
    /// A rewritten key has a new revision and an event, with the value that it had. Others may
    /// write meanwhile, if they write with the same key: their values are current. Dropping the
    /// future ends the rewriting between two writes; the next one goes on with what is left.
    ///
    /// # Errors
    /// What the storage refuses, and a value that cannot be opened.
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

    /// False when somebody else wrote or deleted the key, which is as good.
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
