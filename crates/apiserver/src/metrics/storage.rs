//! A storage that measures the time of its operations, by the resource of the key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use prometheus::Histogram;
use storage::{
    Expect, KeyValue, RangeRequest, RangeResponse, Revision, Storage, StorageError, WatchStream,
};

use super::Metrics;

/// The histograms of one resource.
struct Timed {
    get: Histogram,
    list: Histogram,
    create: Histogram,
    update: Histogram,
    delete: Histogram,
}

/// The histograms of all resources, by the prefix of their keys.
#[derive(Default)]
pub struct Timers(RwLock<BTreeMap<String, Arc<Timed>>>);

impl Timers {
    /// From now on, operations on keys under `prefix` count for this resource.
    pub fn add(&self, metrics: &Metrics, prefix: &str, group: &str, resource: &str) {
        let of = |operation| metrics.storage.with_label_values(&[group, operation, resource]);
        let timed = Timed {
            get: of("get"),
            list: of("list"),
            create: of("create"),
            update: of("update"),
            delete: of("delete"),
        };
        self.0.write().insert(prefix.to_owned(), Arc::new(timed));
    }

    fn timed_resource(&self, key: &str) -> Option<Arc<Timed>> {
        let timers = self.0.read();
        let upto = (std::ops::Bound::Unbounded, std::ops::Bound::Included(key));
        let (prefix, timed) = timers.range::<str, _>(upto).next_back()?;
        key.starts_with(prefix.as_str()).then(|| timed.clone())
    }
}

/// Delegates to `inner`, and records how long get, list, create, update and delete take.
pub struct TimedStorage {
    pub inner: Arc<dyn Storage>,
    pub timers: Arc<Timers>,
}

impl TimedStorage {
    /// Waits for an operation on `key`, and records how long it took.
    async fn time<T: Send>(
        &self,
        key: &str,
        which: impl for<'t> Fn(&'t Timed) -> &'t Histogram + Send,
        operation: impl Future<Output = T> + Send,
    ) -> T {
        let begun = Instant::now();
        let result = operation.await;
        if let Some(timed) = self.timers.timed_resource(key) {
            which(&timed).observe(begun.elapsed().as_secs_f64());
        }
        result
    }
}

impl Storage for TimedStorage {
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.inner.revision()
    }

    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>> {
        self.time(key, |timed| &timed.get, self.inner.get(key, at)).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>> {
        let key = request.start.clone();
        let operation = self.inner.range(request);
        async move { self.time(&key, |timed| &timed.list, operation).await }.boxed()
    }

    fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<KeyValue, StorageError>> {
        let operation = self.inner.put(key, value, expect, ttl);
        let key = key.to_owned();
        let creates = matches!(expect, Expect::Absent);
        async move {
            if creates {
                self.time(&key, |timed| &timed.create, operation).await
            } else {
                self.time(&key, |timed| &timed.update, operation).await
            }
        }
        .boxed()
    }

    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>> {
        let operation = self.inner.delete(key, expect);
        let key = key.to_owned();
        async move { self.time(&key, |timed| &timed.delete, operation).await }.boxed()
    }

    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        self.inner.watch(prefix, after)
    }

    fn compacted(&self) -> Revision {
        self.inner.compacted()
    }

    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>> {
        self.inner.expiring()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.compact(revision)
    }
}
