//! What SQLite's errors mean to a caller of the storage.

use rusqlite::ErrorCode;

use crate::StorageError;

/// What a damaged file means to the operator.
pub(super) const DAMAGED: &str =
    "the storage file is damaged; stop the server and restore its data directory from a backup";

/// An engine failure that can be told to every write of a batch.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    Full(String),
    Failed(String),
    /// The commit was begun and its end was not seen.
    Unknown(String),
}

impl Failure {
    /// A failure before the commit was begun: nothing was written.
    pub(super) fn before_commit(error: &rusqlite::Error) -> Self {
        if is_full(error) { Self::Full(error.to_string()) } else { Self::Failed(told(error)) }
    }

    /// A failure of the commit itself. Without space its last frame was not written, so it did not
    /// happen; after any other error (a failed fsync) recovery may still find it.
    pub(super) fn in_commit(error: &rusqlite::Error) -> Self {
        if is_full(error) { Self::Full(error.to_string()) } else { Self::Unknown(told(error)) }
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full(reason) => Self::Full { reason },
            Failure::Failed(reason) => Self::Failed { reason },
            Failure::Unknown(reason) => Self::Unknown { reason },
        }
    }
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        Failure::before_commit(&error).into()
    }
}

/// The words, with what to do when the file is damaged.
pub(super) fn told(error: &rusqlite::Error) -> String {
    let damaged = match error {
        // The tables have no such content.
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
