//! Watches: each has a task that reads a watch stream of etcd and fills the watcher's queue.
//!
//! The streams share the members' connections. A stream carries one watch only, because etcd
//! reports progress for a whole stream: with several watches, one that still catches up would
//! silence the others, and a new one could take the others' progress for its own.
//!
//! When a stream fails, the next one begins where the last one was complete, and duplicates are
//! dropped. A stream begins *at* the revision that was delivered last, and not after it: etcd then
//! refuses to continue when anything after that revision is compacted, and responds to progress
//! requests at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc as requests;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::wire::{self, WatchStep};
use super::{EtcdShared, failed};
use crate::{Event, Revision, StorageError, WatchItem, WatchStream, prefix_end};

/// Items that wait for one watcher, and the bytes of their values. A slower watcher ends with
/// `Lagged`.
const QUEUE_EVENTS_MAX: usize = 100_000;
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Progress is requested when a newer revision was seen and no event has reached it for this time.
const PROGRESS_PAUSE: Duration = Duration::from_millis(10);
/// Progress is requested again after this time: etcd does not respond while a watch catches up, and
/// a member may lag behind.
const PROGRESS_AGAIN: Duration = Duration::from_millis(50);
/// Progress is requested this often when nothing was seen, so that a quiet watch can resume after
/// compaction, and a silent member is detected.
const PROGRESS_IDLE: Duration = Duration::from_secs(5);
/// A stream whose member does not respond for this time is closed. The time doubles with each
/// consecutive one, for an etcd that needs longer to catch up.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// The watch ends when no member has responded for this time.
const CONTACT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest wait until the history of a new watch is known to be available.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause before the next stream.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Requests that wait to be sent on one stream.
const REQUESTS_MAX: usize = 8;

/// Opens a watch; see [`crate::Storage::watch`].
pub(super) async fn open(
    shared: Arc<EtcdShared>,
    prefix: String,
    after: Revision,
) -> Result<WatchStream, StorageError> {
    let newest = shared.revision().await?;
    if after > newest {
        return Err(StorageError::Future { requested: after, current: newest });
    }
    let oldest = shared.compacted();
    if after < oldest {
        return Err(StorageError::Compacted { requested: after, oldest });
    }
    let (feed, items) = feed();
    let (opened, result) = oneshot::channel();
    let mut watcher = Watcher {
        shared: Arc::clone(&shared),
        prefix,
        reached: watch::Sender::new(after),
        feed,
        opened: Some(opened),
        heard: Instant::now(),
        patience: SILENCE_MAX,
    };
    if after == newest {
        watcher.report_progress(after);
    }
    shared.register(watcher.reached.subscribe());
    drop(shared);
    tokio::spawn(watcher.run());
    match timeout(OPEN_WAIT_MAX, result).await {
        Ok(Ok(result)) => result?,
        Ok(Err(_)) => return Err(StorageError::Closed),
        Err(_) => return Err(failed("etcd did not begin the watch in time")),
    }
    Ok(items)
}

/// Requests the compaction point, which is above `revision`: etcd reports it only to a watch.
pub(super) async fn compact_revision(
    shared: &EtcdShared,
    revision: Revision,
) -> Result<Revision, StorageError> {
    let until = Instant::now() + OPEN_WAIT_MAX;
    let mut problem = "no response".to_owned();
    while Instant::now() < until {
        let member = shared.client.current();
        let (mut sender, receiver) = requests::channel(REQUESTS_MAX);
        let _ = sender.try_send(create(shared, "", revision));
        match shared.client.watch(member, receiver).await {
            Ok(mut responses) => {
                let compacted = async {
                    while let Ok(Some(response)) = responses.message().await {
                        if response.compact_revision > 0 {
                            return Some(response.compact_revision as Revision);
                        }
                    }
                    None
                };
                if let Ok(Some(compacted)) = timeout(SILENCE_MAX, compacted).await {
                    return Ok(compacted);
                }
            }
            Err(error) => problem = error.to_string(),
        }
        shared.client.leave(member);
        sleep(RECONNECT_PAUSE).await;
    }
    Err(failed(format!("etcd did not report its compaction point: {problem}")))
}

fn create(shared: &EtcdShared, prefix: &str, from: Revision) -> wire::WatchRequest {
    // One key is enough when only the compaction point matters.
    let range_end =
        if prefix.is_empty() { Default::default() } else { shared.keys.key(&prefix_end(prefix)) };
    let create = wire::WatchCreateRequest {
        key: shared.keys.key(prefix),
        range_end,
        start_revision: from.max(1) as i64,
        prev_kv: true,
        fragment: true,
    };
    wire::WatchRequest { step: Some(WatchStep::Create(create)) }
}

