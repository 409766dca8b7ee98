//! Checkpoints: moves the write-ahead log into the database concurrently with the writer, so that
//! no commit waits for it.
//!
//! A passive checkpoint may run while the writer commits, but under steady load it never finds the
//! log complete, and the log would grow. So when the log is large and nearly moved, the thread
//! requests a restart from the writer: the writer moves the small rest itself between two commits,
//! and restarts the log.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use super::{EmbeddedConfig, file};
use crate::StorageError;

/// Pages that the writer appends before the thread moves them: 8 MiB, in which hot pages repeat.
const PAGES_PER_RUN: u64 = 2000;
/// The log restarts above this size, as soon as little of it is left to move: 16 MiB.
const LOG_PAGES_MAX: i64 = 4096;
/// The log restarts above this size in any case: 64 MiB.
const LOG_PAGES_LIMIT: i64 = 4 * LOG_PAGES_MAX;
/// Pages that count as little: about two milliseconds of the writer's time.
const LEFT_PAGES_MAX: i64 = 256;
/// Time that a restart waits for readers of the old log before it is retried later.
const READERS_WAIT: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CheckpointState {
    #[default]
    Idle,
    /// The log has pages to move.
    Requested,
    Running,
    /// The thread waits for the writer to restart the log.
    RestartRequested,
    Closed,
}

#[derive(Default)]
struct Signal {
    state: Mutex<CheckpointState>,
    wake: Condvar,
}

/// The writer's handle to the thread.
pub(super) struct Checkpointer {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
    /// Pages appended since the last run, estimated.
    pages: u64,
}

impl Checkpointer {
    pub(super) fn start(database: &Path, config: &EmbeddedConfig) -> Result<Self, StorageError> {
        let connection = file::open_checkpointer(database, config)?;
        let signal = Arc::new(Signal::default());
        let thread = std::thread::Builder::new().name("storage-ckpt".to_owned());
        let thread = thread
            .spawn({
                let signal = Arc::clone(&signal);
                move || run(&signal, &connection)
            })
            .map_err(|e| StorageError::Failed {
                reason: format!("cannot start the checkpoint thread: {e}"),
            })?;
        Ok(Self { signal, thread: Some(thread), pages: 0 })
    }

    /// Counts a commit of `writes` writes with `bytes` of values.
    pub(super) fn record_commit(&mut self, writes: usize, bytes: u64) {
        // A write touches a leaf of `live` of its own; the other pages are shared with its
        // neighbours.
        self.pages += 2 + 2 * writes as u64 + bytes / file::PAGE_SIZE as u64;
        if self.pages >= PAGES_PER_RUN {
            self.request_run();
        }
    }

    /// Requests a run now, if anything was committed since the last one.
    pub(super) fn run_when_idle(&mut self) {
        if self.pages > 0 {
            self.request_run();
        }
    }

    fn request_run(&mut self) {
        let mut state = self.signal.state.lock();
        if *state == CheckpointState::Idle {
            *state = CheckpointState::Requested;
            self.pages = 0;
            self.signal.wake.notify_one();
        }
    }

    /// Restarts the log if the thread has requested it. The caller is between two transactions.
    pub(super) fn restart_if_requested(&self, connection: &Connection) {
        if *self.signal.state.lock() != CheckpointState::RestartRequested {
            return;
        }
        if let Err(error) = start_over(connection) {
            tracing::warn!(%error, "storage log could not be restarted, retrying later");
        }
        let mut state = self.signal.state.lock();
        if *state == CheckpointState::RestartRequested {
            *state = CheckpointState::Idle;
        }
    }

    /// Ends the thread and moves all of the log, leaving an empty one.
    pub(super) fn finish(mut self, connection: &Connection) -> rusqlite::Result<()> {
        *self.signal.state.lock() = CheckpointState::Closed;
        self.signal.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the checkpoint thread panicked");
        }
        checkpoint(connection, "TRUNCATE").map(drop)
    }
}

fn run(signal: &Signal, connection: &Connection) {
    loop {
        {
            let mut state = signal.state.lock();
            while !matches!(*state, CheckpointState::Requested | CheckpointState::Closed) {
                signal.wake.wait(&mut state);
            }
            if *state == CheckpointState::Closed {
                return;
            }
            *state = CheckpointState::Running;
        }
        let next = move_log(signal, connection).unwrap_or_else(|error| {
            tracing::warn!(%error, "storage log could not be moved, retrying later");
            CheckpointState::Idle
        });
        let mut state = signal.state.lock();
        if *state == CheckpointState::Running {
            *state = next;
        }
    }
}

/// Moves the log until it is short, can be restarted, or is held by a reader of an old state.
fn move_log(signal: &Signal, connection: &Connection) -> rusqlite::Result<CheckpointState> {
    let mut before = None;
    while *signal.state.lock() == CheckpointState::Running {
        let Moved { log, moved, .. } = checkpoint(connection, "PASSIVE")?;
        if log <= LOG_PAGES_MAX {
            break;
        }
        if log - moved <= LEFT_PAGES_MAX || log > LOG_PAGES_LIMIT {
            return Ok(CheckpointState::RestartRequested);
        }
        if before.replace(moved) == Some(moved) {
            break;
        }
    }
    Ok(CheckpointState::Idle)
}

/// Moves the whole log, so that the next commit writes at its beginning. Returns whether that
/// succeeded: readers of the old log may hold it for longer than the writer waits.
///
/// # Errors
/// The checkpoint failed; without space, the log stays unchanged.
pub(super) fn start_over(connection: &Connection) -> rusqlite::Result<bool> {
    let restart = || {
        connection.busy_timeout(READERS_WAIT)?;
        checkpoint(connection, "RESTART")
    };
    let restarted = restart();
    connection.busy_timeout(file::BUSY_TIMEOUT)?;
    restarted.map(|moved| !moved.held)
}

/// Pages in the log, and how many of them are in the database.
struct Moved {
    /// Whether a reader or another checkpoint held the log.
    held: bool,
    log: i64,
    moved: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Moved> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection
        .prepare_cached(&sql)?
        .query_row([], |row| Ok(Moved { held: row.get(0)?, log: row.get(1)?, moved: row.get(2)? }))
}
