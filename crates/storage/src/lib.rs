//! Revisioned key-value storage, shaped like etcd v3: one global revision counter, ranges at a
//! revision, compare-and-put, watches from a revision, compaction.
//!
//! The trait is [`Storage`]; [`embedded`] is the implementation on SQLite, [`etcd`] the one on an
//! external etcd, [`encryption`] seals the values of either. The crate knows nothing of Kubernetes:
//! keys are strings, values are bytes. Start reading at [`Storage`].

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

/// The store's logical clock. Each committed write gets the next revision; 0 is before any write.
pub type Revision = u64;

/// One live key at some revision. `Debug` shows the size of the value only, since values hold
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Arc<str>,
    pub value: Bytes,
    /// Revision of the write that created the key.
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

/// A half-open range of keys, in byte order.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    pub start: String,
    /// First key that is not included.
    pub end: String,
    /// Maximum number of items in the response; `None` is all.
    pub limit: Option<usize>,
    /// Read the state as of this revision; `None` is the newest committed one.
    pub at: Option<Revision>,
}

impl RangeRequest {
    /// All keys that begin with `prefix`, at the newest revision. Panics when `prefix` is empty.
    pub fn prefix(prefix: &str) -> Self {
        Self { start: prefix.to_owned(), end: prefix_end(prefix), limit: None, at: None }
    }
}

/// The first key after every key that begins with `prefix`, in byte order.
///
/// # Panics
/// `prefix` is empty: no key is after all keys.
pub fn prefix_end(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // UTF-8 sorts like its code points; no string is in the gap of the surrogates.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            end.push(next);
            return end;
        }
    }
    panic!("a prefix has a character below the last code point");
}

/// The response to a [`RangeRequest`].
#[derive(Clone, Debug)]
pub struct RangeResponse {
    /// The revision at which the items were read.
    pub revision: Revision,
    /// Live keys, sorted by key.
    pub items: Vec<KeyValue>,
    /// Live keys in the range after the last item, when `limit` cut the response.
    pub remaining: u64,
}

/// The precondition of a write.
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
    /// Every change up to and including this revision was delivered. Sent after each batch, and
    /// when changes of other keys raised the revision.
    Progress(Revision),
}

/// The items of a watch. The stream ends after its first error; dropping it ends the watch.
pub type WatchStream = BoxStream<'static, Result<WatchItem, StorageError>>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The precondition failed. Carries the current state, read in the same transaction.
    #[error("key is not as expected")]
    Unexpected { current: Option<KeyValue> },
    /// The requested revision was compacted: list again at the newest revision.
    #[error("revision {requested} was compacted, the oldest is {oldest}")]
    Compacted { requested: Revision, oldest: Revision },
    /// The requested revision has not been reached.
    #[error("revision {requested} is in the future, the newest is {current}")]
    Future { requested: Revision, current: Revision },
    /// The value is larger than [`VALUE_SIZE_MAX`], or than the limit of an external storage.
    #[error("value of {size} bytes is larger than the storage accepts")]
    TooLarge { size: usize },
    /// The disk is full or the file cannot grow. Reads still work; free space and write again.
    #[error("no space left to write: {reason}")]
    Full { reason: String },
    /// The watcher did not keep up and was dropped: watch again from the last delivered revision.
    #[error("watcher fell behind and was dropped")]
    Lagged,
    /// The storage was closed, or its writer ended.
    #[error("storage is closed")]
    Closed,
    /// The write may or may not have been committed. Read the key before a retry.
    #[error("outcome of the write is unknown: {reason}")]
    Unknown { reason: String },
    /// The file or the operating system failed.
    #[error("storage failed: {reason}")]
    Failed { reason: String },
}

/// Largest accepted value in bytes: a request body of 3 MiB, and the fields that the server adds.
pub const VALUE_SIZE_MAX: usize = 4 * 1024 * 1024;
/// Largest stored value: sealing adds bytes.
pub(crate) const STORED_SIZE_MAX: usize = VALUE_SIZE_MAX + encryption::OVERHEAD;

/// A revisioned store. Every acknowledged write is durable; watchers see each commit exactly once
/// and in order.
///
/// All operations may run concurrently, and none blocks the runtime's threads. Reads are
/// consistent: a read that begins after a write was acknowledged, or after any response had a
/// revision, is not older than that. Watches follow soon after: each delivers every revision that a
/// response of this storage contained, with a `Progress` that covers it. A caller that must have
/// seen a write requests the [`revision`](Self::revision) and waits for it.
///
/// Dropping a future before it is ready leaves a write's outcome unknown: all of it happens, or
/// nothing.
///
/// Any operation may fail with `Closed` or `Failed`, any write with `Full` or `Unknown`. The
/// conformance suite, [`conformance`], is the rest of the contract.
pub trait Storage: Send + Sync + 'static {
    /// The newest committed revision.
    ///
    /// # Errors
    /// `Closed` or `Failed`.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>>;

    /// Reads one key; returns the revision at which it was read, and the state if the key exists.
    ///
    /// # Errors
    /// `Compacted` or `Future` for an unavailable `at`.
    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>>;

    /// Reads the live keys of a range, sorted by key, all at one revision.
    ///
    /// The next page begins at the last key with a NUL appended, `at` the revision of the first
    /// page. The cost is proportional to the live keys of the range; at an older revision, also to
    /// the changes since then.
    ///
    /// # Errors
    /// `Compacted` or `Future` for an unavailable `at`: list again from the start.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>>;

    /// Writes `value` if `expect` holds; ready when the write is durable.
    ///
    /// `ttl`: the key is deleted, with a revision and an event of its own, this long after the
    /// write or a few seconds later. A later put replaces or clears the deadline. It survives a
    /// restart.
    ///
    /// # Errors
    /// `Unexpected` with the current state, `TooLarge` with the size; nothing was written, and no
    /// revision used. `Full`: free space. `Unknown`: read the key before a retry.
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
    /// `Unexpected` with the current state; nothing was deleted. `Unknown`: read the key before a
    /// retry.
    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>>;

    /// Watches changes under `prefix` (not empty) with a revision above `after`: first the history,
    /// then new changes, without gap or duplicate. The first item of a watch that has nothing to
    /// catch up is a `Progress`.
    ///
    /// # Errors
    /// `Compacted` when events after `after` were compacted: list again. `Future` when `after` was
    /// not reached. In the stream, `Lagged` when it is not read fast enough, and `Compacted` when
    /// compaction overtakes it.
    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>>;

    /// The oldest revision whose state can be read, as far as this process knows: other processes
    /// that share the storage may have compacted further. 0 before any compaction.
    fn compacted(&self) -> Revision;

    /// The keys that have a time to live, with the remaining time, in no order.
    ///
    /// # Errors
    /// `Closed` or `Failed`.
    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>>;

    /// Removes superseded and deleted states before `revision`, in small steps that do not delay
    /// writers. Ready when done. The state at `revision` and every event above it stay. Compacting
    /// to an older revision than before does nothing.
    ///
    /// # Errors
    /// `Future` when `revision` was not reached.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>>;
}
