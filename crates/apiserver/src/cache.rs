//! The watch cache of one storage prefix: every live object in its served encoding, and the recent
//! events.
//!
//! A watcher only owns a cursor into the shared ring of events, so it costs no queue, and a slow
//! one does not delay others: when the ring has moved past its cursor, its stream ends. Only the
//! dispatcher in [`crate::registry`] writes to the cache.

mod event;
mod once_map;
mod view;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use storage::Revision;
use tokio::sync::watch;

pub use event::{CacheEvent, Framing, WatchEventType};
pub use view::{Encoding, View};

use crate::stored::Stored;

/// The minimum age of discarded events, so that a watcher can resume after a bookmark, which is
/// sent each minute.
const HISTORY_AGE_MIN: Duration = Duration::from_secs(75);
/// The number of events that are retained at any age.
const HISTORY_EVENTS_MIN: usize = 100;
/// The maximum number of retained events; a watcher that is further behind is dropped.
const HISTORY_EVENTS_MAX: usize = 16_384;

struct CacheState {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    /// The number of objects per namespace; no entry for zero.
    counts: HashMap<Box<str>, usize>,
    ring: VecDeque<Arc<CacheEvent>>,
    /// Invariant: the ring holds every event with a revision above this.
    complete_after: Revision,
    /// The revision of the newest applied event. Invariant: `objects` is the state at this
    /// revision.
    newest: Revision,
    closed: bool,
}

impl CacheState {
    fn put(&mut self, object: Arc<Stored>) {
        if self.objects.insert(object.key.clone(), object.clone()).is_none() {
            *self.counts.entry(object.namespace.clone()).or_default() += 1;
        }
    }

    fn remove(&mut self, key: &str) {
        let Some(object) = self.objects.remove(key) else { return };
        if let Some(count) = self.counts.get_mut(&*object.namespace) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&*object.namespace);
            }
        }
    }

    /// The keys that changed after `revision`, with their objects at that revision.
    fn changed_since(
        &self,
        revision: Revision,
        prefix: &str,
        from: &str,
    ) -> BTreeMap<&str, Option<&Arc<Stored>>> {
        let mut former = BTreeMap::new();
        let start = self.ring.partition_point(|event| event.revision <= revision);
        for event in self.ring.range(start..) {
            let key = &*event.current.key;
            if key.starts_with(prefix) && key >= from {
                // Only the first change has the state before all of them.
                if let Entry::Vacant(entry) = former.entry(key) {
                    entry.insert(event.previous.as_ref());
                }
            }
        }
        former
    }
}

/// A consistent view of the objects. It holds the read lock of the cache.
pub struct Objects<'c>(RwLockReadGuard<'c, CacheState>);

impl Objects<'_> {
    /// The revision of the newest change in this view.
    pub fn newest(&self) -> Revision {
        self.0.newest
    }

    /// The number of objects in `namespace`; in all namespaces when that is empty.
    pub fn count(&self, namespace: &str) -> usize {
        match namespace {
            "" => self.0.objects.len(),
            _ => self.0.counts.get(namespace).copied().unwrap_or(0),
        }
    }

    /// The objects whose key begins with `prefix` and is not below `from`, in key order.
    pub fn walk(&self, prefix: &str, from: &str) -> impl Iterator<Item = &Arc<Stored>> {
        let start = if from > prefix { from } else { prefix };
        let range = self.0.objects.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        range.take_while(move |(key, _)| key.starts_with(prefix)).map(|(_, object)| object)
    }

    /// Like [`Objects::walk`], with the objects at `revision`. `None` when that is before the
    /// retained events.
    pub fn walk_at(
        &self,
        revision: Revision,
        prefix: &str,
        from: &str,
    ) -> Option<impl Iterator<Item = &Arc<Stored>>> {
        if revision < self.0.complete_after {
            return None;
        }
        let mut changed = self.0.changed_since(revision, prefix, from);
        let mut live = self.walk(prefix, from).peekable();
        Some(std::iter::from_fn(move || {
            loop {
                let next = match (live.peek(), changed.first_entry()) {
                    (Some(now), Some(then)) if *now.key >= **then.key() => {
                        live.next_if(|now| *now.key == **then.key());
                        then.remove()
                    }
                    (None, Some(then)) => then.remove(),
                    _ => return live.next(),
                };
                if next.is_some() {
                    return next;
                }
            }
        }))
    }
}