/// The items that wait in a queue.
#[derive(Default)]
struct Waiting {
    events: AtomicUsize,
    bytes: AtomicUsize,
}

type Item = Result<WatchItem, StorageError>;

struct Feed {
    sender: mpsc::UnboundedSender<Item>,
    waiting: Arc<Waiting>,
}

fn feed() -> (Feed, WatchStream) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(Waiting::default());
    let feed = Feed { sender, waiting: Arc::clone(&waiting) };
    let items = futures::stream::unfold((receiver, waiting), |(mut receiver, waiting)| async {
        let item = receiver.recv().await?;
        let (events, bytes) = weight(&item);
        waiting.events.fetch_sub(events, Ordering::Relaxed);
        waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some((item, (receiver, waiting)))
    });
    (feed, items.boxed())
}

/// Events (at least one) and bytes of values.
fn weight(item: &Item) -> (usize, usize) {
    let Ok(WatchItem::Events(events)) = item else { return (1, 0) };
    let size = |event: &Arc<Event>| {
        let states = [&event.previous, &event.current];
        states.into_iter().flatten().map(|state| state.value.len()).sum::<usize>()
    };
    (events.len().max(1), events.iter().map(size).sum())
}

impl Feed {
    /// # Errors
    /// `Lagged` when too much waits already.
    fn push(&self, item: WatchItem) -> Result<(), StorageError> {
        let waiting = &self.waiting;
        if waiting.events.load(Ordering::Relaxed) >= QUEUE_EVENTS_MAX
            || waiting.bytes.load(Ordering::Relaxed) >= QUEUE_BYTES_MAX
        {
            return Err(StorageError::Lagged);
        }
        self.send(Ok(item));
        Ok(())
    }

    fn send(&self, item: Item) {
        let (events, bytes) = weight(&item);
        self.waiting.events.fetch_add(events, Ordering::Relaxed);
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        // The watch is not read any more, which the task detects.
        let _ = self.sender.send(item);
    }
}

struct Watcher {
    shared: Arc<EtcdShared>,
    prefix: String,
    /// Every event of the prefix up to this revision was put into the queue.
    reached: watch::Sender<Revision>,
    feed: Feed,
    /// Waits for the first sign that the history is available, or not.
    opened: Option<oneshot::Sender<Result<(), StorageError>>>,
    /// When a member last sent anything.
    heard: Instant,
    /// How long a member may be silent.
    patience: Duration,
}

/// How a stream ended.
enum StreamEnd {
    /// The watch is not read any more.
    Unread,
    /// Another stream continues from here.
    Lost(String),
    /// The watch ends.
    Final(StorageError),
}

impl From<StorageError> for StreamEnd {
    fn from(error: StorageError) -> Self {
        Self::Final(error)
    }
}

impl Watcher {
    async fn run(mut self) {
        loop {
            let member = self.shared.client.current();
            match self.stream(member).await {
                StreamEnd::Unread => return,
                StreamEnd::Final(error) => return self.end(error),
                StreamEnd::Lost(reason) => {
                    self.shared.client.leave(member);
                    tracing::info!(reason, prefix = self.prefix, "an etcd watch stream ended");
                    if self.heard.elapsed() > CONTACT_WAIT_MAX {
                        return self.end(failed(format!("etcd cannot be watched: {reason}")));
                    }
                    sleep(RECONNECT_PAUSE).await;
                }
            }
        }
    }

    fn end(&mut self, error: StorageError) {
        match self.opened.take() {
            Some(opened) => drop(opened.send(Err(error))),
            None => self.feed.send(Err(error)),
        }
    }

    fn delivered_revision(&self) -> Revision {
        *self.reached.borrow()
    }

