//! Reader threads: each owns one read-only connection and runs short jobs on it.
//!
//! The threads exist so that no runtime thread of a caller waits for a disk. The first thread runs
//! only quick jobs, so that a large list does not delay a get.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::{EmbeddedConfig, file};
use crate::StorageError;

/// Reads that are queued or run at once; further callers wait for a slot before their read is
/// queued.
const READS_MAX: usize = 4096;
/// One thread for quick jobs and one for all.
const READERS_MIN: usize = 2;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// How long a job may take: decides which threads run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// A few rows.
    Quick,
    /// Any number of rows.
    Long,
}

struct Jobs {
    quick: VecDeque<Job>,
    long: VecDeque<Job>,
    closed: bool,
}

pub(super) struct ReadPool {
    jobs: Mutex<Jobs>,
    wake: Condvar,
    slots: Semaphore,
}

impl ReadPool {
    /// Opens the connections and starts a thread for each; the threads end after [`Self::close`].
    pub(super) fn start(
        database: &Path,
        config: &EmbeddedConfig,
    ) -> Result<(Arc<Self>, Vec<JoinHandle<()>>), StorageError> {
        let jobs = Jobs { quick: VecDeque::new(), long: VecDeque::new(), closed: false };
        let pool = Arc::new(Self {
            jobs: Mutex::new(jobs),
            wake: Condvar::new(),
            slots: Semaphore::new(READS_MAX),
        });
        let mut threads = Vec::new();
        for number in 0..config.readers.max(READERS_MIN) {
            let connection = file::open_reader(database, config)?;
            // Closes the pool when the thread panics, so that callers get an error and do not hang.
            let guard = CloseOnDrop(Arc::clone(&pool));
            let thread = std::thread::Builder::new()
                .name(format!("storage-read-{number}"))
                .spawn(move || guard.0.run(&connection, number == 0))
                .map_err(|e| StorageError::Failed {
                    reason: format!("cannot start a reader thread: {e}"),
                })?;
            threads.push(thread);
        }
        Ok((pool, threads))
    }

    /// Runs `job` on a reader thread. Dropping the future before the job begins skips it.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        cost: Cost,
        job: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let _slot = self.slots.acquire().await.map_err(|_| StorageError::Closed)?;
        let (reply, response) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            if !reply.is_closed() {
                let _ = reply.send(job(connection));
            }
        });
        {
            let mut jobs = self.jobs.lock();
            if jobs.closed {
                return Err(StorageError::Closed);
            }
            match cost {
                Cost::Quick => jobs.quick.push_back(job),
                Cost::Long => jobs.long.push_back(job),
            }
            // A single wake-up could reach the one thread that does not run long jobs.
            match cost {
                Cost::Quick => drop(self.wake.notify_one()),
                Cost::Long => drop(self.wake.notify_all()),
            }
        }
        response.await.map_err(|_| StorageError::Closed)?
    }

    /// Ends the threads after their current jobs. Queued jobs fail with `Closed`.
    pub(super) fn close(&self) {
        let mut jobs = self.jobs.lock();
        jobs.closed = true;
        jobs.quick.clear();
        jobs.long.clear();
        self.slots.close();
        self.wake.notify_all();
    }

    fn run(&self, connection: &Connection, only_quick: bool) {
        while let Some(job) = self.next(only_quick) {
            job(connection);
        }
    }

    fn next(&self, only_quick: bool) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if jobs.closed {
                return None;
            }
            let job = match jobs.quick.pop_front() {
                None if !only_quick => jobs.long.pop_front(),
                job => job,
            };
            if job.is_some() {
                return job;
            }
            self.wake.wait(&mut jobs);
        }
    }
}

struct CloseOnDrop(Arc<ReadPool>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
