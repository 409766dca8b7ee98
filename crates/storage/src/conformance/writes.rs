//! Compare-and-put and compare-and-delete: ST2, ST4, ST6, ST9 and ST11.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;

use super::{TestedStorage, create, get, list, newest, remove, update, watch};
use crate::{Expect, KeyValue, Revision, STORED_SIZE_MAX, StorageError, VALUE_SIZE_MAX};

fn is_unexpected<T: std::fmt::Debug>(
    result: Result<T, StorageError>,
    found: Option<&KeyValue>,
) -> bool {
    match result {
        Err(StorageError::Unexpected { current }) => current.as_ref() == found,
        other => panic!("the write should have been refused: {other:?}"),
    }
}

/// ST2: a write's revision is the storage's, and a list returns it.
pub async fn every_commit_takes_a_higher_revision(storage: TestedStorage) {
    let mut last = newest(&storage).await;
    let mut state = create(&storage, "/r/0", "x").await;
    for number in 1..5 {
        assert!(state.mod_revision > last);
        last = state.mod_revision;
        assert_eq!(newest(&storage).await, last);
        let (revision, found) = storage.get("/other", None).await.expect("reads work");
        assert_eq!((revision, found), (last, None), "a read returns the storage's revision");
        state = if number % 2 == 0 {
            create(&storage, &format!("/r/{number}"), "x").await
        } else {
            update(&storage, &state, "y").await
        };
    }
    let removed = remove(&storage, &state).await;
    assert!(removed > state.mod_revision, "a deletion is a commit");
    assert_eq!(newest(&storage).await, removed);
}

/// ST4: a refused create returns the existing state.
pub async fn a_create_is_refused_when_the_key_exists(storage: TestedStorage) {
    let first = create(&storage, "/c", "1").await;
    assert_eq!(first.create_revision, first.mod_revision);
    let again = storage.put("/c", Bytes::from_static(b"2"), Expect::Absent, None).await;
    assert!(is_unexpected(again, Some(&first)));
    assert_eq!(get(&storage, "/c").await, Some(first));
}

/// ST4: a refused update returns the newest state, also when there is none.
pub async fn an_update_is_refused_at_another_revision(storage: TestedStorage) {
    let first = create(&storage, "/u", "1").await;
    let second = update(&storage, &first, "2").await;
    assert_eq!(second.create_revision, first.create_revision);
    for revision in [0, first.mod_revision, second.mod_revision + 1] {
        let put = storage.put("/u", Bytes::new(), Expect::Revision(revision), None).await;
        assert!(is_unexpected(put, Some(&second)));
    }
    let absent = Expect::Revision(first.mod_revision);
    assert!(is_unexpected(storage.put("/none", Bytes::new(), absent, None).await, None));
    assert_eq!(get(&storage, "/u").await, Some(second));
}

/// ST4: a refused delete returns the newest state, also when there is none.
pub async fn a_delete_is_refused_at_another_revision(storage: TestedStorage) {
    let first = create(&storage, "/d", "1").await;
    let second = update(&storage, &first, "2").await;
    assert!(is_unexpected(storage.delete("/d", first.mod_revision).await, Some(&second)));
    assert!(is_unexpected(storage.delete("/none", first.mod_revision).await, None));
    remove(&storage, &second).await;
    assert_eq!(get(&storage, "/d").await, None);
    assert!(is_unexpected(storage.delete("/d", second.mod_revision).await, None));
}

/// A deleted key can be created again.
pub async fn a_recreated_key_has_a_new_create_revision(storage: TestedStorage) {
    let first = create(&storage, "/d", "1").await;
    remove(&storage, &first).await;
    let second = create(&storage, "/d", "2").await;
    assert!(second.create_revision > first.create_revision);
    assert_eq!(second.create_revision, second.mod_revision);
}

/// ST2: observers see no revision of a write that did not happen.
pub async fn refused_writes_take_no_revision(storage: TestedStorage) {
    let first = create(&storage, "/a", "1").await;
    let refused = join_all(
        (0..10).map(|_| storage.put("/a", Bytes::from_static(b"2"), Expect::Absent, None)),
    )
    .await;
    assert!(refused.into_iter().all(|put| is_unexpected(put, Some(&first))));
    assert_eq!(newest(&storage).await, first.mod_revision);
}

/// Values are bytes, not text, and may be empty.
pub async fn any_bytes_are_a_value(storage: TestedStorage) {
    let all: Bytes = (0..=255).collect::<Vec<u8>>().into();
    for (key, value) in [("/v/empty", Bytes::new()), ("/v/all", all)] {
        let put = storage.put(key, value.clone(), Expect::Absent, None).await;
        assert_eq!(put.expect("any value is accepted").value, value);
        assert_eq!(get(&storage, key).await.map(|found| found.value), Some(value));
    }
}

