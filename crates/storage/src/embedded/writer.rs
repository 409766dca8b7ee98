//! The writer thread: the only one that changes the file.
//!
//! Each turn takes all waiting writes, applies them in one transaction with the due expiries and a
//! step of compaction, commits once, and only then tells watchers and callers. Between turns it
//! keeps the free pages in bounds, and starts the write-ahead log over when the checkpoint thread
//! asks for it.

mod admit;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use super::apply::{self, Applied, Statements};
use super::checkpoint::Checkpointer;
use super::error::Failure;
use super::history::{HistoryWindow, compact_step};
use super::queue::{CompactRequest, Operation, WriteRequest};
use super::read::Bounds;
use super::room::Room;
use super::{EmbeddedConfig, Shared};
use crate::{Event, Revision, StorageError};

/// Expired keys deleted in one commit, beside the writes of callers.
const EXPIRIES_PER_COMMIT_MAX: usize = 256;
/// Changes compacted in one commit: at least this many, and [`COMPACTED_PER_WRITE`] for each write,
/// so that compaction keeps ahead of the writers and stays a small part of each commit.
const COMPACTED_PER_COMMIT_MIN: usize = 128;
const COMPACTED_PER_WRITE: usize = 2;
/// Free pages are given back to the file system above this number and this share of the file;
/// below, new writes use them.
const FREE_PAGES_MIN: i64 = 2048;
const FREE_PAGES_PARTS: i64 = 4;
/// Free pages given back in one step: a few milliseconds.
const VACUUM_PAGES: i64 = 256;

pub(super) struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    config: EmbeddedConfig,
    /// Newest committed revision.
    committed: Revision,
    /// Revision of the next write. Above `committed + 1` after a commit of unknown outcome.
    next: Revision,
    /// Compaction point on disk.
    compacted: Revision,
    /// Where compaction is going.
    compact_to: Revision,
    compactions: Vec<CompactRequest>,
    history: HistoryWindow,
    soonest_deadline: Option<i64>,
    checkpointer: Checkpointer,
    room: Room,
    /// The last commit found no room: the log is moved before anything else is written.
    starved: bool,
    /// There are more free pages than the file should keep.
    vacuuming: bool,
    /// The last commit failed; said once.
    failing: bool,
    next_tick: Instant,
}

/// What one transaction did.
struct Committed {
    applied: Vec<Applied>,
    expired: Vec<Event>,
    compacted: Revision,
    deadlines_touched: bool,
}

impl Writer {
    /// Starts the thread. It runs until the queue is closed and empty.
    pub(super) fn start(
        connection: Connection,
        database: &Path,
        bounds: Bounds,
        shared: Arc<Shared>,
        config: EmbeddedConfig,
    ) -> Result<JoinHandle<()>, StorageError> {
        let now = Instant::now();
        let writer = Self {
            soonest_deadline: apply::soonest_deadline(&connection)?,
            checkpointer: Checkpointer::start(database, &config)?,
            room: Room::of(database),
            starved: false,
            history: HistoryWindow::new(&config, bounds.newest, now),
            next_tick: now + config.tick,
            connection,
            shared,
            config,
            committed: bounds.newest,
            next: bounds.newest + 1,
            compacted: bounds.oldest,
            compact_to: bounds.oldest,
            compactions: Vec::new(),
            vacuuming: false,
            failing: false,
        };
        let thread = std::thread::Builder::new().name("storage-write".to_owned());
        thread.spawn(move || writer.run()).map_err(|e| StorageError::Failed {
            reason: format!("cannot start the writer thread: {e}"),
        })
    }

    fn run(mut self) {
        let _guard = EndOnDrop(Arc::clone(&self.shared));
        loop {
            let idle = !self.is_due() && !self.vacuuming;
            let work = self.shared.queue.take(idle.then_some(self.next_tick));
            self.accept_compactions(work.compactions);
            if !work.writes.is_empty() || self.is_due() {
                self.turn(work.writes);
            } else if self.vacuuming {
                self.give_back_pages();
            }
            self.checkpointer.writers_turn(&self.connection);
            if work.closed {
                break;
            }
            if Instant::now() >= self.next_tick {
                self.tick();
            }
        }
        if let Err(error) = self.checkpointer.finish(&self.connection) {
            tracing::warn!(%error, "storage log could not be moved into the database at the end");
        }
    }

