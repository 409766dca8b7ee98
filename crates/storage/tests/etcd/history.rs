//! Writers and watchers whose history is recorded, and its invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use storage::{Event, Expect, KeyValue, RangeRequest, Revision, Storage, StorageError, WatchItem};
use tokio::task::JoinHandle;

use super::wait;

const WRITERS: usize = 8;
/// Keys of each writer; one more belongs to all.
const KEYS: usize = 4;
const WATCHERS: usize = 3;
/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The outcome of one attempt to write. Values are never used twice, and identify the attempt.
enum Outcome {
    Acknowledged(KeyValue),
    Deleted(Revision, KeyValue),
    /// The value may have been written, or the key deleted.
    Unknown,
    /// The value must never be seen.
    Refused(Bytes),
}

/// Running writers and watchers.
pub struct Work {
    storage: Arc<dyn Storage>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    writers: Vec<JoinHandle<Vec<Outcome>>>,
    watchers: Vec<JoinHandle<Vec<Arc<Event>>>>,
    /// The revision that each watcher has reached.
    complete: Vec<Arc<AtomicU64>>,
    /// The revision at which the watchers end; 0 while it is not known.
    until: tokio::sync::watch::Sender<Revision>,
}

impl Work {
    pub async fn begin(storage: Arc<dyn Storage>) -> Self {
        let start = storage.revision().await.expect("the cluster is up");
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let until = tokio::sync::watch::Sender::new(0);
        let complete: Vec<_> = (0..WATCHERS).map(|_| Arc::new(AtomicU64::new(0))).collect();
        let watchers = complete.iter().map(|complete| {
            let (storage, complete) = (Arc::clone(&storage), Arc::clone(complete));
            tokio::spawn(record(storage, start, complete, until.subscribe()))
        });
        let watchers = watchers.collect();
        let writers = (0..WRITERS).map(|writer| {
            let (stop, acknowledged) = (Arc::clone(&stop), Arc::clone(&acknowledged));
            tokio::spawn(write(Arc::clone(&storage), writer, stop, acknowledged))
        });
        let writers = writers.collect();
        Self { storage, stop, acknowledged, writers, watchers, complete, until }
    }

    /// Waits until `count` more writes were acknowledged, and every watcher has seen them.
    pub async fn go_on(&self, count: usize) {
        let goal = self.acknowledged.load(Ordering::Relaxed) + count;
        let written = async || {
            let reached = self.acknowledged.load(Ordering::Relaxed) >= goal;
            if reached { self.storage.revision().await.ok() } else { None }
        };
        let revision = wait::until(WAIT_MAX, "further writes", written).await;
        let seen = async || {
            let seen = self.complete.iter().all(|one| one.load(Ordering::Relaxed) >= revision);
            seen.then_some(())
        };
        wait::until(WAIT_MAX, "progress of every watcher", seen).await;
    }

    /// Waits until no write is acknowledged any more.
    pub async fn wait_for_stop(&self) {
        let silent = async || self.storage.revision().await.is_err().then_some(());
        wait::until(WAIT_MAX, "the cluster is silent", silent).await;
    }

    /// Ends the writers and checks the history. Returns how many writes were acknowledged, and how
    /// many ended with an unknown outcome.
    pub async fn check(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let mut outcomes = Vec::new();
        for writer in self.writers {
            outcomes.extend(writer.await.expect("no panic"));
        }
        let last = self.storage.revision().await.expect("the cluster is up");
        self.until.send_replace(last);
        let mut histories = Vec::new();
        for watcher in self.watchers {
            histories.push(watcher.await.expect("no panic"));
        }
        let history = histories.pop().expect("there are watchers");
        for other in &histories {
            assert_eq!(other, &history, "all watchers see the same");
        }
        let list = self.storage.range(RangeRequest::prefix("/h/")).await.expect("reads work");
        check_states(&history, &list.items);
        check_outcomes(&history, &outcomes)
    }
}

