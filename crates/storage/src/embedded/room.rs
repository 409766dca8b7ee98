//! Whether the disk has room for more writes, without what the write-ahead log needs to be moved.
//!
//! A page of the log is written a second time when it is moved into the database, and the log can
//! only start over once all of it was. A log that had taken the last block of the disk could never
//! be moved, and would also take whatever room is made later. So a write is refused while there is
//! still room to move the log.

use std::io;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use rusqlite::Connection;

use super::file::PAGE_SIZE;

/// Left for what makes room: deletions and compaction.
const MARGIN_BYTES: u64 = 256 * 1024;
/// Pages that one write changes beside those of its value, and one commit beside its writes.
const PAGES_PER_WRITE: u64 = 3;
const PAGES_PER_COMMIT: u64 = 4;
/// With this much free nothing is counted: twice the longest log.
const PLENTY_BYTES: u64 = 128 * 1024 * 1024;

/// What a commit is going to write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) writes: u64,
    /// Of all values.
    pub(super) bytes: u64,
}

impl Load {
    /// With one more write of `bytes`.
    pub(super) fn and(self, bytes: usize) -> Self {
        Self { writes: self.writes + 1, bytes: self.bytes + bytes as u64 }
    }

    /// The pages it changes, in bytes: once in the log and, unless others are free, once in the
    /// database.
    fn page_bytes(self) -> u64 {
        let pages = PAGES_PER_COMMIT + PAGES_PER_WRITE * self.writes + self.bytes.div_ceil(PAGE);
        pages * PAGE
    }
}

const PAGE: u64 = PAGE_SIZE as u64;

/// Looks at the disk of one database.
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

    /// How many bytes are missing for `load`; 0 when it fits. `log_is_free`: the log was just
    /// started over, so that it is written where it lies.
    ///
    /// # Errors
    /// The file system or the database does not tell.
    pub(super) fn missing(
        &self,
        connection: &Connection,
        load: Load,
        log_is_free: bool,
    ) -> rusqlite::Result<u64> {
        let Some(free) = free_bytes(&self.database).map_err(failed)? else { return Ok(0) };
        let wanted = load.page_bytes() + MARGIN_BYTES;
        if free >= PLENTY_BYTES + 2 * wanted {
            return Ok(0);
        }
        let bytes = |name: &str| -> rusqlite::Result<u64> {
            let pages: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
            Ok(u64::try_from(pages).unwrap_or_default() * PAGE)
        };
        let to_move = bytes("page_count")?.saturating_sub(length(&self.database).map_err(failed)?);
        let reusable = bytes("freelist_count")?;
        let log = if log_is_free { length(&self.log).map_err(failed)? } else { 0 };
        let needed = to_move + wanted.saturating_sub(log) + wanted.saturating_sub(reusable);
        Ok(needed.saturating_sub(free))
    }

    /// What the operator is to do.
    pub(super) fn advice(&self, missing: u64) -> String {
        let amount = match missing.div_ceil(1024) {
            0 => "some".to_owned(),
            kibibytes => format!("{kibibytes} KiB more"),
        };
        format!("free {amount} on the disk of \"{}\"", self.database.display())
    }
}

/// What is free for whoever writes `file`, in bytes. `None` where the file system does not count.
#[allow(clippy::useless_conversion, reason = "the counts are narrower on other systems")]
fn free_bytes(file: &Path) -> io::Result<Option<u64>> {
    let told = statvfs(file)?;
    let blocks = u64::from(told.blocks_available());
    Ok((told.blocks() > 0).then(|| blocks.saturating_mul(u64::from(told.fragment_size()))))
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
