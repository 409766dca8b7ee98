//! Watches: the hub that the writer publishes to, the queue of each watcher, and the stream that
//! joins history from the file with the live events.
//!
//! The writer never waits for a watcher. It appends shared events to each queue; a watcher whose
//! queue is over its limit is dropped with `Lagged`.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt as _;
use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::EmbeddedShared;
use super::pool::Cost;
use super::read::{self, Chunk, event_size};
use crate::{Event, Revision, StorageError, WatchItem, WatchStream};

/// Bytes of values that wait for one watcher. Watchers share them, so this is an upper bound.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// History read in one step, in events and in bytes of values.
const CHUNK_MAX: (usize, usize) = (1000, 4 * 1024 * 1024);
/// A watcher with at most this many revisions to catch up begins to queue live events. Further
/// behind, the queue would overflow while history is read.
const NEAR_REVISIONS: u64 = 1000;

/// Publishes commits to watchers.
pub(super) struct Hub {
    state: Mutex<HubState>,
    queue_events_max: usize,
}

struct HubState {
    /// Newest published revision.
    revision: Revision,
    watchers: Vec<Arc<Watcher>>,
    closed: bool,
}

struct Watcher {
    prefix: Box<str>,
    /// Events up to this were delivered from history.
    after: Revision,
    queue: Mutex<WatchQueue>,
    waker: AtomicWaker,
}

struct WatchQueue {
    events: Vec<Arc<Event>>,
    bytes: usize,
    /// Everything up to this revision is in `events` or was taken.
    progress: Revision,
    end: Option<End>,
}

/// Events, and the revision up to which they are complete.
type QueuedEvents = (Vec<Arc<Event>>, Revision);

#[derive(Clone, Copy)]
enum End {
    Lagged,
    Closed,
}

impl Hub {
    pub(super) fn new(revision: Revision, queue_events_max: usize) -> Self {
        let state = HubState { revision, watchers: Vec::new(), closed: false };
        Self { state: Mutex::new(state), queue_events_max }
    }

    /// Hands committed events to all watchers. `revision` is that of the last one.
    pub(super) fn publish(&self, events: &[Arc<Event>], revision: Revision) {
        let mut state = self.state.lock();
        state.revision = revision;
        state.watchers.retain(|watcher| {
            let keeps_up = watcher.push(events, revision, self.queue_events_max);
            watcher.waker.wake();
            keeps_up
        });
    }

    /// Ends every watch after its queued events, and refuses new watches.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for watcher in state.watchers.drain(..) {
            watcher.queue.lock().end = Some(End::Closed);
            watcher.waker.wake();
        }
    }

    /// Begins to queue events of `prefix` above `after`. Returns the newest revision that is not
    /// queued.
    fn register(
        &self,
        prefix: &str,
        after: Revision,
    ) -> Result<(Arc<Watcher>, Revision), StorageError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StorageError::Closed);
        }
        let from = state.revision.max(after);
        let watcher = Arc::new(Watcher {
            prefix: prefix.into(),
            after: from,
            queue: Mutex::new(WatchQueue {
                events: Vec::new(),
                bytes: 0,
                progress: from,
                end: None,
            }),
            waker: AtomicWaker::new(),
        });
        state.watchers.push(Arc::clone(&watcher));
        Ok((watcher, from))
    }

    fn unregister(&self, watcher: &Arc<Watcher>) {
        self.state.lock().watchers.retain(|other| !Arc::ptr_eq(other, watcher));
    }

    #[cfg(test)]
    pub(super) fn watchers(&self) -> usize {
        self.state.lock().watchers.len()
    }
}

impl Watcher {
    /// Returns false when the queue is over its limit; the watcher then ends.
    fn push(&self, events: &[Arc<Event>], revision: Revision, events_max: usize) -> bool {
        let mut queue = self.queue.lock();
        for event in events {
            if event.revision > self.after && event.key.starts_with(&*self.prefix) {
                queue.bytes += event_size(event);
                queue.events.push(Arc::clone(event));
            }
        }
        queue.progress = queue.progress.max(revision);
        if queue.events.len() <= events_max && queue.bytes <= QUEUE_BYTES_MAX {
            return true;
        }
        queue.events = Vec::new();
        queue.end = Some(End::Lagged);
        false
    }

    /// Takes all queued events.
    fn poll_take(
        &self,
        context: &mut Context<'_>,
        delivered: Revision,
    ) -> Poll<Result<QueuedEvents, StorageError>> {
        self.waker.register(context.waker());
        let mut queue = self.queue.lock();
        if matches!(queue.end, Some(End::Lagged)) {
            return Poll::Ready(Err(StorageError::Lagged));
        }
        if queue.progress > delivered {
            queue.bytes = 0;
            return Poll::Ready(Ok((std::mem::take(&mut queue.events), queue.progress)));
        }
        if queue.end.is_some() {
            return Poll::Ready(Err(StorageError::Closed));
        }
        Poll::Pending
    }
}

