//! Watches: ST5.

use std::sync::Arc;

use futures::future::join_all;

use super::{TestedStorage, create, newest, remove, update, watch};
use crate::{Event, Revision, StorageError};

fn revisions(events: &[Arc<Event>]) -> Vec<Revision> {
    events.iter().map(|event| event.revision).collect()
}

/// Writes `count` new keys under `prefix`; returns their revisions.
async fn create_many(storage: &TestedStorage, prefix: &str, count: usize) -> Vec<Revision> {
    let mut revisions = Vec::new();
    for number in 0..count {
        let key = format!("{prefix}{number:05}");
        revisions.push(create(storage, &key, "x").await.mod_revision);
    }
    revisions
}

/// First the events before the watch, then those after it.
pub async fn history_comes_before_live_without_gap_or_duplicate(storage: TestedStorage) {
    let before = newest(&storage).await;
    let mut written = create_many(&storage, "/w/old-", 20).await;
    let mut watching = watch(&storage, "/w/", before).await;
    written.extend(create_many(&storage, "/w/new-", 20).await);
    let events = watching.read_to(written[written.len() - 1]).await;
    assert_eq!(revisions(&events), written);
}

/// Each event carries the state before and the state after.
pub async fn previous_and_current_are_filled(storage: TestedStorage) {
    let before = newest(&storage).await;
    let mut live = watch(&storage, "/e", before).await;
    let first = create(&storage, "/e", "1").await;
    let second = update(&storage, &first, "2").await;
    let removed = remove(&storage, &second).await;
    let third = create(&storage, "/e", "3").await;
    let mut expected = Vec::new();
    let states = [
        (first.mod_revision, None, Some(&first)),
        (second.mod_revision, Some(&first), Some(&second)),
        (removed, Some(&second), None),
        (third.mod_revision, None, Some(&third)),
    ];
    for (revision, previous, current) in states {
        let (previous, current) = (previous.cloned(), current.cloned());
        expected.push(Arc::new(Event { revision, key: "/e".into(), previous, current }));
    }
    assert_eq!(live.read_to(third.mod_revision).await, expected);
    let mut past = watch(&storage, "/e", before).await;
    assert_eq!(past.read_to(third.mod_revision).await, expected, "history is the same");
}

/// A quiet prefix gets progress.
pub async fn other_keys_move_progress_on(storage: TestedStorage) {
    let mut quiet = watch(&storage, "/quiet/", newest(&storage).await).await;
    let last = create_many(&storage, "/busy/", 10).await[9];
    assert!(quiet.read_to(last).await.is_empty());
    // Also in history, and at once when nothing happened.
    let mut late = watch(&storage, "/quiet/", last - 5).await;
    assert!(late.read_to(last).await.is_empty());
    let mut first = watch(&storage, "/quiet/", last).await;
    let item = first.next().await;
    assert!(matches!(item, Some(Ok(crate::WatchItem::Progress(at))) if at == last));
}

/// Every watch gets all events.
pub async fn many_watches_see_the_same(storage: TestedStorage) {
    let before = newest(&storage).await;
    let mut watches = Vec::new();
    for prefix in ["/m/", "/m/", "/m/a-", "/m/b-"] {
        watches.push(watch(&storage, prefix, before).await);
    }
    let a = create_many(&storage, "/m/a-", 10).await;
    let b = create_many(&storage, "/m/b-", 10).await;
    let both = [a.clone(), b.clone()].concat();
    for (watching, expected) in watches.iter_mut().zip([&both, &both, &a, &b]) {
        assert_eq!(&revisions(&watching.read_to(both[19]).await), expected);
    }
}

/// A client that lost its watch resumes after its last revision.
pub async fn a_watch_resumes_where_it_ended(storage: TestedStorage) {
    let mut complete = newest(&storage).await;
    let (mut seen, mut written) = (Vec::new(), Vec::new());
    for round in 0..5 {
        written.extend(create_many(&storage, &format!("/s/{round}-"), 7).await);
        let mut watching = watch(&storage, "/s/", complete).await;
        let until = written[written.len() - 1 - round];
        seen.extend(revisions(&watching.read_to(until).await));
        complete = watching.complete;
    }
    let last = written[written.len() - 1];
    seen.extend(revisions(&watch(&storage, "/s/", complete).await.read_to(last).await));
    assert_eq!(seen, written);
}

/// The step from history to live loses nothing at any moment.
pub async fn a_watch_that_starts_under_writes_misses_nothing(storage: TestedStorage) {
    let before = newest(&storage).await;
    let writers = (0..4).map(|writer| {
        let storage = Arc::clone(&storage);
        let prefix = format!("/x/{writer}-");
        tokio::spawn(async move { create_many(&storage, &prefix, 100).await })
    });
    let writers: Vec<_> = writers.collect();
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watch(&storage, "/x/", before).await);
        newest(&storage).await;
        tokio::task::yield_now().await;
    }
    let mut written = Vec::new();
    for writer in join_all(writers).await {
        written.extend(writer.expect("no panic"));
    }
    written.sort_unstable();
    for mut watching in watches {
        let events = watching.read_to(written[written.len() - 1]).await;
        assert_eq!(revisions(&events), written);
    }
}

/// A watch does not wait for a revision that was never reported.
pub async fn a_watch_of_the_future_is_refused(storage: TestedStorage) {
    let current = newest(&storage).await;
    let refused = storage.watch("/w/", current + 1).await;
    assert!(matches!(refused, Err(StorageError::Future { .. })));
}
