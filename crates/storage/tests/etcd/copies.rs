//! Moving between the implementations, both ways.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use storage::copy::{self, CopyError, copy};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::{Expect, KeyValue, RangeRequest, Storage, StorageError};
use tempfile::TempDir;

use super::cluster::Cluster;

/// More than a page of the copy.
const KEYS: usize = 1203;
const HOUR: Duration = Duration::from_secs(3600);

fn embedded() -> (Arc<EmbeddedStorage>, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a test");
    let storage = EmbeddedStorage::open(dir.path(), EmbeddedConfig::default());
    (storage.expect("an empty directory opens"), dir)
}

async fn create(storage: &dyn Storage, key: &str, ttl: Option<Duration>) -> KeyValue {
    let value = Bytes::from(format!("value of {key}"));
    storage.put(key, value, Expect::Absent, ttl).await.expect("the key was absent")
}

async fn all(storage: &dyn Storage) -> Vec<(String, Bytes)> {
    let list = storage.range(RangeRequest::prefix("/")).await.expect("reads work");
    list.items.into_iter().map(|item| (item.key.to_string(), item.value)).collect()
}

/// Fills `from`, copies it to `to`, and checks the result.
async fn check(from: &dyn Storage, to: &dyn Storage) {
    for number in 0..KEYS {
        create(from, &format!("/registry/configmaps/a/{number:04}"), None).await;
    }
    let deleted = create(from, "/registry/secrets/gone", None).await;
    from.delete(&deleted.key, deleted.mod_revision).await.expect("it has no other writer");
    create(from, "/registry/events/a", Some(HOUR)).await;
    let source = from.revision().await.expect("it is open");

    let copied = copy(from, to).await.expect("the target is empty");
    assert_eq!((copied.keys, copied.expiring), (KEYS as u64 + 1, 1));
    assert_eq!(copied.source_revision, source);
    assert_eq!(all(to).await, all(from).await);
    assert_eq!(copied.bytes as usize, all(to).await.iter().map(|(_, v)| v.len()).sum::<usize>());
    assert_eq!(copied.target_revision, to.revision().await.expect("it is open"));
    assert!(!copy::is_unfinished(to).await.expect("reads work"));

    let list = to.range(RangeRequest::prefix("/")).await.expect("reads work");
    assert!(list.items.iter().all(|item| item.mod_revision > source), "a revision came back");
    let old = to.watch("/", source).await.err();
    assert!(matches!(old, Some(StorageError::Compacted { .. })), "{old:?}");
    let expiring = to.expiring().await.expect("reads work");
    assert_eq!(expiring.len(), 1);
    assert_eq!(expiring[0].0, "/registry/events/a");
    assert!(expiring[0].1 <= HOUR && expiring[0].1 > HOUR / 2, "{expiring:?}");

    let again = copy(from, to).await.expect_err("the target is not empty");
    assert!(matches!(&again, CopyError::NotEmpty { key } if key.contains("/0000")), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_is_copied_to_etcd() {
    let cluster = Cluster::single();
    let etcd = cluster.connect(cluster.config(0)).await;
    let (embedded, _dir) = embedded();
    check(&*embedded, &*etcd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_is_copied_to_embedded() {
    let cluster = Cluster::single();
    let etcd = cluster.connect(cluster.config(0)).await;
    let (embedded, _dir) = embedded();
    check(&*etcd, &*embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_changes_is_reported_and_the_target_is_marked() {
    let (from, _from) = embedded();
    let (to, _to) = embedded();
    for number in 0..KEYS {
        create(&*from, &format!("/k/{number:04}"), None).await;
    }
    let source = Arc::clone(&from);
    let writer = tokio::spawn(async move {
        for number in 0.. {
            let key = format!("/later/{number}");
            if source.put(&key, Bytes::new(), Expect::Absent, None).await.is_err() {
                return;
            }
        }
    });
    let error = copy(&*from, &*to).await.expect_err("the source is written to");
    from.close();
    writer.await.expect("no panic");
    assert!(matches!(&error, CopyError::SourceChanged { .. }), "{error}");
    assert!(copy::is_unfinished(&*to).await.expect("reads work"));
    let (other, _other) = embedded();
    let again = copy(&*other, &*to).await.expect_err("the target is half filled");
    assert!(matches!(again, CopyError::Unfinished), "{again}");
}
