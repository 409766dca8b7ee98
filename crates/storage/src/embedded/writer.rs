//! The writer thread: the only one that changes the file.
//!
//! Each round takes all queued writes, applies them in one transaction together with due expiries
//! and a step of compaction, commits once, and only then notifies watchers and callers. Between
//! rounds it bounds the free pages, and restarts the write-ahead log when the checkpoint thread
//! requests it.

mod admit;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use super::apply::{self, Applied, Statements};
use super::checkpoint::Checkpointer;
use super::error::EngineFailure;
use super::history::{HistoryWindow, compact_step};
use super::queue::{CompactRequest, WriteOperation, WriteRequest};
use super::read::Bounds;
use super::room::Room;
use super::{EmbeddedConfig, EmbeddedShared};
use crate::{Event, Revision, StorageError};

/// Expired keys that are deleted in one commit, in addition to the writes of callers.
const EXPIRIES_PER_COMMIT_MAX: usize = 256;
/// Changes compacted in one commit: at least this many, or [`COMPACTED_PER_WRITE`] for each write,
/// so that compaction is faster than the writers and a small part of each commit.
const COMPACTED_PER_COMMIT_MIN: usize = 128;
const COMPACTED_PER_WRITE: usize = 2;
/// Free pages above this number and this share of the file are returned to the file system; new
/// writes use the others.
const FREE_PAGES_MIN: i64 = 2048;
const FREE_PAGES_PARTS: i64 = 4;
/// Free pages that are returned in one step: a few milliseconds.
const VACUUM_PAGES: i64 = 256;

pub(super) struct StorageWriter {
    connection: Connection,
    shared: Arc<EmbeddedShared>,
    config: EmbeddedConfig,
    /// Newest committed revision.
    committed: Revision,
    /// Revision of the next write. Above `committed + 1` after a commit of unknown outcome.
    next: Revision,
    /// Compaction point on disk.
    compacted: Revision,
    /// The target of compaction.
    compact_to: Revision,
    compactions: Vec<CompactRequest>,
    history: HistoryWindow,
    soonest_deadline: Option<i64>,
    checkpointer: Checkpointer,
    room: Room,
    /// The last commit found no space: the log is moved before the next write.
    starved: bool,
    /// The file has too many free pages.
    vacuuming: bool,
    /// The last commit failed, which is logged once.
    failing: bool,
    next_tick: Instant,
}

/// The changes of one transaction.
struct Committed {
    applied: Vec<Applied>,
    expired: Vec<Event>,
    compacted: Revision,
    deadlines_touched: bool,
}

