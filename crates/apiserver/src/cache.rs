//! The watch cache of one storage prefix: every live object as served bytes, and the recent events.
//!
//! Watchers own only a cursor into the shared ring of events, so a watcher costs no queue and a slow one cannot hold
//! up others: when the ring has moved past its cursor, its stream ends. The cache is written by the dispatcher in
//! [`crate::registry`] alone.

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

pub use event::{CacheEvent, Change, Framing};
pub use view::{Encoding, View};

use crate::stored::Stored;

/// Events kept at least this long, so that a watcher which resumes after a bookmark (sent each minute) finds its place.
const HISTORY_AGE_MIN: Duration = Duration::from_secs(75);
/// Events kept however old they are.
const HISTORY_EVENTS_MIN: usize = 100;
/// Events kept at most; a watcher further behind than this is dropped.
const HISTORY_EVENTS_MAX: usize = 16_384;

struct State {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    /// How many objects each namespace has; no entry when none.
    counts: HashMap<Box<str>, usize>,
    ring: VecDeque<Arc<CacheEvent>>,
    /// The ring holds every event with a revision above this.
    complete_after: Revision,
    /// Revision of the newest applied event: `objects` is exactly the state at it.
    newest: Revision,
    closed: bool,
}

impl State {
    fn put(&mut self, object: Arc<Stored>) {
        if self.objects.insert(object.key.clone(), object.clone()).is_none() {
            *self.counts.entry(object.namespace.clone()).or_default() += 1;
        }
    }

    fn take(&mut self, key: &str) {
        let Some(object) = self.objects.remove(key) else { return };
        if let Some(count) = self.counts.get_mut(&*object.namespace) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&*object.namespace);
            }
        }
    }

    /// The keys that have changed since `revision`, with what they were then.
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
                // Only the first change tells the state before all of them.
                if let Entry::Vacant(entry) = former.entry(key) {
                    entry.insert(event.previous.as_ref());
                }
            }
        }
        former
    }
}

/// The objects of one moment.
pub struct Objects<'c>(RwLockReadGuard<'c, State>);

impl Objects<'_> {
    /// Revision of the newest change whose effect is seen.
    pub fn newest(&self) -> Revision {
        self.0.newest
    }

    /// How many there are in `namespace`; in all when that is empty.
    pub fn count(&self, namespace: &str) -> usize {
        match namespace {
            "" => self.0.objects.len(),
            _ => self.0.counts.get(namespace).copied().unwrap_or(0),
        }
    }

    /// Those whose key begins with `prefix` and is not below `from`, in key order.
    pub fn walk(&self, prefix: &str, from: &str) -> impl Iterator<Item = &Arc<Stored>> {
        let start = if from > prefix { from } else { prefix };
        let range = self.0.objects.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        range.take_while(move |(key, _)| key.starts_with(prefix)).map(|(_, object)| object)
    }

    /// As [`Objects::walk`], of the objects as they were at `revision`; `None` when that is newer
    /// than what was applied, or history does not reach back to it.
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

/// What a watcher found at its cursor.
pub enum Since {
    Events(Vec<Arc<CacheEvent>>),
    /// The ring no longer reaches back to the cursor.
    Gone,
    /// The resource was uninstalled.
    Closed,
}

pub struct Cache {
    state: RwLock<State>,
    /// Revision of the newest event; watchers wait on it.
    newest: watch::Sender<Revision>,
}

impl Cache {
    /// `objects`: all live objects as of `revision`.
    pub fn new(objects: impl IntoIterator<Item = Arc<Stored>>, revision: Revision) -> Self {
        let mut state = State {
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

    pub fn get(&self, key: &str) -> Option<Arc<Stored>> {
        self.state.read().objects.get(key).cloned()
    }

    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state as it is, until the answer is dropped. Changes wait meanwhile.
    pub fn read(&self) -> Objects<'_> {
        Objects(self.state.read())
    }

    /// All objects under `prefix`, and the revision of the newest change among them.
    pub fn list(&self, prefix: &str) -> (Vec<Arc<Stored>>, Revision) {
        let objects = self.read();
        (objects.walk(prefix, "").cloned().collect(), objects.newest())
    }

    /// Applies one change; called in revision order.
    pub fn apply(&self, event: CacheEvent) {
        let revision = event.revision;
        {
            let mut state = self.state.write();
            state.newest = revision;
            if event.deleted {
                state.take(&event.current.key);
            } else {
                state.put(event.current.clone());
            }
            state.ring.push_back(Arc::new(event));
            trim(&mut state);
        }
        self.newest.send_replace(revision);
    }

    /// Events above `cursor`, oldest first.
    pub fn since(&self, cursor: Revision) -> Since {
        let state = self.state.read();
        if cursor < state.complete_after {
            return Since::Gone;
        }
        let start = state.ring.partition_point(|event| event.revision <= cursor);
        let events: Vec<_> = state.ring.range(start..).cloned().collect();
        // What came before the end is still told.
        if events.is_empty() && state.closed { Since::Closed } else { Since::Events(events) }
    }

    /// Forgets what came before the state at `revision`, which is applied.
    pub fn forget_until(&self, revision: Revision) {
        let mut state = self.state.write();
        state.ring.retain(|event| event.revision > revision);
        // Whoever has seen the newest event has missed nothing.
        state.complete_after = state.complete_after.max(revision.min(state.newest));
    }

    /// The oldest cursor that [`Cache::since`] can serve.
    pub fn complete_after(&self) -> Revision {
        self.state.read().complete_after
    }

    /// Tells of new events; the value is the newest event's revision.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    /// Ends all watchers: the resource is no longer served as it was.
    pub fn close(&self) {
        self.state.write().closed = true;
        self.newest.send_modify(|_| ());
    }
}

fn trim(state: &mut State) {
    while state.ring.len() > HISTORY_EVENTS_MIN {
        let oldest = state.ring.front().expect("longer than the minimum");
        if state.ring.len() <= HISTORY_EVENTS_MAX && oldest.at.elapsed() < HISTORY_AGE_MIN {
            return;
        }
        state.complete_after = oldest.revision;
        state.ring.pop_front();
    }
}
