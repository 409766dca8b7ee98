//! Checks whether the disk has space for more writes, in addition to the space that the write-ahead
//! log needs to be moved.
//!
//! A page of the log is written a second time when it is moved into the database, and the log can
//! only restart once it was moved completely. A log that had used the last block of the disk could
//! never be moved, and would also use any space that is freed later. So writes are refused while
//! there is still space to move the log.

use std::io;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use rusqlite::Connection;

use super::file::PAGE_SIZE;

/// Reserved for deletions and compaction, which free space.
const MARGIN_BYTES: u64 = 256 * 1024;
/// Pages that one write changes, in addition to those of its value.
const PAGES_PER_WRITE: u64 = 3;
/// Pages that one commit changes, in addition to those of its writes.
const PAGES_PER_COMMIT: u64 = 4;
/// With this much free space, nothing is counted: twice the longest log.
const PLENTY_BYTES: u64 = 128 * 1024 * 1024;

/// The size of a pending commit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) writes: u64,
    /// Bytes of all values.
    pub(super) bytes: u64,
}

impl Load {
    /// With one more write of `bytes`.
    pub(super) fn and(self, bytes: usize) -> Self {
        Self { writes: self.writes + 1, bytes: self.bytes + bytes as u64 }
    }

    /// The changed pages in bytes: written once to the log and, unless free pages are reused, once
    /// to the database.
    fn page_bytes(self) -> u64 {
        let pages = PAGES_PER_COMMIT + PAGES_PER_WRITE * self.writes + self.bytes.div_ceil(PAGE);
        pages * PAGE
    }
}

const PAGE: u64 = PAGE_SIZE as u64;

/// Measures the disk of one database.
pub(super) struct Room {
    database: PathBuf,
    log: PathBuf,
}

impl Room {
    pub(super) fn of(database: &Path) -> Self {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        Self { database: database.to_owned(), log: log.into() }
    }

    /// The bytes that are missing for `load`; 0 when it fits. `log_is_free`: the log was just
    /// restarted, so that its blocks are reused.
    ///
    /// # Errors
    /// The file system or the database does not report its sizes.
    pub(super) fn missing(
        &self,
        connection: &Connection,
        load: Load,
        log_is_free: bool,
    ) -> rusqlite::Result<u64> {
        let Some(free) = free_bytes(&self.database).map_err(failed)? else { return Ok(0) };
        let required = load.page_bytes() + MARGIN_BYTES;
        if free >= PLENTY_BYTES + 2 * required {
            return Ok(0);
        }
        let bytes = |name: &str| -> rusqlite::Result<u64> {
            let pages: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
            Ok(u64::try_from(pages).unwrap_or_default() * PAGE)
        };
        let to_move = bytes("page_count")?.saturating_sub(length(&self.database).map_err(failed)?);
        let reusable = bytes("freelist_count")?;
        let log = if log_is_free { length(&self.log).map_err(failed)? } else { 0 };
        let needed = to_move + required.saturating_sub(log) + required.saturating_sub(reusable);
        Ok(needed.saturating_sub(free))
    }

    /// Advice to the operator.
    pub(super) fn advice(&self, missing: u64) -> String {
        let amount = match missing.div_ceil(1024) {
            0 => "some".to_owned(),
            kibibytes => format!("{kibibytes} KiB more"),
        };
        format!("free {amount} on the disk of \"{}\"", self.database.display())
    }
}

/// The free bytes for a writer of `file`. `None` for a file system that does not count them.
#[allow(clippy::useless_conversion, reason = "the counts are narrower on other systems")]
fn free_bytes(file: &Path) -> io::Result<Option<u64>> {
    let stats = statvfs(file)?;
    let blocks = u64::from(stats.blocks_available());
    Ok((stats.blocks() > 0).then(|| blocks.saturating_mul(u64::from(stats.fragment_size()))))
}

fn length(file: &Path) -> io::Result<u64> {
    match std::fs::metadata(file) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn failed(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
