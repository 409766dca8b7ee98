//! The database file: its path, its lock, its pragmas and its tables.
//!
//! All numbers of the format are here. The meaning of the tables is in
//! docs/adr/0002-embedded-storage-format.md; the statements on them are in `apply`, `read` and
//! `history`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::EmbeddedConfig;
use super::error::{DAMAGED, describe, is_full};
use crate::StorageError;

/// Name of the database inside a data directory.
const FILE_NAME: &str = "storage.db";
/// "Drvr" in the header of the file: prevents writes to another program's SQLite database.
const APPLICATION_ID: i32 = 0x4472_7672;
/// Incremented with each change of the tables that older binaries cannot read.
const FORMAT_VERSION: i32 = 1;
/// SQLite's own default, fixed here because it is part of the format. Larger pages cost more per
/// small write.
pub(super) const PAGE_SIZE: i64 = 4096;
/// Wait for a lock that another program holds on the file, such as an operator's `sqlite3`.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The write-ahead log is truncated to this size when it restarts. Its blocks are reused, which
/// makes a commit cheaper than growing the file.
const WAL_SIZE_RETAINED: i64 = 16 * 1024 * 1024;
/// Distinct statements of one connection; further ones would be prepared repeatedly.
const STATEMENTS_CACHED: usize = 32;

/// - `live`: the newest state of each key that exists. `deadline` in milliseconds since 1970, or
///   null.
/// - `changes`: every commit above the compaction point, in order.
/// - `data`: values by the revision that wrote them, live or still within history. `checksum` is of
///   the whole state (see `checksum`), or null: older binaries do not write it.
/// - `expiry`: keys of `live` that have a deadline, soonest first.
/// - `compaction`: one row, the compaction point.
const TABLES: &str = "
    CREATE TABLE live (
        key TEXT NOT NULL PRIMARY KEY,
        revision INTEGER NOT NULL,
        create_revision INTEGER NOT NULL,
        deadline INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE changes (
        revision INTEGER NOT NULL PRIMARY KEY,
        key TEXT NOT NULL,
        create_revision INTEGER NOT NULL,
        prev_revision INTEGER NOT NULL,
        deleted INTEGER NOT NULL
    );
    CREATE TABLE data (
        revision INTEGER NOT NULL PRIMARY KEY,
        value BLOB NOT NULL,
        checksum INTEGER
    );
    CREATE TABLE expiry (
        deadline INTEGER NOT NULL,
        key TEXT NOT NULL,
        PRIMARY KEY (deadline, key)
    ) WITHOUT ROWID;
    CREATE TABLE compaction (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
        revision INTEGER NOT NULL
    );
    INSERT INTO compaction (id, revision) VALUES (1, 0);
";

/// Checked page by page at each start.
const TABLES_CHECKED: [&str; 4] = ["live", "changes", "expiry", "compaction"];

/// The exclusive lock of this process on a database. The operating system releases it when the
/// process ends in any way, also when it is killed.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    fn take(database: &Path) -> Result<Self, StorageError> {
        let path = database.with_extension("lock");
        let mut file = private_file(&path).map_err(|e| failed("open lock file", &path, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let reason = format!(
                    "data \"{}\" is in use by process {}: end it or choose another data directory",
                    database.display(),
                    holder.trim(),
                );
                return Err(StorageError::Failed { reason });
            }
            Err(TryLockError::Error(e)) => return Err(failed("lock", &path, &e)),
        }
        // Only used to name the holder in the error above, so a full disk must not prevent the
        // start.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

/// Locks and opens the database; creates the directory, the file and the tables if they do not
/// exist.
///
/// A `path` that ends in `.db` is the file, any other is its directory.
pub(super) fn open(
    path: &Path,
    config: &EmbeddedConfig,
) -> Result<(FileLock, PathBuf, Connection), StorageError> {
    let (directory, database) = if path.extension().is_some_and(|extension| extension == "db") {
        (path.parent().unwrap_or(Path::new(".")).to_owned(), path.to_owned())
    } else {
        (path.to_owned(), path.join(FILE_NAME))
    };
    if !directory.as_os_str().is_empty() {
        fs::create_dir_all(&directory)
            .map_err(|e| failed("create data directory", &directory, &e))?;
    }
    let lock = FileLock::take(&database)?;
    if !database.exists() {
        private_file(&database).map_err(|e| failed("create", &database, &e))?;
        // The name must survive a power cut, too; SQLite syncs only the content.
        let parent = if directory.as_os_str().is_empty() { Path::new(".") } else { &directory };
        File::open(parent)
            .and_then(|parent| parent.sync_all())
            .map_err(|e| failed("sync data directory", parent, &e))?;
    }
    let connection = open_writer(&database, config)
        .map_err(|e| {
            if is_full(&e) { no_room(&database) } else { failed("open", &database, &describe(&e)) }
        })
        .and_then(|connection| check_format(&database, connection))?;
    Ok((lock, database, connection))
}

fn open_writer(database: &Path, config: &EmbeddedConfig) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Page size and vacuum mode can only be set on an empty file, before it uses the log.
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // `checkpoint` moves the log, not the commit that makes it long.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", cache_kib(config.cache_bytes_writer))?;
    connection.pragma_update_and_check(
        None,
        "journal_size_limit",
        WAL_SIZE_RETAINED,
        |_| Ok(()),
    )?;
    if let Some(size) = config.file_size_max {
        let pages = i64::try_from(size).unwrap_or(i64::MAX) / PAGE_SIZE;
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(connection)
}

fn check_format(database: &Path, connection: Connection) -> Result<Connection, StorageError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let refuse = |reason: String| Err(StorageError::Failed { reason });
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (pragma("application_id")?, pragma("user_version")?) {
        (0, 0) if tables == 0 => {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 PRAGMA application_id = {APPLICATION_ID};
                 PRAGMA user_version = {FORMAT_VERSION};
                 {TABLES}
                 COMMIT;"
            ))?;
            Ok(connection)
        }
        (APPLICATION_ID, FORMAT_VERSION) => {
            if !connection.column_exists(None, "data", "checksum")? {
                connection.execute_batch("ALTER TABLE data ADD COLUMN checksum INTEGER")?;
            }
            check_pages(database, &connection)?;
            Ok(connection)
        }
        (APPLICATION_ID, version) => refuse(format!(
            "\"{}\" has format {version}, this version reads {FORMAT_VERSION}: start the version \
             that wrote it",
            database.display(),
        )),
        _ => refuse(format!(
            "\"{}\" is a database of another program: choose another data directory",
            database.display(),
        )),
    }
}

