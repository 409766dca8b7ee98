//! Guarantees of the embedded implementation only: its file, its lock, its limits.

mod damage;
mod file;
mod limits;
mod room;
mod time;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::StreamExt as _;
use tempfile::TempDir;

use super::{EmbeddedConfig, EmbeddedStorage};
use crate::{Event, Expect, KeyValue, Storage as _, StorageError, WatchItem, WatchStream};

/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(30);

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Short ticks, so that tests do not wait for housekeeping.
fn config() -> EmbeddedConfig {
    EmbeddedConfig { tick: Duration::from_millis(10), ..EmbeddedConfig::default() }
}

fn open(dir: &TempDir) -> Arc<EmbeddedStorage> {
    EmbeddedStorage::open(dir.path(), config()).unwrap()
}

/// Writes `key`, in any state.
async fn put(storage: &EmbeddedStorage, key: &str, value: impl Into<Bytes>) -> KeyValue {
    let found = storage.get(key, None).await.unwrap().1;
    let expect = found.map_or(Expect::Absent, |found| Expect::Revision(found.mod_revision));
    storage.put(key, value.into(), expect, None).await.unwrap()
}

async fn get(storage: &EmbeddedStorage, key: &str) -> Option<KeyValue> {
    storage.get(key, None).await.unwrap().1
}

/// Waits until `state` returns `Ok`; panics with `what` and its last error otherwise.
async fn wait_for<T: std::fmt::Debug>(what: &str, mut state: impl AsyncFnMut() -> Result<(), T>) {
    let started = tokio::time::Instant::now();
    let mut every = tokio::time::interval(Duration::from_millis(5));
    loop {
        match state().await {
            Ok(()) => return,
            Err(last) if started.elapsed() > WAIT_MAX => panic!("{what}: {last:?}"),
            Err(_) => drop(every.tick().await),
        }
    }
}

/// The events of the stream up to the one that `is_last`, or the error that ended it before.
async fn events_until(
    watch: &mut WatchStream,
    is_last: impl Fn(&Event) -> bool,
) -> Result<Vec<Arc<Event>>, StorageError> {
    let mut all = Vec::new();
    loop {
        let item = tokio::time::timeout(WAIT_MAX, watch.next()).await.unwrap();
        if let WatchItem::Events(events) = item.unwrap()? {
            all.extend(events);
        }
        if all.last().is_some_and(|event: &Arc<Event>| is_last(event)) {
            return Ok(all);
        }
    }
}

/// A wall clock that is set by hand, in milliseconds since 1970.
#[derive(Clone, Default)]
struct HandClock(Arc<AtomicI64>);

impl HandClock {
    fn at(millis: i64) -> Self {
        Self(Arc::new(AtomicI64::new(millis)))
    }

    fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    fn config(&self) -> EmbeddedConfig {
        let millis = Arc::clone(&self.0);
        let now = move || -> SystemTime {
            let millis = millis.load(Ordering::SeqCst);
            let since = Duration::from_millis(millis.unsigned_abs());
            if millis < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since }
        };
        EmbeddedConfig { wall_clock: Arc::new(now), ..config() }
    }
}
