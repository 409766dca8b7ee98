//! Which writes there is space for.

use super::StorageWriter;
use crate::embedded::checkpoint;
use crate::embedded::error::EngineFailure;
use crate::embedded::queue::{WriteOperation, WriteRequest};
use crate::embedded::room::Load;

impl StorageWriter {
    /// Retains in `writes` the deletions and the puts that there is space for. Refuses all writes
    /// while the log cannot be moved, which has priority for any space. Returns whether to
    /// continue.
    pub(super) fn admit(&mut self, writes: &mut Vec<WriteRequest>) -> bool {
        let puts = writes.iter().filter(|write| is_put(write));
        let load = puts.fold(Load::default(), |load, put| load.and(put.operation.size()));
        if !self.starved && (load.writes == 0 || self.missing(load, false) == 0) {
            return true;
        }
        let started_over = checkpoint::start_over(&self.connection);
        let moved = matches!(started_over, Ok(true));
        self.starved &= match started_over {
            Ok(true) => false,
            // A reader or the checkpoint thread held the log, which is no lack of space.
            Ok(false) => self.missing(Load::default(), false) > 0,
            Err(error) => {
                tracing::debug!(%error, "storage log could not be moved for lack of space");
                true
            }
        };
        let refused: Vec<_> = if self.starved {
            std::mem::take(writes)
        } else {
            let mut fitting = Load::default();
            let fits_not = |write: &mut WriteRequest| {
                let with = fitting.and(write.operation.size());
                let refused = is_put(write) && self.missing(with, moved) > 0;
                if is_put(write) && !refused {
                    fitting = with;
                }
                refused
            };
            writes.extract_if(.., fits_not).collect()
        };
        if self.starved || !refused.is_empty() {
            let advice = self.room.advice(self.missing(load, moved));
            self.fail(refused, &EngineFailure::Full(advice), self.next);
        }
        !self.starved && (!writes.is_empty() || self.is_due())
    }

    /// The bytes of space that are missing for `load`.
    fn missing(&self, load: Load, log_is_free: bool) -> u64 {
        self.room.missing(&self.connection, load, log_is_free).unwrap_or_else(|error| {
            tracing::warn!(%error, "storage could not count the space on its disk");
            0
        })
    }
}

fn is_put(write: &WriteRequest) -> bool {
    matches!(write.operation, WriteOperation::Put { .. })
}
