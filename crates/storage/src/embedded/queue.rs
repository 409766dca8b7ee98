//! The queue of the writer thread: writes, compactions and the request to close.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{Event, Expect, Revision, StorageError};

/// Writes that are queued or processed at once; further callers wait for a slot before their write
/// is queued.
const WRITES_MAX: usize = 4096;
/// Writes of one commit.
pub(super) const BATCH_WRITES_MAX: usize = 512;
/// Bytes of values in one commit. The first write is included at any size.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) enum WriteOperation {
    Put { key: Arc<str>, value: Bytes, expect: Expect, ttl: Option<Duration> },
    Delete { key: Arc<str>, expect: Revision },
}

impl WriteOperation {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Put { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

pub(super) struct WriteRequest {
    pub(super) operation: WriteOperation,
    pub(super) reply: oneshot::Sender<Result<Arc<Event>, StorageError>>,
    /// Held until the reply is sent: bounds the queue.
    pub(super) _slot: OwnedSemaphorePermit,
}

pub(super) struct CompactRequest {
    pub(super) revision: Revision,
    pub(super) reply: oneshot::Sender<Result<(), StorageError>>,
}

/// The next work of the writer.
pub(super) struct Work {
    pub(super) writes: Vec<WriteRequest>,
    pub(super) compactions: Vec<CompactRequest>,
    /// The queue is closed: finish and end.
    pub(super) closed: bool,
}

#[derive(Default)]
struct Waiting {
    writes: VecDeque<WriteRequest>,
    compactions: Vec<CompactRequest>,
    closed: bool,
}

pub(super) struct WriteQueue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    slots: Arc<Semaphore>,
}

impl WriteQueue {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::new(Waiting::default()),
            wake: Condvar::new(),
            slots: Arc::new(Semaphore::new(WRITES_MAX)),
        }
    }

    /// Queues a write and waits for its result. Once queued, it happens even if the future is
    /// dropped.
    pub(super) async fn write(
        &self,
        operation: WriteOperation,
    ) -> Result<Arc<Event>, StorageError> {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|_| StorageError::Closed)?;
        let (reply, response) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.closed {
                return Err(StorageError::Closed);
            }
            waiting.writes.push_back(WriteRequest { operation, reply, _slot: slot });
            self.wake.notify_one();
        }
        response
            .await
            .map_err(|_| StorageError::Unknown { reason: "the writer ended".to_owned() })?
    }

    pub(super) async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let (reply, response) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.closed {
                return Err(StorageError::Closed);
            }
            waiting.compactions.push(CompactRequest { revision, reply });
            self.wake.notify_one();
        }
        response.await.map_err(|_| StorageError::Closed)?
    }

    /// Refuses new work. Queued work is still done.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.slots.close();
        self.wake.notify_one();
    }

    /// Drops the queued work: its callers get an unknown outcome.
    pub(super) fn abandon(&self) {
        self.close();
        let mut waiting = self.waiting.lock();
        waiting.writes.clear();
        waiting.compactions.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Takes the next batch. Waits for one until `deadline`; `None` does not wait.
    pub(super) fn take(&self, deadline: Option<Instant>) -> Work {
        let mut waiting = self.waiting.lock();
        if let Some(deadline) = deadline {
            while waiting.writes.is_empty() && waiting.compactions.is_empty() && !waiting.closed {
                if self.wake.wait_until(&mut waiting, deadline).timed_out() {
                    break;
                }
            }
        }
        let (mut writes, mut bytes) = (Vec::new(), 0);
        while writes.len() < BATCH_WRITES_MAX
            && let Some(first) = waiting.writes.front()
        {
            bytes += first.operation.size();
            if bytes > BATCH_BYTES_MAX && !writes.is_empty() {
                break;
            }
            writes.extend(waiting.writes.pop_front());
        }
        let closed = waiting.closed && waiting.writes.is_empty();
        Work { writes, compactions: std::mem::take(&mut waiting.compactions), closed }
    }
}
