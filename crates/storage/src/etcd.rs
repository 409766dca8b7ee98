//! The implementation on an external etcd, 3.5.13 or newer, for several servers over one store.
//!
//! It is a thin client: revisions, transactions, history and expiry are etcd's own. Start reading
//! at [`EtcdStorage::connect`]; calls go through `client`, a read is in `read`, a write in `write`,
//! a watch in `watch`. The guarantees of etcd that it relies on are in
//! docs/adr/0009-etcd-storage.md.

mod client;
mod compaction;
mod config;
mod keys;
mod leases;
mod read;
mod startup;
mod watch;
mod wire;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::{
    Expect, KeyValue, RangeRequest, RangeResponse, Revision, STORED_SIZE_MAX, Storage,
    StorageError, WatchStream,
};
use client::Client;
pub use config::{EtcdConfig, EtcdConfigError, EtcdTls};
use keys::Keys;

/// State that operations and tasks share.
struct EtcdShared {
    client: Client,
    keys: Keys,
    /// The newest known compaction point; etcd's own may be newer.
    compacted: AtomicU64,
    /// The delivered revision of each watch of this process.
    watches: Mutex<Vec<tokio::sync::watch::Receiver<Revision>>>,
}

impl EtcdShared {
    fn compacted(&self) -> Revision {
        self.compacted.load(Ordering::Relaxed)
    }

    fn note_compacted(&self, revision: Revision) {
        self.compacted.fetch_max(revision, Ordering::Relaxed);
    }

    fn register(&self, reached: tokio::sync::watch::Receiver<Revision>) {
        let mut watches = self.watches.lock();
        watches.retain(|other| other.has_changed().is_ok());
        watches.push(reached);
    }
}

/// A [`Storage`] in an etcd cluster.
///
/// Any number of processes may use the same etcd at once. Dropping the storage, or
/// [`EtcdStorage::close`], ends its watches and tasks.
pub struct EtcdStorage {
    shared: Arc<EtcdShared>,
}

impl EtcdStorage {
    /// Connects, and checks that the etcd can be used. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// `Failed` when no member responds, when one is too old, when they belong to different
    /// clusters, or when an alarm is raised. The reason says what to do.
    pub async fn connect(config: EtcdConfig) -> Result<Arc<Self>, StorageError> {
        let client = Client::new(&config)?;
        startup::check(&client).await?;
        let shared = Arc::new(EtcdShared {
            client,
            keys: Keys::new(&config.key_prefix),
            compacted: AtomicU64::new(0),
            watches: Mutex::default(),
        });
        if let Some(every) = config.compact_every {
            tokio::spawn(compaction::run(Arc::downgrade(&shared), every));
        }
        Ok(Arc::new(Self { shared }))
    }

    /// Ends watches and tasks. Later operations fail with `Closed`; calling it again does nothing.
    pub fn close(&self) {
        self.shared.client.close();
    }
}

impl Storage for EtcdStorage {
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.shared.revision().boxed()
    }

    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>> {
        self.shared.get(key, at).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>> {
        self.shared.range(request).boxed()
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
        let key = key.to_owned();
        async move { self.shared.put(&key, value, expect, ttl).await }.boxed()
    }

    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>> {
        let key = key.to_owned();
        async move { self.shared.delete(&key, expect).await }.boxed()
    }

    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        watch::open(Arc::clone(&self.shared), prefix.to_owned(), after).boxed()
    }

    fn compacted(&self) -> Revision {
        self.shared.compacted()
    }

    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>> {
        self.shared.expiring().boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.shared.compact(revision).boxed()
    }
}

impl Drop for EtcdStorage {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for EtcdStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.shared.client.names().collect();
        f.debug_struct("EtcdStorage").field("members", &members).finish_non_exhaustive()
    }
}

fn failed(reason: impl Into<String>) -> StorageError {
    StorageError::Failed { reason: reason.into() }
}