    /// Reads one stream from the delivered revision on.
    async fn stream(&mut self, member: usize) -> StreamEnd {
        let (mut sender, receiver) = requests::channel(REQUESTS_MAX);
        let _ = sender.try_send(create(&self.shared, &self.prefix, self.delivered_revision()));
        let mut closed = self.shared.client.watch_closed();
        let opening = self.shared.client.watch(member, receiver);
        let mut responses = tokio::select! {
            opening = opening => match opening {
                Ok(responses) => responses,
                Err(error) => return StreamEnd::Lost(error.to_string()),
            },
            () = self.feed.sender.closed() => return StreamEnd::Unread,
            _ = closed.wait_for(|closed| *closed) => return StreamEnd::Final(StorageError::Closed),
        };
        let mut seen = self.shared.client.watch_seen_revision();
        let mut parts = Vec::new();
        // Progress must not be requested before etcd has confirmed the watch: it could be reported
        // before the events that wait for that confirmation.
        let mut created = false;
        let mut request_at = Instant::now();
        let mut silent_since = Some(Instant::now());
        loop {
            let behind = *seen.borrow_and_update() > self.delivered_revision();
            if silent_since.is_some_and(|since: Instant| since.elapsed() > self.patience) {
                self.patience = (self.patience * 2).min(CONTACT_WAIT_MAX);
                return StreamEnd::Lost("the member is silent".to_owned());
            }
            tokio::select! {
                response = responses.message() => {
                    let response = match response {
                        Ok(Some(response)) => response,
                        Ok(None) => return StreamEnd::Lost("the stream ended".to_owned()),
                        Err(status) => return StreamEnd::Lost(status.message().to_owned()),
                    };
                    self.heard = Instant::now();
                    silent_since = None;
                    if response.created && !response.canceled {
                        created = true;
                        request_at = Instant::now();
                    } else if let Err(ending) = self.handle(response, &mut parts) {
                        return ending;
                    }
                }
                () = self.feed.sender.closed() => return StreamEnd::Unread,
                _ = closed.wait_for(|closed| *closed) => {
                    return StreamEnd::Final(StorageError::Closed);
                }
                changed = seen.changed(), if !behind => {
                    if changed.is_ok() {
                        request_at = request_at.min(Instant::now() + PROGRESS_PAUSE);
                    }
                }
                () = sleep_until(request_at) => {
                    silent_since.get_or_insert_with(Instant::now);
                    if created {
                        let step = WatchStep::Progress(wire::WatchProgressRequest {});
                        // Full: enough requests are pending.
                        let _ = sender.try_send(wire::WatchRequest { step: Some(step) });
                    }
                    request_at = Instant::now() + if behind { PROGRESS_AGAIN } else { PROGRESS_IDLE };
                }
            }
        }
    }

    /// Handles one response; `parts` are the events of the fragments before it.
    fn handle(
        &mut self,
        response: wire::WatchResponse,
        parts: &mut Vec<wire::Event>,
    ) -> Result<(), StreamEnd> {
        if response.compact_revision > 0 {
            let oldest = response.compact_revision as Revision;
            self.shared.note_compacted(oldest);
            return Err(
                StorageError::Compacted { requested: self.delivered_revision(), oldest }.into()
            );
        }
        if response.canceled {
            return Err(StreamEnd::Lost(format!(
                "etcd ended the watch: {}",
                response.cancel_reason
            )));
        }
        parts.extend(response.events);
        if response.fragment {
            return Ok(());
        }
        let events = std::mem::take(parts);
        if events.is_empty() {
            let revision = response.header.map_or(0, |header| header.revision as Revision);
            if revision > self.delivered_revision() {
                self.feed.push(WatchItem::Progress(revision))?;
                self.set_reached(revision);
            }
            return Ok(());
        }
        // etcd does not split a revision's events, and all are in order.
        self.deliver(&events)
    }

    fn deliver(&mut self, events: &[wire::Event]) -> Result<(), StreamEnd> {
        let delivered = self.delivered_revision();
        let revision =
            |event: &wire::Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision as Revision);
        let Some(last) = events.last().map(revision).filter(|last| *last > delivered) else {
            return Ok(());
        };
        let mut fresh = Vec::with_capacity(events.len());
        for event in events.iter().filter(|event| revision(event) > delivered) {
            match self.shared.keys.event(event) {
                Ok(event) => fresh.extend(event.map(Arc::new)),
                Err(oldest) => {
                    return Err(StorageError::Compacted { requested: delivered, oldest }.into());
                }
            }
        }
        if !fresh.is_empty() {
            self.feed.push(WatchItem::Events(fresh))?;
        }
        // With the events or not at all: a watcher that is dropped in between would see them twice.
        self.feed.send(Ok(WatchItem::Progress(last)));
        self.shared.client.record_seen(last);
        self.set_reached(last);
        Ok(())
    }

    /// Reports progress to a watch that has nothing to catch up.
    fn report_progress(&mut self, revision: Revision) {
        self.feed.send(Ok(WatchItem::Progress(revision)));
        self.set_reached(revision);
    }

    fn set_reached(&mut self, revision: Revision) {
        self.reached.send_replace(revision);
        self.patience = SILENCE_MAX;
        if let Some(opened) = self.opened.take() {
            let _ = opened.send(Ok(()));
        }
    }
}
