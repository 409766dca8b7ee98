//! The named limits: history, file size, watch queues, space.

use super::*;
use crate::{KeyValue, RangeRequest, Revision};

async fn wait_until_compacted_to(storage: &EmbeddedStorage, revision: Revision) {
    wait_for("history should be compacted", async || {
        let compacted = storage.compacted_revision().await.unwrap();
        if compacted == revision { Ok(()) } else { Err(compacted) }
    })
    .await;
}

fn file_size(dir: &TempDir) -> u64 {
    std::fs::metadata(dir.path().join("storage.db")).unwrap().len()
}

#[tokio::test]
async fn old_history_is_compacted_without_a_request() {
    let dir = dir();
    let config =
        EmbeddedConfig { history_keep: Duration::ZERO, history_revisions_min: 10, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    for number in 0..400 {
        put(&storage, &format!("/k/{}", number % 7), "x").await;
    }
    wait_until_compacted_to(&storage, 390).await;
    let at = Some(390);
    let then = storage.range(RangeRequest { at, ..RangeRequest::prefix("/") }).await.unwrap();
    assert_eq!(then.items.len(), 7);
}

#[tokio::test]
async fn history_within_its_limits_stays() {
    let dir = dir();
    let config = EmbeddedConfig {
        history_revisions_min: 10,
        history_revisions_max: 100,
        tick: Duration::from_secs(3600),
        ..config()
    };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    for number in 1..=100 {
        assert_eq!(put(&storage, "/k", "x").await.mod_revision, number);
    }
    assert_eq!(storage.compacted_revision().await.unwrap(), 0);
    // There is no tick: the writes themselves bound the count.
    for _ in 0..300 {
        put(&storage, "/k", "x").await;
    }
    wait_until_compacted_to(&storage, 300).await;
}

#[tokio::test]
async fn the_file_does_not_grow_with_the_number_of_writes() {
    let dir = dir();
    let config =
        EmbeddedConfig { history_revisions_min: 10, history_revisions_max: 200, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    let value = Bytes::from(vec![7; 3000]);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        for _ in 0..20 {
            let writes = (0..50).map(|key| {
                let (storage, value) = (Arc::clone(&storage), value.clone());
                async move { put(&storage, &format!("/lease/{key}"), value).await }
            });
            futures::future::join_all(writes).await;
        }
        sizes.push(file_size(&dir));
    }
    // 250 values of one page each, and some slack; 5,000 were written.
    assert!(sizes[4] < 500 * 4096, "{sizes:?}");
    assert!(sizes[4] <= sizes[2] + 64 * 4096, "{sizes:?}");
}

#[tokio::test]
async fn deleted_space_is_returned() {
    let dir = dir();
    let config =
        EmbeddedConfig { history_keep: Duration::ZERO, history_revisions_min: 1, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    let value = Bytes::from(vec![7; 1 << 20]);
    for number in 0..20 {
        put(&storage, &format!("/big/{number:02}"), value.clone()).await;
    }
    wait_for("the file should hold the values", async || {
        if file_size(&dir) > 20 << 20 { Ok(()) } else { Err(file_size(&dir)) }
    })
    .await;
    for item in storage.range(RangeRequest::prefix("/big/")).await.unwrap().items {
        storage.delete(&item.key, item.mod_revision).await.unwrap();
    }
    // The newest deletion is history, with the last value.
    wait_for("the file should become short", async || {
        if file_size(&dir) < 12 << 20 { Ok(()) } else { Err(file_size(&dir)) }
    })
    .await;
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_dropped_and_can_resume() {
    let dir = dir();
    let config = EmbeddedConfig { watch_queue_events_max: 10, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    let mut slow = storage.watch("/", 0).await.unwrap();
    let quiet = storage.watch("/quiet/", 0).await.unwrap();
    for number in 0..10 {
        put(&storage, &format!("/k/{number}"), "x").await;
    }
    assert_eq!(storage.shared.hub.watchers(), 2);
    let seen = events_until(&mut slow, |event| event.revision == 10).await.unwrap();
    assert_eq!(seen.len(), 10, "as many as the limit may wait");
    for number in 10..25 {
        put(&storage, &format!("/k/{number}"), "x").await;
    }
    assert_eq!(
        storage.shared.hub.watchers(),
        1,
        "the slow watcher is dropped, the quiet one is not"
    );
    let lost = events_until(&mut slow, |_| false).await;
    assert!(matches!(lost, Err(StorageError::Lagged)), "{lost:?}");
    assert!(slow.next().await.is_none());
    let mut again = storage.watch("/", 10).await.unwrap();
    let rest = events_until(&mut again, |event| event.revision == 25).await.unwrap();
    assert_eq!(rest.len(), 15);
    drop((again, quiet));
    assert_eq!(storage.shared.hub.watchers(), 0, "a dropped stream leaves no watcher");
}

#[tokio::test]
async fn a_long_history_is_read_in_pieces_during_writes() {
    let dir = dir();
    // The queue could not hold the events that are written while history is read.
    let config = EmbeddedConfig { watch_queue_events_max: 600, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    let write = |number: usize| {
        let storage = Arc::clone(&storage);
        async move { put(&storage, &format!("/h/{number}"), "x").await }
    };
    futures::future::join_all((0..4500).map(write)).await;
    let mut watch = storage.watch("/h/", 0).await.unwrap();
    let mut events = events_until(&mut watch, |_| true).await.unwrap();
    assert!(events.len() < 4500, "not all at once");
    for number in 4500..4520 {
        write(number).await;
    }
    assert_eq!(storage.shared.hub.watchers(), 0, "a watch far behind does not queue");
    events.extend(events_until(&mut watch, |event| event.revision == 4520).await.unwrap());
    let revisions: Vec<_> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (1..=4520).collect::<Vec<_>>());
}

#[tokio::test]
async fn compaction_overtakes_a_watch_that_reads_history_slowly() {
    let dir = dir();
    let storage = open(&dir);
    let writes = (0..3000).map(|number| {
        let storage = Arc::clone(&storage);
        async move { put(&storage, &format!("/h/{number}"), "x").await }
    });
    futures::future::join_all(writes).await;
    let mut watch = storage.watch("/h/", 0).await.unwrap();
    let first = events_until(&mut watch, |_| true).await.unwrap();
    storage.compact(2500).await.unwrap();
    let last = first.last().unwrap().revision;
    let rest = events_until(&mut watch, |_| false).await;
    assert!(
        matches!(rest, Err(StorageError::Compacted { requested, oldest: 2500 }) if requested == last),
        "{rest:?}"
    );
}

/// A file of 2 MiB.
fn open_small(dir: &TempDir) -> Arc<EmbeddedStorage> {
    let config = EmbeddedConfig { file_size_max: Some(2 << 20), ..config() };
    EmbeddedStorage::open(dir.path(), config).unwrap()
}

/// Writes until the file is full. Returns the created keys, and the error of the last write.
async fn fill(storage: &EmbeddedStorage, value: &Bytes) -> (Vec<KeyValue>, StorageError) {
    let mut made = Vec::new();
    loop {
        let key = format!("/fill/{:03}", made.len());
        match storage.put(&key, value.clone(), Expect::Absent, None).await {
            Ok(state) => made.push(state),
            Err(error) => return (made, error),
        }
        assert!(made.len() < 32, "the file grew beyond its limit");
    }
}

#[tokio::test]
async fn a_full_file_accepts_deletions_while_a_reader_holds_its_log() {
    let dir = dir();
    let storage = open_small(&dir);
    let (made, full) = fill(&storage, &Bytes::from(vec![7; 64 << 10])).await;
    assert!(matches!(full, StorageError::Full { .. }), "{full:?}");
    let reader = rusqlite::Connection::open(dir.path().join("storage.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM live").unwrap();
    for state in &made[..4] {
        storage.delete(&state.key, state.mod_revision).await.unwrap();
    }
}

#[tokio::test]
async fn a_full_file_refuses_writes_serves_reads_and_recovers() {
    let dir = dir();
    let storage = open_small(&dir);
    let value = Bytes::from(vec![7; 64 << 10]);
    let (mut made, full) = fill(&storage, &value).await;
    assert!(matches!(full, StorageError::Full { .. }), "{full:?}");
    assert_eq!(storage.revision().await.unwrap(), made.len() as u64, "nothing was written");
    let listed = storage.range(RangeRequest::prefix("/fill/")).await.unwrap().items;
    assert_eq!(listed, made);
    // Small writes may fit or not; a deletion must, because it frees space.
    for state in made.drain(..8) {
        storage.delete(&state.key, state.mod_revision).await.unwrap();
    }
    wait_for("writes should work again", async || {
        let expect = Expect::Absent;
        storage.put("/fill/again", value.clone(), expect, None).await.map(drop)
    })
    .await;
    let listed = storage.range(RangeRequest::prefix("/fill/0")).await.unwrap().items;
    assert_eq!(listed, made);
}

#[tokio::test]
async fn expiring_leases_and_events_leave_no_long_file_and_delay_no_write() {
    const LEASES: usize = 20;
    const EVENTS: usize = 300;
    const ROUNDS: i64 = 20;
    // The writes of a round are concurrent, and the last one waits for all of them.
    const P99_MAX: Duration = Duration::from_millis(250);
    let dir = dir();
    let clock = HandClock::at(1_000_000);
    let config =
        EmbeddedConfig { history_revisions_min: 10, history_revisions_max: 500, ..clock.config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    let value = Bytes::from(vec![7; 3000]);
    let ttl = Some(Duration::from_secs(60));
    let (mut sizes, mut logs, mut delays) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let events = (0..EVENTS).map(|number| {
            let (storage, value) = (Arc::clone(&storage), value.clone());
            let key = format!("/event/{round}/{number}");
            async move {
                let requested_at = tokio::time::Instant::now();
                storage.put(&key, value, Expect::Absent, ttl).await.unwrap();
                requested_at.elapsed()
            }
        });
        let leases = (0..LEASES).map(|number| {
            let (storage, value) = (Arc::clone(&storage), value.clone());
            async move { put(&storage, &format!("/lease/{number}"), value).await }
        });
        let events = futures::future::join_all(events);
        let (mut took, _) = futures::future::join(events, futures::future::join_all(leases)).await;
        took.sort_unstable();
        delays.push(took[took.len() * 99 / 100]);
        clock.set(1_000_000 + (round + 1) * 61_000);
        wait_for("events should expire", async || {
            let left = storage.expiring().await.unwrap().len();
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
        sizes.push(file_size(&dir));
        logs.push(std::fs::metadata(dir.path().join("storage.db-wal")).unwrap().len());
    }
    // The leases, 300 events and 500 revisions of history, each a page, and the lag of a step of
    // compaction; 6,400 values were written.
    assert!(sizes.iter().all(|size| *size < 1200 * 4096), "{sizes:?}");
    // The log restarts at 16 MiB as soon as little of it is left; all of this is less than 64 MiB.
    assert!(logs.iter().all(|size| *size < 24 << 20), "{logs:?}");
    // Half of the rounds, for a busy machine. Each compacts and expires while it writes.
    delays.sort_unstable();
    assert!(delays[delays.len() / 2] < P99_MAX, "{delays:?}");
    println!("files {sizes:?}, logs {logs:?}, p99 of writes {delays:?}");
}

#[tokio::test]
async fn the_log_restarts_under_writers_that_never_pause() {
    const WRITERS: usize = 16;
    const WRITES: usize = 120;
    let dir = dir();
    let config =
        EmbeddedConfig { history_revisions_min: 10, history_revisions_max: 100, ..config() };
    let storage = EmbeddedStorage::open(dir.path(), config).unwrap();
    // 250 MB go through the log.
    let value = Bytes::from(vec![7; 128 << 10]);
    let writers = (0..WRITERS).map(|writer| {
        let (storage, value) = (Arc::clone(&storage), value.clone());
        tokio::spawn(async move {
            for _ in 0..WRITES {
                put(&storage, &format!("/k/{writer}"), value.clone()).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let log = std::fs::metadata(dir.path().join("storage.db-wal")).unwrap().len();
    // The log restarts at 64 MiB at the latest, between two commits of at most 8 MiB.
    assert!(log < 96 << 20, "the log has {log} bytes");
    // 116 values, and a quarter of free pages at most.
    wait_for("the file should hold no more than what lives and history", async || {
        if file_size(&dir) < 48 << 20 { Ok(()) } else { Err(file_size(&dir)) }
    })
    .await;
}