/// Refuses a file in which keys could be missing, which nothing else detects. The tables of keys
/// are small compared to that of the values, which have checksums.
fn check_pages(database: &Path, connection: &Connection) -> Result<(), StorageError> {
    for table in TABLES_CHECKED {
        let result: String =
            connection
                .query_row(&format!("PRAGMA integrity_check('{table}')"), [], |row| row.get(0))?;
        if result != "ok" {
            let attempt = format!("use the table \"{table}\" of");
            return Err(failed(&attempt, database, &format_args!("{result}: {DAMAGED}")));
        }
    }
    Ok(())
}

/// A connection that can only read, for one reader thread.
pub(super) fn open_reader(
    database: &Path,
    config: &EmbeddedConfig,
) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open_side(database, config, flags).map_err(|e| failed("open for reading", database, &e))
}

/// The connection that moves the log into the database.
pub(super) fn open_checkpointer(
    database: &Path,
    config: &EmbeddedConfig,
) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = open_side(database, config, flags)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    };
    open().map_err(|e: rusqlite::Error| failed("open for checkpoints", database, &e))
}

fn open_side(
    database: &Path,
    config: &EmbeddedConfig,
    flags: OpenFlags,
) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    connection.pragma_update(None, "cache_size", cache_kib(config.cache_bytes_reader))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// For SQLite, a negative cache size is in KiB.
fn cache_kib(bytes: usize) -> i64 {
    -((bytes / 1024).max(1) as i64)
}

/// Opens or creates a file that only its owner can read, because values are secrets.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Even an existing storage needs some space to open, for the index of its log.
fn no_room(database: &Path) -> StorageError {
    let reason = format!("\"{}\" cannot be opened: free some and restart", database.display());
    StorageError::Full { reason }
}

fn failed(attempt: &str, path: &Path, error: &dyn std::fmt::Display) -> StorageError {
    StorageError::Failed { reason: format!("cannot {attempt} \"{}\": {error}", path.display()) }
}
