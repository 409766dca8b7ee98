//! Keys with a time to live: ST8.

use std::time::Duration;

use bytes::Bytes;

use super::{TestedStorage, WAIT_MAX, create, get, newest, remove, update, watch};
use crate::{Expect, KeyValue};

/// Short enough to wait for; an implementation may round it up to whole seconds.
const SOON: Duration = Duration::from_millis(50);
/// Does not expire during a test.
const LATE: Duration = Duration::from_secs(3600);

async fn create_expiring(storage: &TestedStorage, key: &str, ttl: Duration) -> KeyValue {
    let put = storage.put(key, Bytes::from_static(b"x"), Expect::Absent, Some(ttl)).await;
    put.expect("the key was absent")
}

/// Expiry is an ordinary deletion.
pub async fn a_key_expires_with_a_revision_and_an_event(storage: TestedStorage) {
    let mut watching = watch(&storage, "/t", newest(&storage).await).await;
    let made = create_expiring(&storage, "/t", SOON).await;
    assert_eq!(watching.read_to(made.mod_revision).await.len(), 1);
    let events = watching.read_to(made.mod_revision + 1).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].current, None);
    assert_eq!(events[0].previous.as_ref(), Some(&made));
    assert!(events[0].revision > made.mod_revision);
    assert_eq!(get(&storage, "/t").await, None);
    create(&storage, "/t", "again").await;
}

/// A put without a time to live removes the deadline.
pub async fn a_later_put_clears_the_expiry(storage: TestedStorage) {
    let made = create_expiring(&storage, "/stays", SOON).await;
    let stays = update(&storage, &made, "stays").await;
    expire_another(&storage).await;
    assert_eq!(get(&storage, "/stays").await, Some(stays));
}

/// The time to live of the last put counts, longer or shorter.
pub async fn a_later_put_replaces_the_expiry(storage: TestedStorage) {
    let value = Bytes::from_static(b"y");
    let made = create_expiring(&storage, "/longer", SOON).await;
    let expect = Expect::Revision(made.mod_revision);
    let longer = storage.put("/longer", value.clone(), expect, Some(LATE)).await;
    let longer = longer.expect("the key has no other writer");
    let made = create_expiring(&storage, "/shorter", LATE).await;
    let mut watching = watch(&storage, "/shorter", newest(&storage).await).await;
    let expect = Expect::Revision(made.mod_revision);
    let shorter = storage.put("/shorter", value, expect, Some(SOON)).await;
    let shorter = shorter.expect("the key has no other writer");
    let events = watching.read_to(shorter.mod_revision + 1).await;
    assert_eq!(events[1].previous.as_ref(), Some(&shorter));
    assert_eq!(events[1].current, None);
    assert_eq!(get(&storage, "/longer").await, Some(longer));
}

/// The deadline is deleted with the key, and does not affect a later key of the same name.
pub async fn a_deleted_key_does_not_expire(storage: TestedStorage) {
    let made = create_expiring(&storage, "/again", SOON).await;
    remove(&storage, &made).await;
    let again = create(&storage, "/again", "stays").await;
    expire_another(&storage).await;
    assert_eq!(get(&storage, "/again").await, Some(again));
}

/// The remaining time to live of each live key that has one is reported.
pub async fn remaining_times_to_live_are_reported(storage: TestedStorage) {
    let made = create_expiring(&storage, "/late", LATE).await;
    let cleared = create_expiring(&storage, "/cleared", LATE).await;
    update(&storage, &cleared, "stays").await;
    let removed = create_expiring(&storage, "/removed", LATE).await;
    remove(&storage, &removed).await;
    create(&storage, "/stays", "x").await;
    let expiring = storage.expiring().await.expect("reads work");
    assert_eq!(expiring.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), [&*made.key]);
    assert!(expiring[0].1 <= LATE && expiring[0].1 > LATE - WAIT_MAX, "{expiring:?}");
}

/// Waits until a key that is created now has expired: keys with an earlier deadline have then
/// expired, too.
async fn expire_another(storage: &TestedStorage) {
    let made = create_expiring(storage, "/another", SOON * 2).await;
    let mut watching = watch(storage, "/another", made.mod_revision).await;
    let expired = tokio::time::timeout(WAIT_MAX, async {
        while watching.read_to(watching.complete + 1).await.is_empty() {}
    });
    expired.await.expect("a key expires in time");
}
