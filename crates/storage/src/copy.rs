//! Copies all live keys from one storage to another, to move between the implementations.
//!
//! Clients remember revisions, so no revision may be reused: the target is first raised above the
//! source's newest revision, and its history is compacted at the end. Clients that watched or
//! listed before must list again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::{Expect, KeyValue, RangeRequest, Revision, Storage, StorageError, WatchItem};

/// Prefix of the keys that the copy itself writes. They are deleted when it succeeds.
const OWN: &str = "/copy/";
/// Marks an incomplete target; its value is the source's revision.
const UNFINISHED: &str = "/copy/unfinished";
/// Keys of one page.
const PAGE_KEYS: usize = 500;
/// Concurrent writes.
const WRITES: usize = 64;
/// Revisions after which history is compacted while the revision is raised.
const RAISE_COMPACT_EVERY: Revision = 50_000;
/// Attempts of one write whose outcome is unknown.
const WRITE_TRIES: usize = 5;
/// Shortest time to live that a copied key gets.
const TTL_MIN: Duration = Duration::from_millis(1);

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Live keys that were copied.
    pub keys: u64,
    /// Bytes of all values.
    pub bytes: u64,
    /// Keys with a time to live, which continues in the target.
    pub expiring: u64,
    /// The revision at which the source was read.
    pub source_revision: Revision,
    /// The target's newest revision, which is above the source's.
    pub target_revision: Revision,
}

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Nothing was written.
    #[error("the target is not empty: it has the key \"{key}\"; name an empty one")]
    NotEmpty { key: String },
    /// Nothing was written.
    #[error("the target holds a copy that did not end; empty it, then copy again")]
    Unfinished,
    /// The target is not complete.
    #[error(
        "the source changed while it was copied (\"{key}\" at revision {revision}); stop every \
         server that uses it, empty the target, then copy again"
    )]
    SourceChanged { key: String, revision: Revision },
    #[error("cannot read the source")]
    Source(#[source] StorageError),
    #[error("cannot write the target; it is not complete: empty it, then copy again")]
    Target(#[source] StorageError),
}

/// Whether the storage is the target of a copy that did not end, and must not be served.
///
/// # Errors
/// Those of [`Storage::get`]. Do not serve the storage.
pub async fn is_unfinished(storage: &dyn Storage) -> Result<bool, StorageError> {
    Ok(storage.get(UNFINISHED, None).await?.1.is_some())
}

/// Copies all live keys, with their remaining times to live, from `from` to the empty `to`. Neither
/// may have other writers meanwhile; on an external storage, the same keys may not.
///
/// To raise the revision of an external storage takes one write for each revision that the source
/// is ahead.
///
/// # Errors
/// The target is not empty, the source was written to, or either storage failed. The keys copied so
/// far stay, marked as unfinished: empty the target before the next attempt.
pub async fn copy(from: &dyn Storage, to: &dyn Storage) -> Result<Copied, CopyError> {
    require_empty(to).await?;
    let expiring = from.expiring().await.map_err(CopyError::Source)?;
    let expiring: HashMap<_, _> = expiring.into_iter().collect();
    let mut page = next_page(from, "", None).await?;
    let source_revision = page.revision;
    put(to, UNFINISHED, source_revision.to_string().into(), None).await?;
    raise(to, source_revision).await.map_err(CopyError::Target)?;
    let mut copied = Copied { keys: 0, bytes: 0, expiring: 0, source_revision, target_revision: 0 };
    loop {
        for item in &page.items {
            copied.keys += 1;
            copied.bytes += item.value.len() as u64;
            copied.expiring += u64::from(expiring.contains_key(&*item.key));
        }
        write_page(to, &page.items, &expiring).await?;
        let Some(last) = page.items.last().filter(|_| page.remaining > 0) else { break };
        page = next_page(from, &format!("{}\0", last.key), Some(source_revision)).await?;
    }
    require_unchanged(from, source_revision, &expiring).await?;
    copied.target_revision = finish(to).await.map_err(CopyError::Target)?;
    Ok(copied)
}

async fn next_page(
    from: &dyn Storage,
    start: &str,
    at: Option<Revision>,
) -> Result<crate::RangeResponse, CopyError> {
    let request = RangeRequest { start: start.to_owned(), limit: Some(PAGE_KEYS), at, ..all() };
    from.range(request).await.map_err(CopyError::Source)
}

fn all() -> RangeRequest {
    RangeRequest { start: String::new(), end: char::MAX.to_string(), limit: None, at: None }
}

async fn require_empty(to: &dyn Storage) -> Result<(), CopyError> {
    if is_unfinished(to).await.map_err(CopyError::Target)? {
        return Err(CopyError::Unfinished);
    }
    let first = RangeRequest { limit: Some(1), ..all() };
    let first = to.range(first).await.map_err(CopyError::Target)?;
    match first.items.first() {
        Some(item) => Err(CopyError::NotEmpty { key: item.key.to_string() }),
        None => Ok(()),
    }
}

/// Writes until the newest revision is at least `goal`.
async fn raise(to: &dyn Storage, goal: Revision) -> Result<(), StorageError> {
    let compacted = AtomicU64::new(0);
    let lanes = (0..WRITES).map(|lane| raise_lane(to, goal, lane, &compacted));
    futures::future::try_join_all(lanes).await.map(drop)
}

/// One of several writers that take revisions, each on a key of its own.
async fn raise_lane(
    to: &dyn Storage,
    goal: Revision,
    lane: usize,
    compacted: &AtomicU64,
) -> Result<(), StorageError> {
    let key = format!("{OWN}revision/{lane:02}");
    let mut newest = to.revision().await?;
    while newest < goal {
        let found = to.get(&key, None).await?.1;
        let mut expect = found.map_or(Expect::Absent, |found| Expect::Revision(found.mod_revision));
        while newest < goal {
            match to.put(&key, Bytes::new(), expect, None).await {
                Ok(written) => {
                    newest = written.mod_revision;
                    expect = Expect::Revision(newest);
                }
                // Written or not, the next attempt begins with the current state.
                Err(StorageError::Unknown { .. }) => break,
                Err(error) => return Err(error),
            }
            let before = compacted.load(Ordering::Relaxed);
            if newest >= before + RAISE_COMPACT_EVERY
                && compacted
                    .compare_exchange(before, newest, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                tracing::info!(newest, goal, "raising the revision of the target");
                to.compact(newest).await?;
            }
        }
    }
    Ok(())
}

async fn write_page(
    to: &dyn Storage,
    items: &[KeyValue],
    expiring: &HashMap<String, Duration>,
) -> Result<(), CopyError> {
    futures::stream::iter(items)
        .map(|item| {
            let ttl = expiring.get(&*item.key).map(|left| (*left).max(TTL_MIN));
            put(to, &item.key, item.value.clone(), ttl)
        })
        .buffer_unordered(WRITES)
        .try_collect()
        .await
}

/// Creates a key. When the outcome is unknown, it reads the key and retries: there are no other
/// writers.
async fn put(
    to: &dyn Storage,
    key: &str,
    value: Bytes,
    ttl: Option<Duration>,
) -> Result<(), CopyError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match to.put(key, value.clone(), Expect::Absent, ttl).await {
            Ok(_) => return Ok(()),
            Err(StorageError::Unexpected { current: Some(current) })
                if tries > 1 && current.value == value =>
            {
                return Ok(());
            }
            Err(StorageError::Unknown { .. }) if tries < WRITE_TRIES => {}
            Err(error) => return Err(CopyError::Target(error)),
        }
    }
}

