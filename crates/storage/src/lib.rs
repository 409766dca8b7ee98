//! Revisioned key-value storage, shaped like etcd v3: one global revision counter, ranges at a
//! revision, compare-and-put, watches from a revision, compaction.
//!
//! The trait is [`Storage`]; [`embedded`] is the implementation on SQLite, [`etcd`] the one on an
//! external etcd, [`encryption`] seals the values of either. The crate knows nothing of Kubernetes: keys are strings, values are bytes. Start
//! reading at [`Storage`].

pub mod conformance;
pub mod copy;
pub mod embedded;
pub mod encryption;
pub mod etcd;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// The store's logical clock. Each committed write takes the next one; 0 is before any write.
pub type Revision = u64;

/// One live key at some revision. `Debug` shows the size of the value only, since values hold
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Arc<str>,
    pub value: Bytes,
    /// Revision of the write that made the key.
    pub create_revision: Revision,
    /// Revision of the newest write to the key.
    pub mod_revision: Revision,
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue")
            .field("key", &self.key)
            .field("value", &format_args!("{} bytes", self.value.len()))
            .field("create_revision", &self.create_revision)
            .field("mod_revision", &self.mod_revision)
            .finish()
    }
}

/// A half-open span of keys, in byte order.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    pub start: String,
    /// First key that is not included.
    pub end: String,
    /// Most items in the answer; `None` is all.
    pub limit: Option<usize>,
    /// Read the state as of this revision; `None` is the newest committed one.
    pub at: Option<Revision>,
}

impl RangeRequest {
    /// All keys that begin with `prefix`, which must not be empty.
    pub fn prefix(prefix: &str) -> Self {
        Self { start: prefix.to_owned(), end: prefix_end(prefix), limit: None, at: None }
    }
}

/// The first key after every key that begins with `prefix`, in byte order.
///
/// # Panics
/// When `prefix` is empty: there is no key after all keys.
pub fn prefix_end(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // UTF-8 sorts as its code points do; the gap of the surrogates has no strings in it.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            end.push(next);
            return end;
        }
    }
    panic!("a prefix has a character below the last code point");
}

/// Answer to a [`RangeRequest`].
#[derive(Clone, Debug)]
pub struct RangeResponse {
    /// The revision that the items were read at.
    pub revision: Revision,
    /// Live keys in key order.
    pub items: Vec<KeyValue>,
    /// Live keys in the range after the last item, when `limit` cut the answer.
    pub remaining: u64,
}

/// What must hold for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key exists and its newest write was at this revision.
    Revision(Revision),
}

/// One committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub revision: Revision,
    pub key: Arc<str>,
    /// State before; `None` for a creation.
    pub previous: Option<KeyValue>,
    /// State after; `None` for a deletion (also by expiry).
    pub current: Option<KeyValue>,
}

/// What a watch delivers.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// Changes in revision order; never empty. The events are shared between all watches.
    Events(Vec<Arc<Event>>),
    /// Every change up to and including this revision was delivered. Sent after each batch and when
    /// other keys moved the revision on.
    Progress(Revision),
}

/// Ends after its first error. Dropping it ends the watch.
pub type WatchStream = BoxStream<'static, Result<WatchItem, StorageError>>;

/// Why an operation did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The expectation did not hold. Carries the state found, read in the same transaction.
    #[error("key is not as expected")]
    Unexpected { current: Option<KeyValue> },
    /// The wanted revision was compacted away: list again at the newest.
    #[error("revision {wanted} was compacted, the oldest is {oldest}")]
    Compacted { wanted: Revision, oldest: Revision },
    /// The wanted revision has not been reached.
    #[error("revision {wanted} is in the future, the newest is {current}")]
    Future { wanted: Revision, current: Revision },
    /// The value is above [`VALUE_SIZE_MAX`], or above what an external storage is set to take.
    #[error("value of {size} bytes is larger than the storage takes")]
    TooLarge { size: usize },
    /// The disk is full or the file cannot grow. Reads go on; free space and write again.
    #[error("no space left to write: {reason}")]
    Full { reason: String },
    /// The watcher did not keep up and was dropped: watch again from the last delivered revision.
    #[error("watcher fell behind and was dropped")]
    Lagged,
    /// The storage was closed, or its writer ended.
    #[error("storage is closed")]
    Closed,
    /// The write may or may not have been committed. Read before trying again.
    #[error("outcome of the write is unknown: {reason}")]
    Unknown { reason: String },
    /// The file or the operating system failed.
    #[error("storage failed: {reason}")]
    Failed { reason: String },
}