impl StorageWriter {
    /// Starts the thread. It runs until the queue is closed and empty.
    pub(super) fn start(
        connection: Connection,
        database: &Path,
        bounds: Bounds,
        shared: Arc<EmbeddedShared>,
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
                self.run_round(work.writes);
            } else if self.vacuuming {
                self.return_pages();
            }
            self.checkpointer.restart_if_requested(&self.connection);
            if work.closed {
                break;
            }
            if Instant::now() >= self.next_tick {
                self.tick();
            }
        }
        if let Err(error) = self.checkpointer.finish(&self.connection) {
            tracing::warn!(%error, "storage log could not be moved into the database on close");
        }
    }

    /// Whether there is work without a request.
    fn is_due(&self) -> bool {
        self.compacted < self.compact_to
            || self.soonest_deadline.is_some_and(|at| at <= wall_clock(&self.config))
    }

    fn accept_compactions(&mut self, requests: Vec<CompactRequest>) {
        for request in requests {
            if request.revision > self.committed {
                let (requested, current) = (request.revision, self.committed);
                let _ = request.reply.send(Err(StorageError::Future { requested, current }));
            } else if request.revision <= self.compacted {
                let _ = request.reply.send(Ok(()));
            } else {
                self.compact_to = self.compact_to.max(request.revision);
                self.compactions.push(request);
            }
        }
    }

    /// Runs one transaction for all `writes`, and publishes its result.
    fn run_round(&mut self, mut writes: Vec<WriteRequest>) {
        if !self.admit(&mut writes) {
            return;
        }
        let first = self.next;
        let mut outcome = self.transact(&writes, true);
        if outcome.is_err() && !writes.is_empty() {
            // The writes may fit without the housekeeping.
            if !matches!(outcome, Err(EngineFailure::Unknown(_))) {
                self.next = first;
                outcome = self.transact(&writes, false);
            }
        }
        match outcome {
            Ok(committed) => self.publish(writes, committed),
            Err(failure) => {
                self.starved = matches!(failure, EngineFailure::Full(_));
                let starved = self.starved && !writes.is_empty();
                self.fail(writes, &failure, first);
                if starved {
                    // Writers that retry at once must not prevent compaction from freeing space.
                    self.run_round(Vec::new());
                }
            }
        }
    }

    fn fail(&mut self, writes: Vec<WriteRequest>, failure: &EngineFailure, first: Revision) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(?failure, "storage cannot commit");
        }
        if !matches!(failure, EngineFailure::Unknown(_)) {
            self.next = first;
        }
        if matches!(failure, EngineFailure::Full(_)) {
            // Deletions need space. Clients that need the history list again.
            self.compact_to = self.committed;
        }
        if writes.is_empty() {
            // No caller waits for housekeeping: retry at the next tick instead of at once.
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
    ) -> Result<Committed, EngineFailure> {
        let outcome = self.apply(writes, housekeeping);
        let committed =
            outcome.map_err(|e| EngineFailure::before_commit(&e)).and_then(|committed| {
                let commit = self.connection.prepare_cached("COMMIT");
                let done = commit.and_then(|mut commit| commit.execute([]));
                done.map(|_| committed).map_err(|e| EngineFailure::in_commit(&e))
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
                WriteOperation::Put { key, value, expect, ttl } => {
                    let deadline = ttl.map(|ttl| {
                        now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX))
                    });
                    deadlines_touched |= deadline.is_some();
                    statements.put(self.next, key, value, *expect, deadline)?
                }
                WriteOperation::Delete { key, expect } => {
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

    /// Runs after a commit: watchers are notified first, so that the event of a write is delivered
    /// before its response.
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
        self.checkpointer.record_commit(events.len(), bytes);
        if let Some(last) = events.last() {
            self.committed = last.revision;
            self.shared.set_committed(self.committed);
            self.shared.hub.publish(&events, self.committed);
            self.history.record_commit(self.committed, bytes, Instant::now());
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

    /// Housekeeping that is not urgent.
    fn tick(&mut self) {
        self.next_tick = Instant::now() + self.config.tick;
        self.aim_compaction();
        self.read_soonest_deadline();
        self.checkpointer.run_when_idle();
        match self.has_pages_to_return() {
            Ok(has) => self.vacuuming = has,
            Err(error) => tracing::warn!(%error, "storage could not count its free pages"),
        }
    }

    fn has_pages_to_return(&self) -> rusqlite::Result<bool> {
        let pragma =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let free = pragma("freelist_count")?;
        Ok(free >= FREE_PAGES_MIN && free >= pragma("page_count")? / FREE_PAGES_PARTS)
    }

    /// Truncates the file a little, in a commit of its own.
    fn return_pages(&mut self) {
        let vacuum = || {
            let sql = format!("PRAGMA incremental_vacuum({VACUUM_PAGES})");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            self.has_pages_to_return()
        };
        match vacuum() {
            Ok(more) => self.vacuuming = more,
            Err(error) => {
                tracing::warn!(%error, "storage file could not be truncated, retrying later");
                self.vacuuming = false;
            }
        }
        self.checkpointer.record_commit(VACUUM_PAGES as usize, 0);
    }
}

fn wall_clock(config: &EmbeddedConfig) -> i64 {
    milliseconds((config.wall_clock)())
}

/// Milliseconds since 1970; an earlier time counts as 1970.
pub(super) fn milliseconds(now: SystemTime) -> i64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Fails all waiting callers when the writer ends in any way.
struct EndOnDrop(Arc<EmbeddedShared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.queue.abandon();
        self.0.hub.close();
        self.0.pool.close();
    }
}
