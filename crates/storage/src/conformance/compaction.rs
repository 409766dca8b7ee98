//! Compaction: ST7.

use super::{TestedStorage, create, get, list, newest, remove, update, watch};
use crate::{RangeRequest, Revision, StorageError};

async fn compact(storage: &TestedStorage, revision: Revision) {
    storage.compact(revision).await.expect("the revision can be compacted");
}

fn is_compacted(error: StorageError, revision: Revision, oldest_is: Revision) -> bool {
    matches!(error, StorageError::Compacted { requested, oldest }
        if (requested, oldest) == (revision, oldest_is))
}

/// Reads of compacted revisions fail with the oldest readable revision; the newest state is
/// complete.
pub async fn compaction_removes_history_and_preserves_the_newest_state(storage: TestedStorage) {
    let mut state = create(&storage, "/a", "0").await;
    let old = create(&storage, "/old", "x").await;
    let deleted = create(&storage, "/gone", "x").await;
    remove(&storage, &deleted).await;
    let past = newest(&storage).await;
    for number in 1..50 {
        state = update(&storage, &state, &number.to_string()).await;
    }
    let oldest = state.mod_revision;
    compact(&storage, oldest).await;
    let at = |at| RangeRequest { at: Some(at), ..RangeRequest::prefix("/") };
    let refused = storage.range(at(past)).await;
    assert!(refused.is_err_and(|error| is_compacted(error, past, oldest)));
    let refused = storage.get("/a", Some(past)).await;
    assert!(refused.is_err_and(|error| is_compacted(error, past, oldest)));
    assert_eq!(list(&storage, "/", None).await, [state.clone(), old]);
    assert_eq!(newest(&storage).await, oldest, "compaction takes no revision");
    assert_eq!(storage.compacted(), oldest);
    let next = update(&storage, &state, "next").await;
    assert!(next.mod_revision > oldest);
    assert_eq!(get(&storage, "/a").await, Some(next));
}

/// The compaction point itself and all revisions above it can be read.
pub async fn the_state_at_the_compacted_revision_stays_readable(storage: TestedStorage) {
    let first = create(&storage, "/a", "1").await;
    let second = update(&storage, &first, "2").await;
    let other = create(&storage, "/b", "1").await;
    let point = newest(&storage).await;
    let third = update(&storage, &second, "3").await;
    let removed = remove(&storage, &other).await;
    compact(&storage, point).await;
    assert_eq!(list(&storage, "/", Some(point)).await, [second.clone(), other.clone()]);
    assert_eq!(list(&storage, "/", Some(third.mod_revision)).await, [third.clone(), other.clone()]);
    assert_eq!(list(&storage, "/", Some(removed)).await, [third]);
    let events = watch(&storage, "/", point).await.read_to(removed).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].previous.as_ref(), Some(&second));
    assert_eq!(events[1].previous.as_ref(), Some(&other));
}

/// A watch that would miss events does not begin.
pub async fn a_watch_from_before_the_compaction_is_refused(storage: TestedStorage) {
    let before = newest(&storage).await;
    let first = create(&storage, "/a", "1").await;
    let second = update(&storage, &first, "2").await;
    compact(&storage, second.mod_revision).await;
    for after in [before, first.mod_revision] {
        let error = match storage.watch("/", after).await {
            Ok(_) => panic!("a watch began at a compacted revision"),
            Err(error) => error,
        };
        assert!(is_compacted(error, after, second.mod_revision));
    }
    watch(&storage, "/", second.mod_revision).await;
}

/// Compaction removes history, but no events that wait for a watcher.
pub async fn a_watch_that_keeps_up_is_not_affected_by_compaction(storage: TestedStorage) {
    let before = newest(&storage).await;
    let mut watching = watch(&storage, "/a", before).await;
    assert!(matches!(watching.next().await, Some(Ok(_))), "the watch is up to date");
    let mut state = create(&storage, "/a", "0").await;
    for number in 1..20 {
        state = update(&storage, &state, &number.to_string()).await;
        compact(&storage, state.mod_revision).await;
    }
    assert_eq!(watching.read_to(state.mod_revision).await.len(), 20);
}

/// A revision that was not written cannot be compacted.
pub async fn compaction_of_the_future_is_refused(storage: TestedStorage) {
    let current = create(&storage, "/a", "1").await.mod_revision;
    let refused = storage.compact(current + 1).await;
    assert!(matches!(refused, Err(StorageError::Future { .. })));
}

/// Compacting to the same or an older revision does nothing.
pub async fn compacting_again_is_harmless(storage: TestedStorage) {
    let first = create(&storage, "/a", "1").await;
    let second = update(&storage, &first, "2").await;
    for revision in [second.mod_revision, second.mod_revision, first.mod_revision] {
        compact(&storage, revision).await;
    }
    assert_eq!(list(&storage, "/", Some(second.mod_revision)).await, [second]);
}
