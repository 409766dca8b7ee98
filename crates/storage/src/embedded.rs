//! The embedded implementation: SQLite with one writer thread and group commit.
//!
//! It is for one process on one machine: the file is locked. Start reading at
//! [`EmbeddedStorage::open`]; a write goes through `queue` to `writer` (which uses `apply`,
//! `history` and `checkpoint`), a read through `pool` to `read`, a watch lives in `watch`. The
//! format is in `file` and in docs/adr/0002-embedded-storage-format.md.

mod apply;
mod checkpoint;
mod checksum;
mod error;
mod file;
mod history;
mod pool;
mod queue;
mod read;
mod room;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::{
    Expect, KeyValue, RangeRequest, RangeResponse, Revision, STORED_SIZE_MAX, Storage,
    StorageError, WatchStream,
};
use pool::{Cost, ReadPool};
use queue::{WriteOperation, WriteQueue};
use read::Bounds;
use watch::Hub;
use writer::StorageWriter;

/// The clock that measures deadlines.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Limits and timing of an [`EmbeddedStorage`]. The defaults suit a server.
#[derive(Clone)]
pub struct EmbeddedConfig {
    /// Revisions younger than this stay readable and watchable, within the limits below. Older ones
    /// are compacted. Ages count from the start of the process. Default 5 min.
    pub history_keep: Duration,
    /// This many of the newest revisions are stored at any age. The default is 0: clients expect
    /// lists that they did not read to their end to expire.
    pub history_revisions_min: u64,
    /// Maximum number of stored revisions, at any age. Takes precedence over `history_keep`.
    pub history_revisions_max: u64,
    /// Approximate maximum bytes of values in the history. Takes precedence over `history_keep`.
    pub history_bytes_max: u64,
    /// Reader threads, each with a connection; at least two.
    pub readers: usize,
    /// SQLite's page cache of the writer, in bytes.
    pub cache_bytes_writer: usize,
    /// SQLite's page cache of each reader, in bytes.
    pub cache_bytes_reader: usize,
    /// Maximum size of the database file in bytes; writes beyond it fail with `Full`. `None`:
    /// limited by the disk.
    pub file_size_max: Option<u64>,
    /// Maximum events that wait for one watcher. A slower watcher is dropped with `Lagged`.
    pub watch_queue_events_max: usize,
    /// How often an idle writer checks for history to compact and keys to expire. A key expires at
    /// most this late.
    pub tick: Duration,
    /// The clock of deadlines. When it jumps, keys expire sooner or later, without other effects.
    pub wall_clock: WallClock,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            // kube-apiserver compacts every five minutes, independent of the number of revisions.
            history_keep: Duration::from_secs(300),
            history_revisions_min: 0,
            history_revisions_max: 100_000,
            history_bytes_max: 256 * 1024 * 1024,
            readers: 3,
            cache_bytes_writer: 4 * 1024 * 1024,
            cache_bytes_reader: 512 * 1024,
            file_size_max: None,
            watch_queue_events_max: 10_000,
            tick: Duration::from_secs(1),
            wall_clock: Arc::new(SystemTime::now),
        }
    }
}

/// What the threads and the watches share.
struct EmbeddedShared {
    committed: AtomicU64,
    compacted: AtomicU64,
    queue: WriteQueue,
    hub: Hub,
    pool: Arc<ReadPool>,
}

impl EmbeddedShared {
    fn committed_revision(&self) -> Revision {
        self.committed.load(Ordering::Acquire)
    }

    /// Readers may see a commit before the writer publishes it; the first of them raises the
    /// number.
    fn set_committed(&self, revision: Revision) {
        self.committed.fetch_max(revision, Ordering::AcqRel);
    }

    fn set_compacted(&self, revision: Revision) {
        self.compacted.store(revision, Ordering::Release);
    }
}

/// A [`Storage`] in one SQLite file.
///
/// All clones of the `Arc` are one storage. Dropping the last one ends the threads after the queued
/// writes, and releases the file; watches end with `Closed`.
pub struct EmbeddedStorage {
    shared: Arc<EmbeddedShared>,
    wall_clock: WallClock,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<file::FileLock>>,
}

