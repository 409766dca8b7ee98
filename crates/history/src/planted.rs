//! Storages with planted bugs: a check is worthless if it does not find these.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use storage::{
    Event, Expect, KeyValue, RangeRequest, RangeResponse, Revision, Storage, StorageError,
    WatchItem, WatchStream,
};

use crate::work::ROOT;

/// A planted bug. It shows at every [`EVERY`]th opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A put is acknowledged and not done.
    LostPut,
    /// A deletion is acknowledged and not done.
    LostDelete,
    /// A write happens although its comparison does not hold.
    NotCompared,
    /// A write that was refused is done all the same.
    RefusedAndDone,
    /// A write returns the revision of the write before it.
    RevisionTwice,
    /// A write is done twice.
    DoneTwice,
    /// A get of the newest returns an older state.
    StaleGet,
    /// A list of the newest returns an older one.
    StaleList,
    /// A list mixes two states.
    TornList,
    /// A get at a revision returns the newest state.
    NewestForPast,
    /// A compacted revision is read as if it were not.
    CompactedRead,
    /// A watch drops a change.
    LostEvent,
    /// A watch delivers a change twice.
    EventTwice,
    /// A watch delivers two changes in the wrong order.
    EventsSwapped,
    /// A watch delivers a previous state that never was.
    WrongPrevious,
    /// A watch reports progress before it is complete.
    EarlyProgress,
    /// A watch that begins at a compacted revision begins after it instead.
    CompactedWatch,
}

impl Bug {
    pub const ALL: [Self; 17] = [
        Self::LostPut,
        Self::LostDelete,
        Self::NotCompared,
        Self::RefusedAndDone,
        Self::RevisionTwice,
        Self::DoneTwice,
        Self::StaleGet,
        Self::StaleList,
        Self::TornList,
        Self::NewestForPast,
        Self::CompactedRead,
        Self::LostEvent,
        Self::EventTwice,
        Self::EventsSwapped,
        Self::WrongPrevious,
        Self::EarlyProgress,
        Self::CompactedWatch,
    ];
}

/// The bug shows at one opportunity in this many.
const EVERY: u64 = 5;
/// A key outside of what is checked. Writes to it produce revisions for false responses.
const UNCHECKED_KEY: &str = "/elsewhere";

/// The last response to each request.
type Responses<T> = Mutex<Vec<(String, T)>>;

/// A storage with one bug.
pub struct Planted {
    inner: Arc<dyn Storage>,
    bug: Bug,
    chances: Arc<AtomicU64>,
    shown: Arc<AtomicU64>,
    last_written: AtomicU64,
    gets: Responses<(Revision, Option<KeyValue>)>,
    lists: Responses<RangeResponse>,
}

impl Planted {
    /// The storage `inner` with one bug.
    pub fn new(inner: Arc<dyn Storage>, bug: Bug) -> Arc<Self> {
        Arc::new(Self {
            inner,
            bug,
            chances: Arc::default(),
            shown: Arc::default(),
            last_written: AtomicU64::new(0),
            gets: Mutex::default(),
            lists: Mutex::default(),
        })
    }

