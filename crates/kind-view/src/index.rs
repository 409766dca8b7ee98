//! Lists of large kinds in clusters, without reading all objects for each page.
//!
//! A kind of a cluster gets an index when a list of it has read [`INDEXED_FROM`] objects, or any
//! objects in a list over several clusters. The index reads all objects once, follows their changes
//! and is dropped when no list uses it for [`IDLE_MAX`]. It holds the objects packed, and unpacked
//! only the fields that lists were filtered or sorted by. Until it is there, and while its watch is
//! interrupted, lists read the cluster.
//!
//! It reads as an identity of its own ([`ClusterReader`]). What the caller may see is found out for
//! each list, as the caller; everything else is left out before anything is counted.
//!
//! A list contains what the same view wrote before. What others wrote is in it as soon as the
//! cluster reports it.

mod column;
mod follow;
mod packed;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use rest_view::{ApiError, Key, KubeResource, Visible};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::follow::Change;
pub use self::packed::PackedRow;
use self::table::KindTable;
pub use self::table::TableHead;
use crate::query::Query;

/// A kind with fewer objects needs no index: reading them takes some milliseconds.
pub const INDEXED_FROM: usize = 1_000;
/// Memory of all indexes together, in bytes.
pub const INDEX_BYTES_MAX: usize = 512 * 1024 * 1024;
/// An index is dropped when no list has used it for this long.
pub const IDLE_MAX: Duration = Duration::from_mins(10);
/// A kind that could not be indexed is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The longest wait until an index has what this view wrote.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);
/// Writes that an index is waited for, at most.
const AWAITED_MAX: usize = 1_000;

static PAGES: AtomicU64 = AtomicU64::new(0);
static BUILT: AtomicU64 = AtomicU64::new(0);

/// Lists that indexes served since the process started.
pub fn pages() -> u64 {
    PAGES.load(Ordering::Relaxed)
}

/// How often all objects of a kind were read into an index since the process started.
pub fn built() -> u64 {
    BUILT.load(Ordering::Relaxed)
}

/// The access that indexes have to clusters.
pub trait ClusterReader: Send + Sync + 'static {
    /// A client that may list and watch the resource in the cluster, as an identity that has no
    /// other rights.
    ///
    /// # Errors
    /// Why the resource must not be read there, or cannot: the cluster is disconnected.
    fn client<'a>(
        &'a self,
        cluster: &'a str,
        resource: &'a KubeResource,
    ) -> BoxFuture<'a, Result<Client, String>>;

    /// Whether the cluster is connected and the resource may be read there.
    fn may_read(&self, cluster: &str, resource: &KubeResource) -> bool;
}

/// The indexes of all clusters. Clones share them.
#[derive(Clone)]
pub struct KindIndexes(Arc<Shared>);

struct Shared {
    reader: Box<dyn ClusterReader>,
    bytes: AtomicUsize,
    entries: Mutex<HashMap<IndexKey, IndexEntry>>,
}

/// Id of the cluster, and the resource.
pub type IndexKey = (String, KubeResource);

enum IndexEntry {
    Followed { indexed: Arc<Indexed>, _stop: DropGuard },
    Refused { at: Instant },
}

/// The index of one kind in one cluster.
struct Indexed {
    table: RwLock<KindTable>,
    columns: Mutex<Vec<Value>>,
    state: watch::Sender<IndexState>,
    /// The newest version that was seen.
    seen: watch::Sender<u64>,
    /// Writes of this view that may not have been seen.
    awaited: Mutex<Vec<AwaitedWrite>>,
    used_at: Mutex<Instant>,
    /// What it counts for in [`Shared::bytes`].
    counted: AtomicUsize,
    /// The kind is too large to be read for one list.
    is_needed: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexState {
    /// The objects are being read for the first time.
    Building,
    Current,
    /// Changes are not reported at the moment.
    Behind,
}

/// Why a kind has no index.
enum Refused {
    /// The cluster is away, or its owner does not let the kind be read.
    Away,
    Idle,
    Full,
    /// Its cells say how long ago something was.
    PrintsTimes,
    Failed(String),
}

/// A write of this view.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AwaitedWrite {
    /// The object has this version, or a later one.
    Stored(u64),
    /// The object no longer exists, or not in this version.
    Deleted { key: Key, version: String },
}

/// What an index has for a list.
pub struct IndexHead {
    pub head: TableHead,
    pub columns: Vec<Value>,
    pub revision: String,
}

impl KindIndexes {
    /// No indexes yet; `reader` reads for them.
    pub fn new(reader: impl ClusterReader) -> Self {
        Self(Arc::new(Shared {
            reader: Box::new(reader),
            bytes: AtomicUsize::new(0),
            entries: Mutex::default(),
        }))
    }