/// The events after a watcher's cursor.
pub enum Since {
    /// The events, oldest first; empty when there are none yet.
    Events(Vec<Arc<CacheEvent>>),
    /// The ring no longer reaches back to the cursor.
    Gone,
    /// The resource was uninstalled.
    Closed,
}

/// A watch cache; see the module.
pub struct Cache {
    state: RwLock<CacheState>,
    /// The revision of the newest event, which watchers wait for.
    newest: watch::Sender<Revision>,
}

impl Cache {
    /// Creates a cache of `objects`, all live objects at `revision`.
    pub fn new(objects: impl IntoIterator<Item = Arc<Stored>>, revision: Revision) -> Self {
        let mut state = CacheState {
            objects: BTreeMap::new(),
            counts: HashMap::new(),
            ring: VecDeque::new(),
            complete_after: revision,
            newest: revision,
            closed: false,
        };
        objects.into_iter().for_each(|object| state.put(object));
        Self { state: RwLock::new(state), newest: watch::Sender::new(revision) }
    }

    /// The object at a storage key.
    pub fn get(&self, key: &str) -> Option<Arc<Stored>> {
        self.state.read().objects.get(key).cloned()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The current state. Changes wait until the result is dropped.
    pub fn read(&self) -> Objects<'_> {
        Objects(self.state.read())
    }

    /// All objects under `prefix`, with the revision of the newest change in the cache.
    pub fn list(&self, prefix: &str) -> (Vec<Arc<Stored>>, Revision) {
        let objects = self.read();
        (objects.walk(prefix, "").cloned().collect(), objects.newest())
    }

    /// Applies one change and notifies watchers. It must be called in the order of revisions.
    pub fn apply(&self, event: CacheEvent) {
        let revision = event.revision;
        {
            let mut state = self.state.write();
            state.newest = revision;
            if event.deleted {
                state.remove(&event.current.key);
            } else {
                state.put(event.current.clone());
            }
            state.ring.push_back(Arc::new(event));
            trim(&mut state);
        }
        self.newest.send_replace(revision);
    }

    /// The events after the revision `cursor`, oldest first.
    pub fn since(&self, cursor: Revision) -> Since {
        let state = self.state.read();
        if cursor < state.complete_after {
            return Since::Gone;
        }
        let start = state.ring.partition_point(|event| event.revision <= cursor);
        let events: Vec<_> = state.ring.range(start..).cloned().collect();
        // Events before the close are still returned.
        if events.is_empty() && state.closed { Since::Closed } else { Since::Events(events) }
    }

    /// Discards the events up to `revision`, which must be applied. Older cursors can no longer be
    /// resumed.
    pub fn forget_until(&self, revision: Revision) {
        let mut state = self.state.write();
        state.ring.retain(|event| event.revision > revision);
        // A watcher that has seen the newest event has missed nothing.
        state.complete_after = state.complete_after.max(revision.min(state.newest));
    }

    /// The oldest cursor that [`Cache::since`] can serve.
    pub fn complete_after(&self) -> Revision {
        self.state.read().complete_after
    }

    /// Subscribes to new events; the value is the revision of the newest event.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    /// Closes the cache and ends all watchers: the resource is no longer served, or served
    /// differently.
    pub fn close(&self) {
        self.state.write().closed = true;
        self.newest.send_modify(|_| ());
    }
}

fn trim(state: &mut CacheState) {
    while state.ring.len() > HISTORY_EVENTS_MIN {
        let oldest = state.ring.front().expect("longer than the minimum");
        if state.ring.len() <= HISTORY_EVENTS_MAX && oldest.at.elapsed() < HISTORY_AGE_MIN {
            return;
        }
        state.complete_after = oldest.revision;
        state.ring.pop_front();
    }
}