/// Largest value accepted: a request body of 3 MiB plus room for what the server adds.
pub const VALUE_SIZE_MAX: usize = 4 * 1024 * 1024;
/// Where values end up they may be larger by what sealing adds.
pub(crate) const STORED_SIZE_MAX: usize = VALUE_SIZE_MAX + encryption::OVERHEAD;

/// A revisioned store. Every acknowledged write is durable; watchers see each commit exactly once
/// and in order.
///
/// All operations may run at once, and none blocks the runtime's threads. Reads are consistent: one
/// that begins after a write was acknowledged, or after a revision was seen anywhere, is not older
/// than that. Watches follow: each soon delivers every revision that an answer of this storage
/// told, with a `Progress` that covers it. Who must have seen a write asks for the
/// [`revision`](Self::revision) and waits for that.
///
/// Dropping a future before it is ready leaves a write's outcome unknown: all of it happens, or
/// nothing.
///
/// Any operation may end with `Closed` or `Failed`, any write with `Full` or `Unknown`. The
/// conformance suite, [`conformance`], says the rest in code.
pub trait Storage: Send + Sync + 'static {
    /// The newest committed revision.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// One key, with the revision that it was read at.
    ///
    /// # Errors
    /// `Compacted` or `Future` for a bad `at`.
    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>>;

    /// Live keys of a span in key order, all from one revision.
    ///
    /// The next page begins at the last key with a NUL behind it, `at` the revision of the first
    /// page. The cost follows the live keys of the span; `at` an older revision, also the changes
    /// since.
    ///
    /// # Errors
    /// `Compacted` or `Future` for a bad `at`.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>>;

    /// Writes `value` if `expect` holds; ready when the write is durable.
    ///
    /// `ttl`: the key is deleted, with a revision and an event of its own, this long after the
    /// write or some seconds later (a later put replaces or clears it). Survives a restart.
    ///
    /// # Errors `Unexpected` carries what was found, `TooLarge` the size; nothing was written, and
    /// no revision used.
    fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<KeyValue, StorageError>>;

    /// Deletes the key if its newest write was at `expect`. Returns the deletion's revision and the
    /// last state.
    ///
    /// # Errors
    /// `Unexpected` carries what was found; nothing was deleted.
    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>>;

    /// Changes under `prefix` (not empty) with a revision above `after`: what was, then what comes,
    /// without gap or duplicate. The first item of a watch that has nothing to catch up is a
    /// `Progress`.
    ///
    /// # Errors `Compacted` when events after `after` are gone, `Future` when `after` was not
    /// reached. Inside the stream `Lagged` when it is not read fast enough, `Compacted` when
    /// compaction overtakes it.
    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>>;

    /// The oldest revision whose state can be read, as far as this process knows: who shares the
    /// storage with others may not know yet how far they have compacted. 0 before any compaction.
    fn compacted(&self) -> Revision;

    /// Keys that have a time to live, with what is left of it, in no order.
    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>>;

    /// Forgets superseded and deleted states before `revision`, in small steps that do not hold up
    /// writers. Ready when done. The state at `revision` and every event above it stay. Compacting
    /// to an older revision than before does nothing.
    ///
    /// # Errors
    /// `Future` when `revision` was not reached.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>>;
}