    /// How often the bug has shown.
    pub fn shown_count(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Whether `bug` shows now. Called only where it can.
    fn shows(&self, bug: Bug) -> bool {
        self.bug == bug && shows(&self.chances, &self.shown)
    }

    /// Creates a revision that no other write has.
    async fn other_revision(&self) -> Result<Revision, StorageError> {
        let mut found = self.inner.get(UNCHECKED_KEY, None).await?.1;
        loop {
            let put = self.inner.put(UNCHECKED_KEY, Bytes::new(), expect_of(found.as_ref()), None);
            match put.await {
                Err(StorageError::Unexpected { current }) => found = current,
                other => return Ok(other?.mod_revision),
            }
        }
    }

    async fn put_wrong(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> Result<KeyValue, StorageError> {
        if self.bug == Bug::LostPut {
            let (_, found) = self.inner.get(key, None).await?;
            let holds = match expect {
                Expect::Absent => found.is_none(),
                Expect::Revision(at) => {
                    found.as_ref().is_some_and(|found| found.mod_revision == at)
                }
            };
            if holds && self.shows(Bug::LostPut) {
                let mod_revision = self.other_revision().await?;
                let create_revision = found.map_or(mod_revision, |found| found.create_revision);
                return Ok(KeyValue { key: key.into(), value, create_revision, mod_revision });
            }
        }
        let put = self.inner.put(key, value.clone(), expect, ttl).await;
        match put {
            Err(StorageError::Unexpected { current }) if self.shows(Bug::NotCompared) => {
                let expect = expect_of(current.as_ref());
                self.inner.put(key, value, expect, ttl).await
            }
            Err(StorageError::Unexpected { current }) if self.shows(Bug::RefusedAndDone) => {
                let done = self.inner.put(key, value, expect_of(current.as_ref()), ttl).await;
                done.and(Err(StorageError::Unexpected { current }))
            }
            Ok(state) if self.shows(Bug::DoneTwice) => {
                let expect = Expect::Revision(state.mod_revision);
                // Another write may come in between; the bug then shows another time.
                let _ = self.inner.put(key, value, expect, ttl).await;
                Ok(state)
            }
            Ok(mut state) => {
                let last = self.last_written.swap(state.mod_revision, Ordering::Relaxed);
                if last > 0 && self.shows(Bug::RevisionTwice) {
                    state.mod_revision = last;
                }
                Ok(state)
            }
            other => other,
        }
    }
}

fn shows(chances: &AtomicU64, shown: &AtomicU64) -> bool {
    let shows = (chances.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY);
    shown.fetch_add(u64::from(shows), Ordering::Relaxed);
    shows
}

fn expect_of(state: Option<&KeyValue>) -> Expect {
    state.map_or(Expect::Absent, |state| Expect::Revision(state.mod_revision))
}

/// Stores `new` as the response to `request`, and returns the previous one.
fn replace<T>(stored: &Responses<T>, request: String, new: T) -> Option<T> {
    let mut stored = stored.lock();
    match stored.iter_mut().find(|(before, _)| *before == request) {
        Some((_, old)) => Some(std::mem::replace(old, new)),
        None => {
            stored.push((request, new));
            None
        }
    }
}

impl Storage for Planted {
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.inner.revision()
    }

    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>> {
        async move {
            let response = self.inner.get(key, at).await;
            match (at, response) {
                (None, Ok(new)) => {
                    let old = replace(&self.gets, key.to_owned(), new.clone());
                    let old = old.filter(|old| old.1 != new.1);
                    Ok(old.filter(|_| self.shows(Bug::StaleGet)).unwrap_or(new))
                }
                (Some(at), Ok(past)) => {
                    let (_, newest) = self.inner.get(key, None).await?;
                    let differs = newest != past.1;
                    if differs && self.shows(Bug::NewestForPast) {
                        return Ok((at, newest));
                    }
                    Ok(past)
                }
                (Some(at), Err(StorageError::Compacted { .. }))
                    if self.shows(Bug::CompactedRead) =>
                {
                    Ok((at, None))
                }
                (_, error) => error,
            }
        }
        .boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>> {
        async move {
            let mut response = self.inner.range(request.clone()).await?;
            if request.at.is_some() {
                return Ok(response);
            }
            let key = format!("{} {:?}", request.start, request.limit);
            let Some(old) = replace(&self.lists, key, response.clone()) else {
                return Ok(response);
            };
            let changed = old.items != response.items;
            if changed && self.shows(Bug::StaleList) {
                return Ok(old);
            }
            let both = old.items.first() != response.items.first() && !old.items.is_empty();
            if both && !response.items.is_empty() && self.shows(Bug::TornList) {
                response.items[0] = old.items[0].clone();
            }
            Ok(response)
        }
        .boxed()
    }

    fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<KeyValue, StorageError>> {
        let key = key.to_owned();
        async move { self.put_wrong(&key, value, expect, ttl).await }.boxed()
    }

    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>> {
        let key = key.to_owned();
        async move {
            if self.bug == Bug::LostDelete
                && let (_, Some(found)) = self.inner.get(&key, None).await?
                && found.mod_revision == expect
                && self.shows(Bug::LostDelete)
            {
                return Ok((self.other_revision().await?, found));
            }
            self.inner.delete(&key, expect).await
        }
        .boxed()
    }

    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        let prefix = prefix.to_owned();
        async move {
            let stream = match self.inner.watch(&prefix, after).await {
                Err(StorageError::Compacted { oldest, .. }) if self.bug == Bug::CompactedWatch => {
                    let newest = self.inner.revision().await?.max(oldest);
                    let _ = self.shows(Bug::CompactedWatch);
                    self.inner.watch(&prefix, newest).await?
                }
                other => other?,
            };
            // The watch of everything stays correct, so that bugs of the others are found by it.
            if prefix == ROOT { Ok(stream) } else { Ok(self.distort(stream)) }
        }
        .boxed()
    }

    fn compacted(&self) -> Revision {
        self.inner.compacted()
    }

    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>> {
        self.inner.expiring()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.compact(revision)
    }
}

impl Planted {
    fn distort(&self, stream: WatchStream) -> WatchStream {
        let (bug, chances, shown) = (self.bug, Arc::clone(&self.chances), Arc::clone(&self.shown));
        let items = stream.map(move |item| {
            let Ok(WatchItem::Events(mut events)) = item else { return vec![item] };
            match bug {
                Bug::LostEvent if shows(&chances, &shown) => drop(events.pop()),
                Bug::EventTwice if shows(&chances, &shown) => {
                    events.extend(events.first().cloned());
                }
                Bug::EventsSwapped if events.len() > 1 && shows(&chances, &shown) => {
                    events.swap(0, 1);
                }
                Bug::WrongPrevious if shows(&chances, &shown) => {
                    let mut wrong = Event::clone(&events[0]);
                    wrong.previous = match wrong.previous {
                        Some(_) => None,
                        None => wrong.current.clone(),
                    };
                    events[0] = Arc::new(wrong);
                }
                Bug::EarlyProgress if shows(&chances, &shown) => {
                    let last = events.last().map_or(0, |last| last.revision);
                    let early = Ok(WatchItem::Progress(last));
                    return vec![early, Ok(WatchItem::Events(events))];
                }
                _ => {}
            }
            // An empty batch would be found for being empty.
            if events.is_empty() { Vec::new() } else { vec![Ok(WatchItem::Events(events))] }
        });
        items.flat_map(futures::stream::iter).boxed()
    }
}