/// ST9: the limit is exact, and a refusal returns the size.
pub async fn the_largest_value_is_accepted_and_a_larger_is_refused(storage: TestedStorage) {
    let size = VALUE_SIZE_MAX;
    let largest = Bytes::from(vec![7; size]);
    let put = storage.put("/big", largest.clone(), Expect::Absent, None).await;
    let put = put.expect("the largest value is accepted");
    assert_eq!(get(&storage, "/big").await.map(|found| found.value), Some(largest));
    let size = STORED_SIZE_MAX + 1;
    let larger = Bytes::from(vec![7; size]);
    let refused = storage.put("/big", larger, Expect::Revision(put.mod_revision), None).await;
    assert!(matches!(refused, Err(StorageError::TooLarge { size: reported }) if reported == size));
    assert_eq!(newest(&storage).await, put.mod_revision);
}

/// ST4: the comparison and the write are one step.
pub async fn one_of_many_creates_wins(storage: TestedStorage) {
    let puts = (0..50u8).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            storage.put("/one", Bytes::from(vec![writer]), Expect::Absent, None).await
        })
    });
    let (mut won, mut lost) = (Vec::new(), Vec::new());
    for put in join_all(puts).await {
        match put.expect("no panic") {
            Ok(state) => won.push(state),
            Err(StorageError::Unexpected { current }) => lost.push(current),
            Err(error) => panic!("a create failed: {error}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|found| found.as_ref() == won.first()));
}

/// ST4: read, compare and write again until it holds: every increment counts.
pub async fn concurrent_updates_lose_nothing(storage: TestedStorage) {
    const WRITERS: u32 = 8;
    const INCREMENTS: u32 = 25;
    create(&storage, "/count", "0").await;
    let writers = (0..WRITERS).map(|_| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let mut state = get(&storage, "/count").await.expect("made above");
            for _ in 0..INCREMENTS {
                loop {
                    let expect = Expect::Revision(state.mod_revision);
                    let count = number(&state) + 1;
                    match storage.put("/count", count.to_string().into(), expect, None).await {
                        Ok(written) => {
                            state = written;
                            break;
                        }
                        Err(StorageError::Unexpected { current }) => {
                            state = current.expect("the key is not deleted");
                        }
                        Err(error) => panic!("an update failed: {error}"),
                    }
                }
            }
        })
    });
    for writer in join_all(writers).await {
        writer.expect("no panic");
    }
    let state = get(&storage, "/count").await.expect("the key is not deleted");
    assert_eq!(number(&state), WRITERS * INCREMENTS);
}

fn number(state: &KeyValue) -> u32 {
    let text = std::str::from_utf8(&state.value).expect("digits were written");
    text.parse().expect("digits were written")
}

/// ST6: once a write is acknowledged no read, range, watch or revision is older.
pub async fn a_read_after_a_write_sees_it(storage: TestedStorage) {
    let tasks = (0..8).map(|task| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let key = format!("/t/{task}");
            let mut state = create(&storage, &key, "x").await;
            for _ in 0..20 {
                let written = state.mod_revision;
                assert!(newest(&storage).await >= written);
                let (revision, found) = storage.get(&key, None).await.expect("reads work");
                assert!(revision >= written);
                assert_eq!(found.as_ref(), Some(&state));
                assert!(newest(&storage).await >= revision, "a revision that was read is reached");
                assert!(list(&storage, "/t/", None).await.contains(&state));
                watch(&storage, "/t/", revision).await;
                state = update(&storage, &state, "y").await;
            }
        })
    });
    for task in join_all(tasks).await {
        task.expect("no panic");
    }
}

/// ST11: the outcome of a dropped write is unknown, but the storage holds all of it or nothing.
pub async fn a_dropped_write_happens_wholly_or_not_at_all(storage: TestedStorage) {
    let before = newest(&storage).await;
    for number in 0..50 {
        let key = format!("/drop/{number:02}");
        let mut put = storage.put(&key, Bytes::from(key.clone()), Expect::Absent, None);
        // Polled once, then dropped.
        let _ = futures::poll!(&mut put);
        drop(put);
    }
    // A write that was begun may still happen after this; it then has a higher revision.
    let last = create(&storage, "/drop/last", "/drop/last").await.mod_revision;
    let events = watch(&storage, "/drop/", before).await.read_to(last).await;
    let states = list(&storage, "/drop/", Some(last)).await;
    let committed: Vec<_> = events.iter().filter_map(|event| event.current.clone()).collect();
    let mut by_key = committed.clone();
    by_key.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(by_key, states, "the committed writes are the current state");
    assert!(states.iter().all(|state| *state.value == *state.key.as_bytes()));
    let revisions: Vec<Revision> = committed.iter().map(|state| state.mod_revision).collect();
    assert!(revisions.is_sorted());
}
