//! Watches: each has a task that reads a watch stream of etcd and fills the watcher's queue.
//!
//! The streams share the members' connections. A stream carries one watch only, since etcd tells
//! progress for a whole stream: with several, one that still catches up would silence the others,
//! and one that was just made could take the others' progress for its own.
//!
//! When a stream breaks, the next one begins where the last one was complete. What comes twice is
//! dropped here. A stream begins *at* the revision that was delivered last, and not after it: etcd
//! then refuses to go on when anything after that revision is compacted, and answers requests for
//! progress at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc as requests;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::wire::{self, WatchStep};
use super::{Shared, failed};
use crate::{Event, Revision, StorageError, WatchItem, WatchStream, prefix_end};

/// Items that wait for one watcher, and the bytes of their values; with more it ends with `Lagged`.
const QUEUE_EVENTS_MAX: usize = 100_000;
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Progress is asked for when a newer revision was seen and no event told it for so long.
const PROGRESS_PAUSE: Duration = Duration::from_millis(10);
/// And again: etcd does not answer while a watch catches up, and a member may lag behind.
const PROGRESS_AGAIN: Duration = Duration::from_millis(50);
/// Progress is asked for so often when nothing was seen, so that a quiet watch can resume after
/// compaction, and a silent member is noticed.
const PROGRESS_IDLE: Duration = Duration::from_secs(5);
/// A stream whose member does not answer for so long is given up. Doubled each time it happens in a
/// row, for an etcd that needs longer to catch up.
const SILENCE_MAX: Duration = Duration::from_secs(4);
/// The watch ends when no member could be heard for so long.
const CONTACT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the word that a new watch's past is there.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause before the next stream.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Requests that wait to be sent on one stream.
const REQUESTS_MAX: usize = 8;

/// Opens a watch; see [`crate::Storage::watch`].
pub(super) async fn open(
    shared: Arc<Shared>,
    prefix: String,
    after: Revision,
) -> Result<WatchStream, StorageError> {
    let newest = shared.revision().await?;
    if after > newest {
        return Err(StorageError::Future { wanted: after, current: newest });
    }
    let oldest = shared.compacted();
    if after < oldest {
        return Err(StorageError::Compacted { wanted: after, oldest });
    }
    let (feed, items) = feed();
    let (opened, verdict) = oneshot::channel();
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
        watcher.progress(after);
    }
    shared.register(watcher.reached.subscribe());
    drop(shared);
    tokio::spawn(watcher.run());
    match timeout(OPEN_WAIT_MAX, verdict).await {
        Ok(Ok(verdict)) => verdict?,
        Ok(Err(_)) => return Err(StorageError::Closed),
        Err(_) => return Err(failed("etcd did not begin the watch in time")),
    }
    Ok(items)
}

/// Asks for the compaction point, which is above `wanted`: etcd tells it only to a watch.
pub(super) async fn compact_revision(
    shared: &Shared,
    wanted: Revision,
) -> Result<Revision, StorageError> {
    let until = Instant::now() + OPEN_WAIT_MAX;
    let mut problem = "no answer".to_owned();
    while Instant::now() < until {
        let member = shared.client.current();
        let (mut sender, receiver) = requests::channel(REQUESTS_MAX);
        let _ = sender.try_send(create(shared, "", wanted));
        match shared.client.watch(member, receiver).await {
            Ok(mut answers) => {
                let told = async {
                    while let Ok(Some(answer)) = answers.message().await {
                        if answer.compact_revision > 0 {
                            return Some(answer.compact_revision as Revision);
                        }
                    }
                    None
                };
                if let Ok(Some(revision)) = timeout(SILENCE_MAX, told).await {
                    return Ok(revision);
                }
            }
            Err(error) => problem = error.to_string(),
        }
        shared.client.leave(member);
        sleep(RECONNECT_PAUSE).await;
    }
    Err(failed(format!("etcd did not tell what it compacted: {problem}")))
}

fn create(shared: &Shared, prefix: &str, from: Revision) -> wire::WatchRequest {
    // Of all keys one is enough, when only the compaction point matters.
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

/// What waits in a queue.
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
        // Nobody is interested any more: the task notices.
        let _ = self.sender.send(item);
    }
}

struct Watcher {
    shared: Arc<Shared>,
    prefix: String,
    /// Every event of the prefix up to this was put into the queue.
    reached: watch::Sender<Revision>,
    feed: Feed,
    /// Waits for the first sign that the past is there, or not.
    opened: Option<oneshot::Sender<Result<(), StorageError>>>,
    /// When a member last said anything.
    heard: Instant,
    /// How long a member may be silent.
    patience: Duration,
}

/// How a stream ended.
enum Ending {
    /// Nobody reads the watch.
    Unread,
    /// Another stream goes on from here.
    Lost(String),
    /// The watch ends.
    Final(StorageError),
}

impl From<StorageError> for Ending {
    fn from(error: StorageError) -> Self {
        Self::Final(error)
    }
}

