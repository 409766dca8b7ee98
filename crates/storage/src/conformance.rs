//! What every [`Storage`] must do, as cases that any implementation can run.
//!
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each case. A case takes an
//! empty storage that nobody else uses, and panics where the storage deviates. The numbers ST1 to
//! ST12 in the cases' comments are the rows of the storage contract that the API server relies on;
//! what a contract row says of files and crashes is for the tests of the implementation.
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

/// Makes a `#[tokio::test]` of every conformance case.
///
/// `$make` is an expression, evaluated anew in each test, of a pair: an `Arc<dyn Storage>` (or of a
/// type that coerces to it) and whatever must live as long as the storage, a temporary directory
/// for example. The crate that uses it needs `tokio` with the features `macros` and
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
            compaction: compaction_forgets_the_past_and_keeps_the_present,
            compaction: compaction_keeps_what_the_compacted_revision_shows,
            compaction: a_watch_from_before_the_compaction_is_refused,
            compaction: a_watch_that_keeps_up_is_not_hurt_by_compaction,
            compaction: compaction_of_the_future_is_refused,
            compaction: compacting_again_is_harmless,
            expiry: a_key_expires_with_a_revision_and_an_event,
            expiry: a_later_put_clears_the_expiry,
            expiry: a_later_put_replaces_the_expiry,
            expiry: a_deleted_key_does_not_expire,
            expiry: what_is_left_is_told,
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
pub type Subject = Arc<dyn Storage>;

async fn create(storage: &Subject, key: &str, value: &str) -> KeyValue {
    let value = Bytes::copy_from_slice(value.as_bytes());
    storage.put(key, value, Expect::Absent, None).await.expect("the key was absent")
}

async fn update(storage: &Subject, at: &KeyValue, value: &str) -> KeyValue {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let expect = Expect::Revision(at.mod_revision);
    storage.put(&at.key, value, expect, None).await.expect("nobody else wrote the key")
}

async fn remove(storage: &Subject, at: &KeyValue) -> Revision {
    let (revision, last) =
        storage.delete(&at.key, at.mod_revision).await.expect("nobody else wrote the key");
    assert_eq!(&last, at, "a deletion answers the last state");
    revision
}

async fn get(storage: &Subject, key: &str) -> Option<KeyValue> {
    storage.get(key, None).await.expect("a get of the newest works").1
}

async fn list(storage: &Subject, prefix: &str, at: Option<Revision>) -> Vec<KeyValue> {
    let request = RangeRequest { at, ..RangeRequest::prefix(prefix) };
    let response = storage.range(request).await.expect("the revision is there");
    assert_eq!(response.remaining, 0, "nothing remains without a limit");
    if let Some(at) = at {
        assert_eq!(response.revision, at, "a range tells the revision it was asked for");
    }
    response.items
}

async fn newest(storage: &Subject) -> Revision {
    storage.revision().await.expect("the storage is open")
}

async fn watch(storage: &Subject, prefix: &str, after: Revision) -> Watching {
    let stream = storage.watch(prefix, after).await.expect("history is there");
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

    /// All events until the watch says that it is complete up to `revision`.
    async fn read_to(&mut self, revision: Revision) -> Vec<Arc<Event>> {
        let mut all: Vec<Arc<Event>> = Vec::new();
        while self.complete < revision {
            match self.next().await.expect("the watch goes on").expect("the watch keeps up") {
                WatchItem::Events(events) => {
                    assert!(!events.is_empty(), "there is no empty batch");
                    for event in &events {
                        let last = all.last().map_or(self.complete, |last| last.revision);
                        assert!(event.revision > last, "events are in order, none is twice");
                        assert!(event.key.starts_with(&self.prefix), "only the prefix is watched");
                    }
                    all.extend(events);
                }
                WatchItem::Progress(progress) => {
                    let last = all.last().map_or(0, |last| last.revision);
                    assert!(progress >= last, "progress covers what was delivered");
                    assert!(progress >= self.complete, "progress does not go back");
                    self.complete = progress;
                }
            }
        }
        all
    }
}
