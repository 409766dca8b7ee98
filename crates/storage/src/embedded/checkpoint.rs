//! Moves the write-ahead log into the database beside the writer, so that no commit waits for it.
//!
//! A passive checkpoint may run while the writer commits, but under steady load it never finds the
//! log complete, and the log would grow. So when the log is large and nearly moved, the thread asks
//! the writer for a turn: the writer moves the small rest itself between two commits, and starts
//! the log over.

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
/// The log starts over above this, as soon as little of it is left to move: 16 MiB.
const LOG_PAGES_MAX: i64 = 4096;
/// The log starts over above this, however much is left: 64 MiB.
const LOG_PAGES_LIMIT: i64 = 4 * LOG_PAGES_MAX;
/// What counts as little: about two milliseconds of the writer's time.
const LEFT_PAGES_MAX: i64 = 256;
/// Time that the writer's turn waits for readers of the old log; then it is tried again later.
const READERS_WAIT: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The log has something to move.
    Wanted,
    Running,
    /// The thread waits for the writer to start the log over.
    WritersTurn,
    Closed,
}

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
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

    /// Tells of a commit of `writes` writes with `bytes` of values.
    pub(super) fn committed(&mut self, writes: usize, bytes: u64) {
        // A write touches a leaf of `live` of its own; the other pages are shared with its
        // neighbours.
        self.pages += 2 + 2 * writes as u64 + bytes / file::PAGE_SIZE as u64;
        if self.pages >= PAGES_PER_RUN {
            self.want();
        }
    }

    /// Moves the log now, if anything was committed since the last time.
    pub(super) fn idle(&mut self) {
        if self.pages > 0 {
            self.want();
        }
    }

    fn want(&mut self) {
        let mut state = self.signal.state.lock();
        if *state == State::Idle {
            *state = State::Wanted;
            self.pages = 0;
            self.signal.wake.notify_one();
        }
    }

    /// Starts the log over if the thread asked for it. The caller is between two transactions.
    pub(super) fn writers_turn(&self, connection: &Connection) {
        if *self.signal.state.lock() != State::WritersTurn {
            return;
        }
        if let Err(error) = start_over(connection) {
            tracing::warn!(%error, "storage log could not be started over, trying again later");
        }
        let mut state = self.signal.state.lock();
        if *state == State::WritersTurn {
            *state = State::Idle;
        }
    }

    /// Ends the thread and moves all of the log, leaving an empty one.
    pub(super) fn finish(mut self, connection: &Connection) -> rusqlite::Result<()> {
        *self.signal.state.lock() = State::Closed;
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
            while !matches!(*state, State::Wanted | State::Closed) {
                signal.wake.wait(&mut state);
            }
            if *state == State::Closed {
                return;
            }
            *state = State::Running;
        }
        let next = move_log(signal, connection).unwrap_or_else(|error| {
            tracing::warn!(%error, "storage log could not be moved, trying again later");
            State::Idle
        });
        let mut state = signal.state.lock();
        if *state == State::Running {
            *state = next;
        }
    }
}

/// Moves the log until it is short, or fit to be started over, or held by a reader of an old state.
fn move_log(signal: &Signal, connection: &Connection) -> rusqlite::Result<State> {
    let mut before = None;
    while *signal.state.lock() == State::Running {
        let Moved { log, moved, .. } = checkpoint(connection, "PASSIVE")?;
        if log <= LOG_PAGES_MAX {
            break;
        }
        if log - moved <= LEFT_PAGES_MAX || log > LOG_PAGES_LIMIT {
            return Ok(State::WritersTurn);
        }
        if before.replace(moved) == Some(moved) {
            break;
        }
    }
    Ok(State::Idle)
}

/// Moves all of the log, so that the next commit writes at its beginning. Answers whether that was
/// done: readers of the old log may hold it for longer than the writer waits.
///
/// # Errors
/// As of a checkpoint; without space the log stays as it is.
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
    /// Somebody was in the way.
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