    /// What the list needs, of the objects that the caller may see. `None`: read the cluster.
    ///
    /// - `visible`: finds out what that is; only called when there is an index.
    /// - `cluster`: as for [`KindTable::head`].
    ///
    /// # Errors
    /// Those of `visible`.
    pub async fn head<F>(
        &self,
        key: &IndexKey,
        query: &Query,
        cluster: &Value,
        visible: impl FnOnce() -> F,
    ) -> Result<Option<IndexHead>, ApiError>
    where
        F: Future<Output = Result<Vec<Visible>, ApiError>>,
    {
        if !query.selects_by_metadata() {
            return Ok(None);
        }
        let Some(indexed) = self.ready(key) else { return Ok(None) };
        let visible = visible().await?;
        if !matches!(timeout(CATCH_UP_MAX, indexed.catch_up()).await, Ok(true)) {
            return Ok(None);
        }
        let revision = indexed.seen.borrow().to_string();
        let columns = indexed.columns.lock().clone();
        let (query, cluster, own) = (query.clone(), cluster.clone(), self.clone());
        let head = in_background(move || {
            let mut table = indexed.table.read();
            if !table.is_ready_for(&query) {
                drop(table);
                let mut changed = indexed.table.write();
                changed.prepare(&query);
                own.count_memory(&indexed, &changed);
                // No other query comes in between, which could need other columns.
                table = RwLockWriteGuard::downgrade(changed);
            }
            table.head(&query, &visible, &cluster)
        });
        let head = head.await?;
        PAGES.fetch_add(1, Ordering::Relaxed);
        Ok(Some(IndexHead { head, columns, revision }))
    }