    /// Whether there is something to do without being asked.
    fn is_due(&self) -> bool {
        self.compacted < self.compact_to
            || self.soonest_deadline.is_some_and(|at| at <= wall_clock(&self.config))
    }

    fn accept_compactions(&mut self, requests: Vec<CompactRequest>) {
        for request in requests {
            if request.revision > self.committed {
                let (wanted, current) = (request.revision, self.committed);
                let _ = request.reply.send(Err(StorageError::Future { wanted, current }));
            } else if request.revision <= self.compacted {
                let _ = request.reply.send(Ok(()));
            } else {
                self.compact_to = self.compact_to.max(request.revision);
                self.compactions.push(request);
            }
        }
    }

    /// One transaction for all `writes`, and its consequences.
    fn turn(&mut self, mut writes: Vec<WriteRequest>) {
        if !self.admit(&mut writes) {
            return;
        }
        let first = self.next;
        let mut outcome = self.transact(&writes, true);
        if outcome.is_err() && !writes.is_empty() {
            // The writes may fit where they do not fit together with the housekeeping.
            if !matches!(outcome, Err(Failure::Unknown(_))) {
                self.next = first;
                outcome = self.transact(&writes, false);
            }
        }
        match outcome {
            Ok(committed) => self.publish(writes, committed),
            Err(failure) => {
                self.starved = matches!(failure, Failure::Full(_));
                let starved = self.starved && !writes.is_empty();
                self.fail(writes, &failure, first);
                if starved {
                    // Writers that try again at once must not keep compaction from making room.
                    self.turn(Vec::new());
                }
            }
        }
    }