/// A watcher's registration in the hub; dropping it ends the registration.
struct Registration {
    shared: Arc<EmbeddedShared>,
    watcher: Arc<Watcher>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.hub.unregister(&self.watcher);
    }
}

enum Phase {
    /// Reads history without being registered.
    Far,
    /// Registered; reads the history up to the revision of the registration.
    Near(Registration, Revision),
    Live(Registration),
    Ended,
}

struct Watch {
    shared: Arc<EmbeddedShared>,
    prefix: Box<str>,
    /// Every event of the prefix up to this revision was delivered.
    delivered: Revision,
    /// The progress to deliver next.
    progress: Option<Revision>,
    phase: Phase,
}

/// Opens a watch; see [`crate::Storage::watch`].
pub(super) async fn open(
    shared: Arc<EmbeddedShared>,
    prefix: String,
    after: Revision,
) -> Result<WatchStream, StorageError> {
    if after > shared.committed_revision() {
        return Err(StorageError::Future {
            requested: after,
            current: shared.committed_revision(),
        });
    }
    let (watcher, from) = shared.hub.register(&prefix, after)?;
    let registration = Registration { shared: Arc::clone(&shared), watcher };
    let (phase, progress) = if from == after {
        (Phase::Live(registration), Some(from))
    } else {
        drop(registration);
        let check = |connection: &_| Ok(read::Bounds::read(connection)?);
        let bounds = shared.pool.read(Cost::Quick, check).await?;
        bounds.check(after)?;
        (Phase::Far, None)
    };
    let prefix = prefix.into_boxed_str();
    let watch = Watch { shared, prefix, delivered: after, progress, phase };
    let items = futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await?;
        if item.is_err() {
            watch.phase = Phase::Ended;
        }
        Some((item, watch))
    });
    Ok(items.boxed())
}

impl Watch {
    async fn next(&mut self) -> Option<Result<WatchItem, StorageError>> {
        loop {
            if let Some(revision) = self.progress.take() {
                return Some(Ok(WatchItem::Progress(revision)));
            }
            let step = match &self.phase {
                Phase::Ended => return None,
                Phase::Far => self.read_far().await,
                Phase::Near(_, until) => self.read_near(*until).await,
                Phase::Live(registration) => {
                    let watcher = &registration.watcher;
                    let delivered = self.delivered;
                    let taken =
                        std::future::poll_fn(|context| watcher.poll_take(context, delivered)).await;
                    taken.map(|(events, revision)| {
                        self.delivered = revision;
                        self.progress = Some(revision);
                        events
                    })
                }
            };
            match step {
                Ok(events) if events.is_empty() => {}
                Ok(events) => return Some(Ok(WatchItem::Events(events))),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn read_far(&mut self) -> Result<Vec<Arc<Event>>, StorageError> {
        let chunk = self.read_chunk(None).await?;
        if chunk.bounds.newest - chunk.through <= NEAR_REVISIONS {
            let (watcher, from) = self.shared.hub.register(&self.prefix, self.delivered)?;
            let registration = Registration { shared: Arc::clone(&self.shared), watcher };
            self.phase = Phase::Near(registration, from);
            self.go_live_at(from);
        }
        Ok(chunk.events)
    }

    async fn read_near(&mut self, until: Revision) -> Result<Vec<Arc<Event>>, StorageError> {
        let chunk = self.read_chunk(Some(until)).await?;
        self.go_live_at(until);
        Ok(chunk.events)
    }

    async fn read_chunk(&mut self, until: Option<Revision>) -> Result<Chunk, StorageError> {
        let (prefix, after) = (self.prefix.clone(), self.delivered);
        let job = move |connection: &_| read::history(connection, &prefix, after, until, CHUNK_MAX);
        let chunk = self.shared.pool.read(Cost::Long, job).await?;
        // The file may be ahead of what the writer has published: a revision that this watch
        // delivers must be known to all operations.
        self.shared.set_committed(chunk.bounds.newest);
        self.delivered = chunk.through;
        Ok(chunk)
    }

    /// Switches from history to live events once everything up to `from` was read.
    fn go_live_at(&mut self, from: Revision) {
        if self.delivered < from {
            return;
        }
        self.progress = Some(self.delivered);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Near(registration, _) => Phase::Live(registration),
            other => other,
        };
    }
}