    /// Starts to build an index, unless there is one, or there was no way lately. Must be called
    /// inside a tokio runtime. Returns whether there is one, or will be.
    pub fn request(&self, key: &IndexKey) -> bool {
        if !self.may_read(&key.0, &key.1) {
            return false;
        }
        let mut entries = self.0.entries.lock();
        match entries.get(key) {
            Some(IndexEntry::Followed { .. }) => return true,
            Some(IndexEntry::Refused { at }) if at.elapsed() < RETRY_AFTER => return false,
            _ => {}
        }
        let stop = CancellationToken::new();
        let indexed = Arc::new(Indexed::new());
        let entry =
            IndexEntry::Followed { indexed: indexed.clone(), _stop: stop.clone().drop_guard() };
        entries.insert(key.clone(), entry);
        let (own, key) = (self.clone(), key.clone());
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            let refused = follow::follow(&own, &indexed, &key.0, &key.1).await;
            own.end(&key, &indexed, &refused);
        }));
        true
    }

    /// Waits until the index is there. False: it will not be, or not within `time`.
    pub async fn wait_for(&self, key: &IndexKey, time: Duration) -> bool {
        let indexed = match self.0.entries.lock().get(key) {
            Some(IndexEntry::Followed { indexed, .. }) => indexed.clone(),
            _ => return false,
        };
        let mut state = indexed.state.subscribe();
        drop(indexed);
        let ready = state.wait_for(|state| *state == IndexState::Current);
        timeout(time, ready).await.is_ok_and(|changed| changed.is_ok())
    }

    /// Notes that the kind is too large to be read for one list.
    pub fn set_needed(&self, key: &IndexKey) {
        if let Some(indexed) = self.followed(key) {
            indexed.is_needed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the kind was too large to be read for one list, and its index is there or is built.
    pub fn is_needed(&self, key: &IndexKey) -> bool {
        self.followed(key).is_some_and(|indexed| indexed.is_needed.load(Ordering::Relaxed))
    }

    /// The next list contains the object as it was stored.
    pub fn expect_stored(&self, key: &IndexKey, object: &Value) {
        let version = object["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|text| text.parse().ok());
        if let (Some(indexed), Some(version)) = (self.followed(key), version) {
            indexed.expect(AwaitedWrite::Stored(version));
        }
    }

    /// The next list does not contain the object as it is in the index now.
    ///
    /// # Errors
    /// The server ends.
    pub async fn expect_deleted(&self, key: &IndexKey, object: Key) -> Result<(), ApiError> {
        let Some(indexed) = self.followed(key) else { return Ok(()) };
        in_background(move || {
            let version = indexed.table.read().version(&object).map(str::to_owned);
            if let Some(version) = version {
                indexed.expect(AwaitedWrite::Deleted { key: object, version });
            }
        })
        .await
    }

    fn followed(&self, key: &IndexKey) -> Option<Arc<Indexed>> {
        match self.0.entries.lock().get(key) {
            Some(IndexEntry::Followed { indexed, .. }) => Some(indexed.clone()),
            _ => None,
        }
    }

    fn ready(&self, key: &IndexKey) -> Option<Arc<Indexed>> {
        let indexed = self.followed(key)?;
        if !self.may_read(&key.0, &key.1) {
            self.end(key, &indexed, &Refused::Away);
            return None;
        }
        *indexed.used_at.lock() = Instant::now();
        let is_current = *indexed.state.borrow() == IndexState::Current;
        is_current.then_some(indexed)
    }

    async fn client(&self, cluster: &str, resource: &KubeResource) -> Result<Client, Refused> {
        match self.0.reader.client(cluster, resource).await {
            Ok(client) => Ok(client),
            Err(_) if !self.may_read(cluster, resource) => Err(Refused::Away),
            Err(why) => Err(Refused::Failed(why)),
        }
    }

    fn may_read(&self, cluster: &str, resource: &KubeResource) -> bool {
        self.0.reader.may_read(cluster, resource)
    }

    fn has_room_for(&self, more: usize) -> bool {
        self.0.bytes.load(Ordering::Relaxed) + more <= INDEX_BYTES_MAX
    }

    /// Replaces the objects of an index.
    fn publish(&self, indexed: &Indexed, table: KindTable, columns: Vec<Value>, version: &str) {
        let old = {
            let mut own = indexed.table.write();
            self.count_memory(indexed, &table);
            std::mem::replace(&mut *own, table)
        };
        *indexed.columns.lock() = columns;
        indexed.saw(version);
        BUILT.fetch_add(1, Ordering::Relaxed);
        drop(old);
    }

    fn apply(&self, indexed: &Indexed, change: Change) {
        let mut table = indexed.table.write();
        match change {
            Change::Set(object) => table.set(&object),
            Change::Removed(key) => table.remove(&key),
        }
        self.count_memory(indexed, &table);
    }

    /// Counts the memory of the index as it is now.
    fn count_memory(&self, indexed: &Indexed, table: &KindTable) {
        let size = table.size();
        let before = indexed.counted.swap(size, Ordering::Relaxed);
        self.0.bytes.fetch_add(size, Ordering::Relaxed);
        self.0.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    fn end(&self, key: &IndexKey, indexed: &Arc<Indexed>, refused: &Refused) {
        let counted = indexed.counted.swap(0, Ordering::Relaxed);
        self.0.bytes.fetch_sub(counted, Ordering::Relaxed);
        let (cluster, kind) = (&key.0, &key.1.kind);
        match refused {
            Refused::Idle | Refused::Away => {}
            Refused::Full => tracing::warn!(
                cluster,
                kind,
                limit = INDEX_BYTES_MAX,
                "no room to index a kind: its lists read the cluster, and large ones are refused"
            ),
            Refused::PrintsTimes => tracing::debug!(cluster, kind, "not indexed: it prints times"),
            Refused::Failed(why) => tracing::debug!(cluster, kind, why, "not indexed"),
        }
        let mut entries = self.0.entries.lock();
        let is_own = match entries.get(key) {
            Some(IndexEntry::Followed { indexed: own, .. }) => Arc::ptr_eq(own, indexed),
            _ => false,
        };
        if !is_own {
            return;
        }
        match refused {
            Refused::Idle | Refused::Away => drop(entries.remove(key)),
            _ => drop(entries.insert(key.clone(), IndexEntry::Refused { at: Instant::now() })),
        }
    }
}

impl Indexed {
    fn new() -> Self {
        Self {
            table: RwLock::default(),
            columns: Mutex::default(),
            state: watch::Sender::new(IndexState::Building),
            seen: watch::Sender::new(0),
            awaited: Mutex::default(),
            used_at: Mutex::new(Instant::now()),
            counted: AtomicUsize::new(0),
            is_needed: AtomicBool::new(false),
        }
    }

    fn set_state(&self, state: IndexState) {
        self.state.send_if_modified(|own| std::mem::replace(own, state) != state);
    }

    /// Everything up to this version was seen.
    fn saw(&self, version: &str) {
        if let Ok(version) = version.parse() {
            self.seen.send_replace(version);
        }
    }

    fn is_idle(&self) -> bool {
        self.used_at.lock().elapsed() > IDLE_MAX
    }

    fn expect(&self, write: AwaitedWrite) {
        let mut awaited = self.awaited.lock();
        if awaited.len() < AWAITED_MAX {
            awaited.push(write);
        }
    }

    /// Waits until the index has what this view wrote. False: it is no longer followed.
    async fn catch_up(self: &Arc<Self>) -> bool {
        let mut seen = self.seen.subscribe();
        loop {
            let version = *seen.borrow_and_update();
            if self.awaited.lock().is_empty() {
                return true;
            }
            let own = self.clone();
            match in_background(move || own.is_caught_up(version)).await {
                Ok(true) => return true,
                Ok(false) if seen.changed().await.is_ok() => {}
                _ => return false,
            }
        }
    }

    fn is_caught_up(&self, seen: u64) -> bool {
        let table = self.table.read();
        let mut awaited = self.awaited.lock();
        awaited.retain(|write| match write {
            AwaitedWrite::Stored(version) => *version > seen,
            AwaitedWrite::Deleted { key, version } => table.version(key) == Some(version),
        });
        awaited.is_empty()
    }
}

/// Does work with a table, which may have to wait for its lock, apart from what serves requests.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(ApiError::server_error)
}
