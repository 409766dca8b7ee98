//! The size of the history, and the removal of older changes.
//!
//! [`HistoryWindow`] determines the compaction point from the recorded commits. [`compact_step`]
//! moves it by a bounded number of changes inside the writer's transaction, so compaction needs no
//! commit of its own during writes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::EmbeddedConfig;
use crate::Revision;

/// Marks in the window. More would not make the age of the compaction point noticeably more
/// precise.
const MARKS_MAX: u32 = 300;

/// The total that had been written at a point in time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    revision: Revision,
    bytes: u64,
}

/// Decides from age, count and size which revisions are history and which are compacted.
///
/// Ages are measured in this process: revisions of a former process count as new at the start. So a
/// jump of the wall clock compacts nothing, and a restart never shortens the history from which a
/// client can resume.
#[derive(Debug)]
pub(super) struct HistoryWindow {
    keep: Duration,
    revisions_min: u64,
    revisions_max: u64,
    bytes_max: u64,
    marks: VecDeque<Mark>,
    newest: Mark,
}

impl HistoryWindow {
    pub(super) fn new(config: &EmbeddedConfig, revision: Revision, now: Instant) -> Self {
        let newest = Mark { at: now, revision, bytes: 0 };
        Self {
            keep: config.history_keep,
            revisions_min: config.history_revisions_min,
            revisions_max: config.history_revisions_max.max(config.history_revisions_min),
            bytes_max: config.history_bytes_max,
            marks: VecDeque::from([newest]),
            newest,
        }
    }

    /// Records a commit up to `revision` that wrote `bytes` of values.
    pub(super) fn record_commit(&mut self, revision: Revision, bytes: u64, now: Instant) {
        self.newest = Mark { at: now, revision, bytes: self.newest.bytes + bytes };
        let mark_every = self.keep / MARKS_MAX;
        let due = self.marks.back().is_none_or(|last| {
            now.duration_since(last.at) >= mark_every
                || self.newest.bytes - last.bytes >= self.bytes_max / u64::from(MARKS_MAX)
        });
        if due {
            self.marks.push_back(self.newest);
        }
    }

    /// The revision to compact to, which may be below the current compaction point.
    pub(super) fn target(&mut self, now: Instant) -> Revision {
        let newest = self.newest;
        let over = |mark: &Mark| {
            now.duration_since(mark.at) >= self.keep || newest.bytes - mark.bytes >= self.bytes_max
        };
        let mut target = newest.revision.saturating_sub(self.revisions_max);
        // The last mark outside the window stays: with nothing written since, it is still the
        // target.
        while self.marks.get(1).is_some_and(over) {
            self.marks.pop_front();
        }
        // Much may have been written after the last mark; when that is outside, too, nothing
        // followed.
        let last = [self.marks.front(), Some(&self.newest)];
        if let Some(last) = last.into_iter().flatten().rfind(|mark| over(mark)) {
            target = target.max(last.revision);
        }
        target.min(newest.revision.saturating_sub(self.revisions_min))
    }
}

/// Removes the rows that only states before the returned revision need: at most `changes_max`
/// changes above `from`, none above `target`. Returns the new compaction point, which is `target`
/// when done.
pub(super) fn compact_step(
    connection: &Connection,
    from: Revision,
    target: Revision,
    changes_max: usize,
) -> rusqlite::Result<Revision> {
    let mut changes = connection.prepare_cached(
        "SELECT revision, prev_revision FROM changes
         WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3",
    )?;
    let mut delete_data = connection.prepare_cached("DELETE FROM data WHERE revision = ?1")?;
    let mut rows = changes.query(params![from as i64, target as i64, changes_max as i64])?;
    let (mut seen, mut last) = (0, from);
    while let Some(row) = rows.next()? {
        seen += 1;
        last = row.get::<_, i64>(0)? as Revision;
        let prev_revision = row.get::<_, i64>(1)?;
        if prev_revision > 0 {
            delete_data.execute(params![prev_revision])?;
        }
    }
    drop(rows);
    let reached = if seen < changes_max { target } else { last };
    connection
        .prepare_cached("DELETE FROM changes WHERE revision <= ?1")?
        .execute(params![reached as i64])?;
    connection
        .prepare_cached("UPDATE compaction SET revision = ?1")?
        .execute(params![reached as i64])?;
    Ok(reached)
}

#[cfg(test)]
mod tests;
