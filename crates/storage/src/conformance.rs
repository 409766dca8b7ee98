//! The contract of every [`Storage`], as cases that any implementation can run.
//!
//! [`conformance_tests!`](crate::conformance_tests) generates a test of each case. A case needs an
//! empty storage of its own, and panics where the storage deviates. The numbers ST1 to ST12 in the
//! cases' comments are the rows of the storage contract that the API server relies on. Contract
//! rows about files and crashes are tested by the implementation.
//!
//! The cases are in the submodules by subject; [`model`] compares random work with a model in
//! memory.

pub mod compaction;
pub mod expiry;
pub mod model;
pub mod ranges;
pub mod watches;
pub mod writes;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;

use crate::{
    Event, Expect, KeyValue, RangeRequest, Revision, Storage, StorageError, WatchItem, WatchStream,
};

/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Generates a `#[tokio::test]` of every conformance case.
///
/// `$make` is an expression that each test evaluates. Its value is a pair: an `Arc<dyn Storage>`
/// (or of a type that coerces to it), and a value that must live as long as the storage, such as a
/// temporary directory. The crate that uses it needs `tokio` with the features `macros` and
/// `rt-multi-thread`.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { @cases $make;
            ranges: keys_are_listed_in_byte_order,
            ranges: a_prefix_takes_no_neighbours,
            ranges: a_range_is_half_open,
            ranges: a_limit_cuts_and_counts_the_rest,
            ranges: an_older_revision_shows_the_past,
            ranges: pages_at_one_revision_are_stable_under_writes,
            ranges: a_future_revision_is_refused,
            writes: every_commit_takes_a_higher_revision,
            writes: a_create_is_refused_when_the_key_exists,
            writes: an_update_is_refused_at_another_revision,
            writes: a_delete_is_refused_at_another_revision,
            writes: a_recreated_key_has_a_new_create_revision,
            writes: refused_writes_take_no_revision,
            writes: any_bytes_are_a_value,
            writes: the_largest_value_is_accepted_and_a_larger_is_refused,
            writes: one_of_many_creates_wins,
            writes: concurrent_updates_lose_nothing,
            writes: a_read_after_a_write_sees_it,
            writes: a_dropped_write_happens_wholly_or_not_at_all,
            watches: history_comes_before_live_without_gap_or_duplicate,
            watches: previous_and_current_are_filled,
            watches: other_keys_move_progress_on,
            watches: many_watches_see_the_same,
            watches: a_watch_resumes_where_it_ended,
            watches: a_watch_that_starts_under_writes_misses_nothing,
            watches: a_watch_of_the_future_is_refused,
            compaction: compaction_removes_history_and_preserves_the_newest_state,
            compaction: the_state_at_the_compacted_revision_stays_readable,
            compaction: a_watch_from_before_the_compaction_is_refused,
            compaction: a_watch_that_keeps_up_is_not_affected_by_compaction,
            compaction: compaction_of_the_future_is_refused,
            compaction: compacting_again_is_harmless,
            expiry: a_key_expires_with_a_revision_and_an_event,
            expiry: a_later_put_clears_the_expiry,
            expiry: a_later_put_replaces_the_expiry,
            expiry: a_deleted_key_does_not_expire,
            expiry: remaining_times_to_live_are_reported,
            model: random_work_agrees_with_the_model,
            model: concurrent_work_is_one_history,
        }
    };
    (@cases $make:expr; $($module:ident: $case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (storage, _keep) = $make;
                $crate::conformance::$module::$case(storage).await;
            }
        )*
    };
}

/// The storage under test.
pub type TestedStorage = Arc<dyn Storage>;

async fn create(storage: &TestedStorage, key: &str, value: &str) -> KeyValue {
    let value = Bytes::copy_from_slice(value.as_bytes());
    storage.put(key, value, Expect::Absent, None).await.expect("the key was absent")
}

async fn update(storage: &TestedStorage, at: &KeyValue, value: &str) -> KeyValue {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let expect = Expect::Revision(at.mod_revision);
    storage.put(&at.key, value, expect, None).await.expect("the key has no other writer")
}

async fn remove(storage: &TestedStorage, at: &KeyValue) -> Revision {
    let (revision, last) =
        storage.delete(&at.key, at.mod_revision).await.expect("the key has no other writer");
    assert_eq!(&last, at, "a deletion returns the last state");
    revision
}

async fn get(storage: &TestedStorage, key: &str) -> Option<KeyValue> {
    storage.get(key, None).await.expect("a get of the newest works").1
}

async fn list(storage: &TestedStorage, prefix: &str, at: Option<Revision>) -> Vec<KeyValue> {
    let request = RangeRequest { at, ..RangeRequest::prefix(prefix) };
    let response = storage.range(request).await.expect("the revision is available");
    assert_eq!(response.remaining, 0, "nothing remains without a limit");
    if let Some(at) = at {
        assert_eq!(response.revision, at, "a range returns the requested revision");
    }
    response.items
}

async fn newest(storage: &TestedStorage) -> Revision {
    storage.revision().await.expect("the storage is open")
}

async fn watch(storage: &TestedStorage, prefix: &str, after: Revision) -> Watching {
    let stream = storage.watch(prefix, after).await.expect("history is available");
    Watching { stream, prefix: prefix.to_owned(), complete: after }
}

/// A watch stream whose order, filter and progress are checked as it is read.
struct Watching {
    stream: WatchStream,
    prefix: String,
    /// Everything up to this was delivered.
    complete: Revision,
}

impl Watching {
    /// The next item, in time.
    async fn next(&mut self) -> Option<Result<WatchItem, StorageError>> {
        tokio::time::timeout(WAIT_MAX, self.stream.next()).await.expect("the watch is not stuck")
    }

    /// All events until the watch reports progress up to `revision`.
    async fn read_to(&mut self, revision: Revision) -> Vec<Arc<Event>> {
        let mut all: Vec<Arc<Event>> = Vec::new();
        while self.complete < revision {
            match self.next().await.expect("the watch continues").expect("the watch keeps up") {
                WatchItem::Events(events) => {
                    assert!(!events.is_empty(), "batches are not empty");
                    for event in &events {
                        let last = all.last().map_or(self.complete, |last| last.revision);
                        assert!(event.revision > last, "events are in order, without duplicates");
                        assert!(event.key.starts_with(&self.prefix), "only the prefix is watched");
                    }
                    all.extend(events);
                }
                WatchItem::Progress(progress) => {
                    let last = all.last().map_or(0, |last| last.revision);
                    assert!(progress >= last, "progress covers what was delivered");
                    assert!(progress >= self.complete, "progress does not decrease");
                    self.complete = progress;
                }
            }
        }
        all
    }
}
