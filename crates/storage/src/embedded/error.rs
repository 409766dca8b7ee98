//! Maps SQLite's errors to those of the storage.

use rusqlite::ErrorCode;

use crate::StorageError;

/// Advice to the operator about a damaged file.
pub(super) const DAMAGED: &str =
    "the storage file is damaged; stop the server and restore its data directory from a backup";

/// A failure of the engine that fails every write of a batch.
#[derive(Clone, Debug)]
pub(super) enum EngineFailure {
    Full(String),
    Failed(String),
    /// The commit was begun, but its result is unknown.
    Unknown(String),
}

impl EngineFailure {
    /// A failure before the commit was begun: nothing was written.
    pub(super) fn before_commit(error: &rusqlite::Error) -> Self {
        if is_full(error) { Self::Full(error.to_string()) } else { Self::Failed(describe(error)) }
    }

    /// A failure of the commit itself. Without space its last frame was not written, so it did not
    /// happen; after any other error (a failed fsync) recovery may still find it.
    pub(super) fn in_commit(error: &rusqlite::Error) -> Self {
        if is_full(error) { Self::Full(error.to_string()) } else { Self::Unknown(describe(error)) }
    }
}

impl From<EngineFailure> for StorageError {
    fn from(failure: EngineFailure) -> Self {
        match failure {
            EngineFailure::Full(reason) => Self::Full { reason },
            EngineFailure::Failed(reason) => Self::Failed { reason },
            EngineFailure::Unknown(reason) => Self::Unknown { reason },
        }
    }
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        EngineFailure::before_commit(&error).into()
    }
}

/// The message, with advice when the file is damaged.
pub(super) fn describe(error: &rusqlite::Error) -> String {
    let damaged = match error {
        // The tables never contain such values.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        ),
    };
    if damaged { format!("{error}: {DAMAGED}") } else { error.to_string() }
}

pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    // The shared-memory file and a delayed allocation report a full disk as an I/O error of their
    // own.
    const NO_SPACE: [i32; 1] = [rusqlite::ffi::SQLITE_IOERR_SHMSIZE];
    matches!(error, rusqlite::Error::SqliteFailure(cause, _)
        if cause.code == ErrorCode::DiskFull || NO_SPACE.contains(&cause.extended_code))
}
