//! Encryption over a real etcd: two servers with the same keys, and a copy.

use std::sync::Arc;

use futures::StreamExt as _;
use storage::copy::copy;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::encryption::{Encrypted, EncryptionError, EncryptionKeys};
use storage::{Expect, Storage, WatchItem};

use super::cluster::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_an_encrypted_etcd_and_a_copy_opens_with_its_keys() {
    let cluster = Cluster::single();
    let file = EncryptionKeys::generate_file();
    let keys = || EncryptionKeys::parse(&file).expect("it is a key file");
    let etcd = cluster.connect(cluster.config(0)).await;
    let one = Encrypted::open(etcd.clone(), keys()).await.expect("it is new");
    let other = cluster.connect(cluster.config(0)).await;
    let other = Encrypted::open(other, keys()).await.expect("the keys are the same");
    let stranger = EncryptionKeys::parse(&EncryptionKeys::generate_file()).expect("a key file");
    let refused = Encrypted::open(etcd.clone(), stranger).await;
    assert!(matches!(refused, Err(EncryptionError::UnknownKey { .. })), "{refused:?}");

    let after = other.revision().await.expect("it is open");
    let mut events = other.watch("/registry/", after).await.expect("it is reached");
    let put = one.put("/registry/s", "secret".into(), Expect::Absent, None).await;
    let put = put.expect("the key is new");
    let seen = loop {
        let item = events.next().await.expect("the watch goes on").expect("it is readable");
        if let WatchItem::Events(events) = item {
            break Arc::clone(&events[0]);
        }
    };
    assert_eq!(seen.current.as_ref(), Some(&put));
    let sealed = etcd.get("/registry/s", None).await.expect("reads work").1.expect("it is there");
    assert!(!sealed.value.windows(6).any(|window| window == b"secret"));

    let folder = tempfile::tempdir().expect("there is room for a test");
    let target = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default());
    let target = target.expect("an empty directory opens");
    copy(&*etcd, &*target).await.expect("the target is empty");
    let copied = Encrypted::open(target, keys()).await.expect("the keys are the same");
    let read = copied.get("/registry/s", None).await.expect("reads work").1;
    assert_eq!(read.map(|read| read.value), Some(put.value));
}