/// Only expiry may have changed the source.
async fn require_unchanged(
    from: &dyn Storage,
    since: Revision,
    expiring: &HashMap<String, Duration>,
) -> Result<(), CopyError> {
    let newest = from.revision().await.map_err(CopyError::Source)?;
    let mut events = from.watch("/", since).await.map_err(CopyError::Source)?;
    let mut complete = since;
    while complete < newest {
        let item = events.next().await.unwrap_or(Err(StorageError::Closed));
        match item.map_err(CopyError::Source)? {
            WatchItem::Progress(revision) => complete = revision,
            WatchItem::Events(events) => {
                let changed = events
                    .iter()
                    .find(|event| event.current.is_some() || !expiring.contains_key(&*event.key));
                if let Some(event) = changed {
                    let (key, revision) = (event.key.to_string(), event.revision);
                    return Err(CopyError::SourceChanged { key, revision });
                }
            }
        }
    }
    Ok(())
}

/// Removes the keys that the copy wrote for itself, and compacts the history.
async fn finish(to: &dyn Storage) -> Result<Revision, StorageError> {
    let own = to.range(RangeRequest::prefix(OWN)).await?;
    // The mark is removed last, independent of its sort order.
    let (mark, others): (Vec<_>, Vec<_>) =
        own.items.into_iter().partition(|item| &*item.key == UNFINISHED);
    for item in others {
        to.delete(&item.key, item.mod_revision).await?;
    }
    to.compact(to.revision().await?).await?;
    for item in mark {
        to.delete(&item.key, item.mod_revision).await?;
    }
    to.revision().await
}