impl EmbeddedStorage {
    /// Opens the storage at `path`, or creates it: a file if the name ends in `.db`, otherwise a
    /// directory.
    ///
    /// Blocks for a few milliseconds; after a crash also for the recovery of the write-ahead log.
    ///
    /// # Errors
    /// `Failed` when another process (or another handle of this process) has the storage open, when
    /// it belongs to another program or has a newer format, or when the operating system refuses.
    /// The reason says which.
    pub fn open(path: &Path, config: EmbeddedConfig) -> Result<Arc<Self>, StorageError> {
        let (lock, database, connection) = file::open(path, &config)?;
        let bounds = Bounds::read(&connection)?;
        let (pool, mut threads) = ReadPool::start(&database, &config)?;
        let shared = Arc::new(EmbeddedShared {
            committed: AtomicU64::new(bounds.newest),
            compacted: AtomicU64::new(bounds.oldest),
            queue: WriteQueue::new(),
            hub: Hub::new(bounds.newest, config.watch_queue_events_max),
            pool,
        });
        let wall_clock = Arc::clone(&config.wall_clock);
        let started =
            StorageWriter::start(connection, &database, bounds, Arc::clone(&shared), config);
        threads.push(started.inspect_err(|_| shared.pool.close())?);
        let (threads, lock) = (Mutex::new(threads), Mutex::new(Some(lock)));
        Ok(Arc::new(Self { shared, wall_clock, threads, lock }))
    }

    /// Finishes the queued writes, ends the threads and releases the file. Later operations fail
    /// with `Closed`. Blocks until done; calling it again does nothing.
    pub fn close(&self) {
        self.shared.queue.close();
        for thread in self.threads.lock().drain(..).rev() {
            if thread.join().is_err() {
                tracing::error!("a storage thread panicked");
            }
        }
        self.lock.lock().take();
    }

    /// The compaction point: the oldest revision whose state can be read.
    ///
    /// # Errors
    /// `Closed`, or `Failed` when the file cannot be read; retrying does not help.
    pub async fn compacted_revision(&self) -> Result<Revision, StorageError> {
        let bounds = |connection: &_| Ok(Bounds::read(connection)?);
        Ok(self.shared.pool.read(Cost::Quick, bounds).await?.oldest)
    }

    async fn get_at(
        &self,
        key: Arc<str>,
        at: Option<Revision>,
    ) -> Result<(Revision, Option<KeyValue>), StorageError> {
        let job = move |connection: &_| read::get(connection, &key, at);
        let (revision, found, bounds) = self.shared.pool.read(Cost::Quick, job).await?;
        self.shared.set_committed(bounds.newest);
        Ok((revision, found))
    }

    async fn range_at(&self, request: RangeRequest) -> Result<RangeResponse, StorageError> {
        let job = move |connection: &_| read::range(connection, &request);
        let (response, bounds) = self.shared.pool.read(Cost::Long, job).await?;
        self.shared.set_committed(bounds.newest);
        Ok(response)
    }

    async fn deadlines(&self) -> Result<Vec<(String, Duration)>, StorageError> {
        let now = writer::milliseconds((self.wall_clock)());
        let deadlines = self.shared.pool.read(Cost::Long, read::deadlines).await?;
        let left = |at: i64| Duration::from_millis(u64::try_from(at - now).unwrap_or_default());
        Ok(deadlines.into_iter().map(|(key, deadline)| (key, left(deadline))).collect())
    }
}

impl Storage for EmbeddedStorage {
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        let closed = self.shared.queue.is_closed();
        let newest =
            if closed { Err(StorageError::Closed) } else { Ok(self.shared.committed_revision()) };
        futures::future::ready(newest).boxed()
    }

    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>> {
        self.get_at(key.into(), at).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>> {
        self.range_at(request).boxed()
    }

    fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<KeyValue, StorageError>> {
        let size = value.len();
        if size > STORED_SIZE_MAX {
            return futures::future::ready(Err(StorageError::TooLarge { size })).boxed();
        }
        let operation = WriteOperation::Put { key: key.into(), value, expect, ttl };
        async move {
            let event = self.shared.queue.write(operation).await?;
            Ok(event.current.clone().expect("a put leaves a state"))
        }
        .boxed()
    }

    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>> {
        let operation = WriteOperation::Delete { key: key.into(), expect };
        async move {
            let event = self.shared.queue.write(operation).await?;
            let previous = event.previous.clone().expect("a deletion finds a state");
            Ok((event.revision, previous))
        }
        .boxed()
    }

    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        watch::open(Arc::clone(&self.shared), prefix.to_owned(), after).boxed()
    }

    fn compacted(&self) -> Revision {
        self.shared.compacted.load(Ordering::Acquire)
    }

    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>> {
        self.deadlines().boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.shared.queue.compact(revision).boxed()
    }
}

impl Drop for EmbeddedStorage {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for EmbeddedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStorage")
            .field("committed", &self.shared.committed_revision())
            .finish_non_exhaustive()
    }
}