    fn fail(&mut self, writes: Vec<WriteRequest>, failure: &Failure, first: Revision) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(?failure, "storage cannot commit");
        }
        if !matches!(failure, Failure::Unknown(_)) {
            self.next = first;
        }
        if matches!(failure, Failure::Full(_)) {
            // Deletions must find room. Whoever wants the history lists again.
            self.compact_to = self.committed;
        }
        if writes.is_empty() {
            // Nobody waits for housekeeping: try again at the next tick instead of at once.
            self.compact_to = self.compacted;
            self.soonest_deadline = None;
            for request in self.compactions.drain(..) {
                let _ = request.reply.send(Err(failure.clone().into()));
            }
        }
        for write in writes {
            let _ = write.reply.send(Err(failure.clone().into()));
        }
    }

    fn transact(
        &mut self,
        writes: &[WriteRequest],
        housekeeping: bool,
    ) -> Result<Committed, Failure> {
        let outcome = self.apply(writes, housekeeping);
        let committed = outcome.map_err(|e| Failure::before_commit(&e)).and_then(|committed| {
            let commit = self.connection.prepare_cached("COMMIT");
            let done = commit.and_then(|mut commit| commit.execute([]));
            done.map(|_| committed).map_err(|e| Failure::in_commit(&e))
        });
        if committed.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "storage could not roll back");
        }
        committed
    }

    /// Everything of a transaction but its commit.
    fn apply(
        &mut self,
        writes: &[WriteRequest],
        housekeeping: bool,
    ) -> rusqlite::Result<Committed> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let now = wall_clock(&self.config);
        let mut statements = Statements::prepare(&self.connection)?;
        let mut applied = Vec::with_capacity(writes.len());
        let mut deadlines_touched = false;
        for write in writes {
            let result = match &write.operation {
                Operation::Put { key, value, expect, ttl } => {
                    let deadline = ttl.map(|ttl| {
                        now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX))
                    });
                    deadlines_touched |= deadline.is_some();
                    statements.put(self.next, key, value, *expect, deadline)?
                }
                Operation::Delete { key, expect } => {
                    statements.delete(self.next, key, Some(*expect))?
                }
            };
            self.next += u64::from(result.is_ok());
            applied.push(result);
        }
        let mut expired = Vec::new();
        let mut compacted = self.compacted;
        if housekeeping {
            if self.soonest_deadline.is_some_and(|soonest| soonest <= now) {
                deadlines_touched = true;
                for key in apply::expired_keys(&self.connection, now, EXPIRIES_PER_COMMIT_MAX)? {
                    if let Ok(event) = statements.delete(self.next, &key, None)? {
                        self.next += 1;
                        expired.push(event);
                    }
                }
            }
            if self.compacted < self.compact_to {
                let changes = COMPACTED_PER_COMMIT_MIN.max(COMPACTED_PER_WRITE * writes.len());
                compacted =
                    compact_step(&self.connection, self.compacted, self.compact_to, changes)?;
            }
        }
        Ok(Committed { applied, expired, compacted, deadlines_touched })
    }

    /// After a commit: watchers first, so that a caller who was answered finds its event delivered.
    fn publish(&mut self, writes: Vec<WriteRequest>, committed: Committed) {
        if !writes.is_empty() && std::mem::take(&mut self.failing) {
            tracing::info!("storage commits again");
        }
        self.compacted = committed.compacted;
        self.shared.set_compacted(self.compacted);
        let mut events = Vec::with_capacity(writes.len());
        let mut replies = Vec::with_capacity(writes.len());
        let mut bytes = 0;
        for (write, applied) in writes.into_iter().zip(committed.applied) {
            let reply = match applied {
                Ok(event) => {
                    bytes += write.operation.size() as u64;
                    let event = Arc::new(event);
                    events.push(Arc::clone(&event));
                    Ok(event)
                }
                Err(current) => Err(StorageError::Unexpected { current }),
            };
            replies.push((write, reply));
        }
        events.extend(committed.expired.into_iter().map(Arc::new));
        self.checkpointer.committed(events.len(), bytes);
        if let Some(last) = events.last() {
            self.committed = last.revision;
            self.shared.set_committed(self.committed);
            self.shared.hub.publish(&events, self.committed);
            self.history.committed(self.committed, bytes, Instant::now());
        }
        for (write, reply) in replies {
            let _ = write.reply.send(reply);
        }
        let compacted = self.compacted;
        for request in self.compactions.extract_if(.., |request| request.revision <= compacted) {
            let _ = request.reply.send(Ok(()));
        }
        if committed.deadlines_touched {
            self.read_soonest_deadline();
        }
        let over = self.committed - self.compacted > self.config.history_revisions_max;
        if over && self.compacted >= self.compact_to {
            self.aim_compaction();
        }
    }

    fn read_soonest_deadline(&mut self) {
        match apply::soonest_deadline(&self.connection) {
            Ok(soonest) => self.soonest_deadline = soonest,
            Err(error) => tracing::warn!(%error, "storage could not read the next deadline"),
        }
    }

    fn aim_compaction(&mut self) {
        self.compact_to = self.compact_to.max(self.history.target(Instant::now()));
    }

    /// Housekeeping that needs no haste.
    fn tick(&mut self) {
        self.next_tick = Instant::now() + self.config.tick;
        self.aim_compaction();
        self.read_soonest_deadline();
        self.checkpointer.idle();
        match self.has_pages_to_give_back() {
            Ok(has) => self.vacuuming = has,
            Err(error) => tracing::warn!(%error, "storage could not count its free pages"),
        }
    }

    fn has_pages_to_give_back(&self) -> rusqlite::Result<bool> {
        let pragma =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let free = pragma("freelist_count")?;
        Ok(free >= FREE_PAGES_MIN && free >= pragma("page_count")? / FREE_PAGES_PARTS)
    }

    /// Shortens the file a little, as a commit of its own.
    fn give_back_pages(&mut self) {
        let vacuum = || {
            let sql = format!("PRAGMA incremental_vacuum({VACUUM_PAGES})");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            self.has_pages_to_give_back()
        };
        match vacuum() {
            Ok(more) => self.vacuuming = more,
            Err(error) => {
                tracing::warn!(%error, "storage file could not be shortened, trying again later");
                self.vacuuming = false;
            }
        }
        self.checkpointer.committed(VACUUM_PAGES as usize, 0);
    }
}

fn wall_clock(config: &EmbeddedConfig) -> i64 {
    milliseconds((config.wall_clock)())
}

/// Since 1970; a time before counts as 1970.
pub(super) fn milliseconds(now: SystemTime) -> i64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Lets nobody wait for a writer that is gone, in whatever way it went.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.queue.abandon();
        self.0.hub.close();
        self.0.pool.close();
    }
}
