//! The watch cache of one storage prefix: every live object as served bytes, and the recent events.
//!
//! Watchers own only a cursor into the shared ring of events, so a watcher costs no queue and a slow one cannot hold
//! up others: when the ring has moved past its cursor, its stream ends. The cache is written by the dispatcher in
//! [`crate::registry`] alone.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use api_meta::status::Status;
use bytes::Bytes;
use parking_lot::RwLock;
use storage::Revision;
use tokio::sync::watch;

use crate::stored::Stored;

/// Events kept at least this long, so that a watcher which resumes after a bookmark (sent each minute) finds its place.
const HISTORY_AGE_MIN: Duration = Duration::from_secs(75);
/// Events kept however old they are.
const HISTORY_EVENTS_MIN: usize = 100;
/// Events kept at most; a watcher further behind than this is dropped.
const HISTORY_EVENTS_MAX: usize = 16_384;

/// One change of one object.
#[derive(Debug)]
pub struct CacheEvent {
    pub revision: Revision,
    pub at: Instant,
    pub previous: Option<Arc<Stored>>,
    /// For a deletion: the last state under the deletion's revision.
    pub current: Arc<Stored>,
    pub deleted: bool,
    frames: Frames,
    /// Made only when somebody watches in protobuf.
    protobuf: OnceLock<Box<Frames>>,
}

/// The encoded event, by [`Change`].
type Frames = [OnceLock<Bytes>; 3];

/// The event type a watcher sees; depends on its selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl CacheEvent {
    pub fn new(
        revision: Revision,
        previous: Option<Arc<Stored>>,
        current: Option<Arc<Stored>>,
    ) -> Option<Self> {
        let deleted = current.is_none();
        let current = match (current, &previous) {
            (Some(current), _) => current,
            (None, Some(previous)) => Arc::new(previous.at_revision(revision)),
            (None, None) => return None,
        };
        let at = Instant::now();
        let (frames, protobuf) = Default::default();
        Some(Self { revision, at, previous, current, deleted, frames, protobuf })
    }

    /// The encoded watch frame in the storage version: made once, shared by all watchers.
    pub fn frame(&self, change: Change, object: &Arc<Stored>, framing: Framing) -> Bytes {
        if !Arc::ptr_eq(object, &self.current) {
            return framing.frame(change.as_str(), &object.bytes);
        }
        let frames = match framing {
            Framing::Json => &self.frames,
            Framing::Protobuf => self.protobuf.get_or_init(Box::default),
        };
        let slot = &frames[change as usize];
        slot.get_or_init(|| framing.frame(change.as_str(), &object.bytes)).clone()
    }
}

/// How the events of a watch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `{"type":…,"object":…}` and a line end.
    Json,
    /// Length, type and encoded object.
    Protobuf,
}

impl Framing {
    /// One event, of a JSON object.
    pub fn frame(self, event: &str, object: &[u8]) -> Bytes {
        match self {
            Self::Json => json_frame(event, object),
            Self::Protobuf => match kubernetes_protobuf::encode(object) {
                Ok(encoded) => kubernetes_protobuf::watch_frame(event, &encoded).into(),
                Err(error) => {
                    let status = Status::internal(format!("{error}; watch in JSON")).to_json();
                    let encoded = kubernetes_protobuf::encode(status.to_string().as_bytes())
                        .expect("a Status has a protobuf form");
                    kubernetes_protobuf::watch_frame("ERROR", &encoded).into()
                }
            },
        }
    }
}

fn json_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(object.len() + kind.len() + 24);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    Bytes::from(frame)
}

struct State {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    ring: VecDeque<Arc<CacheEvent>>,
    /// The ring holds every event with a revision above this.
    complete_after: Revision,
    /// Revision of the newest applied event: `objects` is exactly the state at it.
    newest: Revision,
    closed: bool,
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
        let objects = objects.into_iter().map(|object| (object.key.clone(), object)).collect();
        let state = State {
            objects,
            ring: VecDeque::new(),
            complete_after: revision,
            newest: revision,
            closed: false,
        };
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

    /// Objects whose key begins with `prefix` and is not below `from`, in key order, while `take` says to go on.
    /// Returns the revision of the newest change that the walk saw the effect of.
    pub fn collect(
        &self,
        prefix: &str,
        from: &str,
        mut take: impl FnMut(&Arc<Stored>) -> ControlFlow<()>,
    ) -> Revision {
        let state = self.state.read();
        let start = if from > prefix { from } else { prefix };
        let range = state.objects.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        for (_, object) in range.take_while(|(key, _)| key.starts_with(prefix)) {
            if take(object).is_break() {
                break;
            }
        }
        state.newest
    }

    /// All objects under `prefix`, and the revision of the newest change among them.
    pub fn list(&self, prefix: &str) -> (Vec<Arc<Stored>>, Revision) {
        let mut objects = Vec::new();
        let newest = self.collect(prefix, "", |object| {
            objects.push(object.clone());
            ControlFlow::Continue(())
        });
        (objects, newest)
    }

    /// Applies one change; called in revision order.
    pub fn apply(&self, event: CacheEvent) {
        let revision = event.revision;
        {
            let mut state = self.state.write();
            state.newest = revision;
            if event.deleted {
                state.objects.remove(&event.current.key);
            } else {
                state.objects.insert(event.current.key.clone(), event.current.clone());
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