impl Watcher {
    async fn run(mut self) {
        loop {
            let member = self.shared.client.current();
            match self.stream(member).await {
                Ending::Unread => return,
                Ending::Final(error) => return self.end(error),
                Ending::Lost(reason) => {
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

    fn delivered(&self) -> Revision {
        *self.reached.borrow()
    }

    /// Reads one stream from where the watch is.
    async fn stream(&mut self, member: usize) -> Ending {
        let (mut sender, receiver) = requests::channel(REQUESTS_MAX);
        let _ = sender.try_send(create(&self.shared, &self.prefix, self.delivered()));
        let mut closed = self.shared.client.closed();
        let opening = self.shared.client.watch(member, receiver);
        let mut answers = tokio::select! {
            opening = opening => match opening {
                Ok(answers) => answers,
                Err(error) => return Ending::Lost(error.to_string()),
            },
            () = self.feed.sender.closed() => return Ending::Unread,
            _ = closed.wait_for(|closed| *closed) => return Ending::Final(StorageError::Closed),
        };
        let mut seen = self.shared.client.seen();
        let mut parts = Vec::new();
        // Progress must not be asked for before etcd has said that the watch is made: it could be
        // told before the events that wait for that word.
        let mut created = false;
        let mut ask_at = Instant::now();
        let mut silent_since = Some(Instant::now());
        loop {
            let behind = *seen.borrow_and_update() > self.delivered();
            if silent_since.is_some_and(|since: Instant| since.elapsed() > self.patience) {
                self.patience = (self.patience * 2).min(CONTACT_WAIT_MAX);
                return Ending::Lost("the member is silent".to_owned());
            }
            tokio::select! {
                answer = answers.message() => {
                    let answer = match answer {
                        Ok(Some(answer)) => answer,
                        Ok(None) => return Ending::Lost("the stream ended".to_owned()),
                        Err(status) => return Ending::Lost(status.message().to_owned()),
                    };
                    self.heard = Instant::now();
                    silent_since = None;
                    if answer.created && !answer.canceled {
                        created = true;
                        ask_at = Instant::now();
                    } else if let Err(ending) = self.take(answer, &mut parts) {
                        return ending;
                    }
                }
                () = self.feed.sender.closed() => return Ending::Unread,
                _ = closed.wait_for(|closed| *closed) => {
                    return Ending::Final(StorageError::Closed);
                }
                changed = seen.changed(), if !behind => {
                    if changed.is_ok() {
                        ask_at = ask_at.min(Instant::now() + PROGRESS_PAUSE);
                    }
                }
                () = sleep_until(ask_at) => {
                    silent_since.get_or_insert_with(Instant::now);
                    if created {
                        let step = WatchStep::Progress(wire::WatchProgressRequest {});
                        // Full: enough of them are on their way.
                        let _ = sender.try_send(wire::WatchRequest { step: Some(step) });
                    }
                    ask_at = Instant::now() + if behind { PROGRESS_AGAIN } else { PROGRESS_IDLE };
                }
            }
        }
    }

    /// Takes one answer; `parts` are the events of those before it that it goes on with.
    fn take(
        &mut self,
        answer: wire::WatchResponse,
        parts: &mut Vec<wire::Event>,
    ) -> Result<(), Ending> {
        if answer.compact_revision > 0 {
            let oldest = answer.compact_revision as Revision;
            self.shared.note_compacted(oldest);
            return Err(StorageError::Compacted { wanted: self.delivered(), oldest }.into());
        }
        if answer.canceled {
            return Err(Ending::Lost(format!("etcd ended the watch: {}", answer.cancel_reason)));
        }
        parts.extend(answer.events);
        if answer.fragment {
            return Ok(());
        }
        let events = std::mem::take(parts);
        if events.is_empty() {
            let revision = answer.header.map_or(0, |header| header.revision as Revision);
            if revision > self.delivered() {
                self.feed.push(WatchItem::Progress(revision))?;
                self.progressed(revision);
            }
            return Ok(());
        }
        // etcd does not divide a revision's events, and all come in order.
        self.deliver(&events)
    }

    fn deliver(&mut self, events: &[wire::Event]) -> Result<(), Ending> {
        let delivered = self.delivered();
        let revision =
            |event: &wire::Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision as Revision);
        let Some(last) = events.last().map(revision).filter(|last| *last > delivered) else {
            return Ok(());
        };
        let mut news = Vec::with_capacity(events.len());
        for event in events.iter().filter(|event| revision(event) > delivered) {
            match self.shared.keys.event(event) {
                Ok(event) => news.extend(event.map(Arc::new)),
                Err(oldest) => {
                    return Err(StorageError::Compacted { wanted: delivered, oldest }.into());
                }
            }
        }
        if !news.is_empty() {
            self.feed.push(WatchItem::Events(news))?;
        }
        // With the events or not at all: who is dropped between the two would see them twice.
        self.feed.send(Ok(WatchItem::Progress(last)));
        self.shared.client.saw(last);
        self.progressed(last);
        Ok(())
    }

    /// Tells progress to a watch that has nothing to catch up.
    fn progress(&mut self, revision: Revision) {
        self.feed.send(Ok(WatchItem::Progress(revision)));
        self.progressed(revision);
    }

    fn progressed(&mut self, revision: Revision) {
        self.reached.send_replace(revision);
        self.patience = SILENCE_MAX;
        if let Some(opened) = self.opened.take() {
            let _ = opened.send(Ok(()));
        }
    }
}
