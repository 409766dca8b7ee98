//! Deadlines over restarts and under clocks that jump.

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MILLIS: i64 = 3_600_000;

async fn put_for_an_hour(storage: &EmbeddedStorage, key: &str) -> KeyValue {
    storage.put(key, Bytes::from_static(b"x"), Expect::Absent, Some(HOUR)).await.unwrap()
}

async fn wait_until_expired(storage: &EmbeddedStorage, key: &str) {
    wait_for("the key should expire", async || match get(storage, key).await {
        None => Ok(()),
        Some(found) => Err(found),
    })
    .await;
}

#[tokio::test]
async fn a_deadline_survives_a_restart() {
    let dir = dir();
    let clock = HandClock::at(HOUR_MILLIS);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    let made = put_for_an_hour(&storage, "/t").await;
    drop(storage);
    clock.set(2 * HOUR_MILLIS - 1);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    let mut watch = storage.watch("/t", made.mod_revision).await.unwrap();
    put(&storage, "/other", "the writer had a turn").await;
    assert_eq!(get(&storage, "/t").await, Some(made.clone()));
    clock.set(2 * HOUR_MILLIS);
    let events = events_until(&mut watch, |event| event.current.is_none()).await.unwrap();
    assert_eq!(events[0].previous, Some(made));
    assert_eq!(get(&storage, "/t").await, None);
}

#[tokio::test]
async fn a_key_whose_deadline_passed_while_closed_expires_at_the_start() {
    let dir = dir();
    let clock = HandClock::at(0);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    put_for_an_hour(&storage, "/t").await;
    drop(storage);
    clock.set(50 * HOUR_MILLIS);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    wait_until_expired(&storage, "/t").await;
    assert_eq!(storage.revision().await.unwrap(), 2, "expiry takes a revision");
}

#[tokio::test]
async fn a_clock_that_jumps_only_moves_deadlines() {
    let dir = dir();
    let clock = HandClock::at(100 * HOUR_MILLIS);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    let stays = put_for_an_hour(&storage, "/stays").await;
    // Back, even to before 1970, and with a deadline beyond the range.
    for (number, at) in [0, -HOUR_MILLIS, i64::MIN / 2].into_iter().enumerate() {
        clock.set(at);
        let key = format!("/early/{number}");
        put_for_an_hour(&storage, &key).await;
        let key = format!("/never/{number}");
        let never = storage.put(&key, Bytes::new(), Expect::Absent, Some(Duration::MAX)).await;
        never.unwrap();
    }
    assert_eq!(get(&storage, "/stays").await, Some(stays));
    clock.set(2 * HOUR_MILLIS);
    for number in 0..3 {
        wait_until_expired(&storage, &format!("/early/{number}")).await;
    }
    assert!(get(&storage, "/stays").await.is_some());
    clock.set(102 * HOUR_MILLIS);
    wait_until_expired(&storage, "/stays").await;
    assert!(get(&storage, "/never/0").await.is_some());
}

#[tokio::test]
async fn many_keys_expire_together() {
    let dir = dir();
    let clock = HandClock::at(0);
    let storage = EmbeddedStorage::open(dir.path(), clock.config()).unwrap();
    let puts = (0..1000).map(|number| {
        let storage = Arc::clone(&storage);
        async move { put_for_an_hour(&storage, &format!("/many/{number}")).await }
    });
    futures::future::join_all(puts).await;
    let mut watch = storage.watch("/many/", 1000).await.unwrap();
    clock.set(HOUR_MILLIS);
    let events = events_until(&mut watch, |event| event.revision == 2000).await.unwrap();
    assert_eq!(events.len(), 1000);
    assert!(events.iter().all(|event| event.current.is_none()));
}