/// Records all events until the watchers end.
async fn record(
    storage: Arc<dyn Storage>,
    start: Revision,
    reached_by: Arc<AtomicU64>,
    mut until: tokio::sync::watch::Receiver<Revision>,
) -> Vec<Arc<Event>> {
    let mut stream = storage.watch("/h/", start).await.expect("the past is there");
    let (mut all, mut complete): (Vec<Arc<Event>>, _) = (Vec::new(), start);
    loop {
        reached_by.store(complete, Ordering::Relaxed);
        let end = *until.borrow();
        if end > 0 && complete >= end {
            return all;
        }
        let item = tokio::select! {
            item = tokio::time::timeout(WAIT_MAX, stream.next()) => item,
            _ = until.changed() => continue,
        };
        let item = item.expect("the watch is not stuck").expect("it goes on").expect("it is whole");
        match item {
            WatchItem::Events(events) => {
                for event in events {
                    assert!(event.revision > complete, "{} came twice", event.revision);
                    complete = event.revision;
                    all.push(event);
                }
            }
            WatchItem::Progress(revision) => {
                assert!(revision >= complete, "progress goes back");
                complete = revision;
            }
        }
    }
}

async fn write(
    storage: Arc<dyn Storage>,
    writer: usize,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        wait::pause().await;
        let key = match number % (KEYS + 1) {
            KEYS => "/h/all".to_owned(),
            own => format!("/h/{writer}/{own}"),
        };
        // A cluster without a leader serves no reads for a while.
        let Ok((_, found)) = storage.get(&key, None).await else { continue };
        let value = Bytes::from(format!("{writer}-{number}"));
        let result = match found {
            Some(found) if number % 7 == 0 => storage
                .delete(&key, found.mod_revision)
                .await
                .map(|(revision, last)| Outcome::Deleted(revision, last)),
            found => {
                let expect = found.map_or(Expect::Absent, |f| Expect::Revision(f.mod_revision));
                let put = storage.put(&key, value.clone(), expect, None).await;
                put.map(Outcome::Acknowledged)
            }
        };
        outcomes.push(match result {
            Ok(outcome) => {
                acknowledged.fetch_add(1, Ordering::Relaxed);
                outcome
            }
            Err(StorageError::Unknown { .. }) => Outcome::Unknown,
            Err(StorageError::Unexpected { .. } | StorageError::Failed { .. }) => {
                Outcome::Refused(value)
            }
            Err(error) => panic!("a write ended with {error}"),
        });
    }
    outcomes
}

/// Each event follows from the one before it on the same key, and the last events are the current
/// state, so none is missing.
fn check_states(history: &[Arc<Event>], items: &[KeyValue]) {
    let mut states: BTreeMap<&str, KeyValue> = BTreeMap::new();
    for event in history {
        let before = states.remove(&*event.key);
        assert_eq!(event.previous, before, "before {}", event.revision);
        if let Some(current) = &event.current {
            states.insert(&event.key, current.clone());
        }
    }
    let states: Vec<_> = states.into_values().collect();
    assert_eq!(states, items, "the list is what the events made");
}

/// An acknowledged write happened once, as acknowledged; a refused write never; a write with an
/// unknown outcome at most once.
fn check_outcomes(history: &[Arc<Event>], outcomes: &[Outcome]) -> (usize, usize) {
    let by_revision: BTreeMap<_, _> = history.iter().map(|event| (event.revision, event)).collect();
    let mut values = BTreeSet::new();
    for current in history.iter().filter_map(|event| event.current.as_ref()) {
        assert!(values.insert(&current.value), "{:?} was written twice", current.value);
    }
    let mut given = BTreeSet::new();
    let (mut acknowledged, mut unknown) = (0, 0);
    for outcome in outcomes {
        let revision = match outcome {
            Outcome::Acknowledged(state) => {
                let event = by_revision.get(&state.mod_revision);
                let seen = event.and_then(|event| event.current.as_ref());
                assert_eq!(seen, Some(state), "an acknowledged write is lost");
                state.mod_revision
            }
            Outcome::Deleted(revision, last) => {
                let event = by_revision.get(revision).expect("an acknowledged deletion is lost");
                assert_eq!((&event.previous, &event.current), (&Some(last.clone()), &None));
                *revision
            }
            Outcome::Unknown => {
                unknown += 1;
                continue;
            }
            Outcome::Refused(value) => {
                assert!(!values.contains(value), "{value:?} was refused and is there");
                continue;
            }
        };
        acknowledged += 1;
        assert!(given.insert(revision), "revision {revision} was given to two writes");
    }
    assert!(history.len() <= acknowledged + unknown, "more happened than was tried");
    (acknowledged, unknown)
}
