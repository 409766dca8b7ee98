//! Checksums of stored states: SQLite detects an invalid page, but not a changed value.

use bytes::Bytes;
use rusqlite::Row;

use crate::{KeyValue, StorageError};

/// Ends the key. No string has this byte.
const KEY_END: u8 = 0xff;

/// CRC-32 of all parts of a state that are returned.
pub(super) fn of(state: &KeyValue) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(state.key.as_bytes());
    sum.update(&[KEY_END]);
    sum.update(&state.create_revision.to_le_bytes());
    sum.update(&state.mod_revision.to_le_bytes());
    sum.update(&state.value);
    sum.finalize()
}

/// A state as it was read, not verified yet.
pub(super) struct Stored {
    /// The value is empty when it is lost.
    pub(super) state: KeyValue,
    lost: bool,
    /// `None` for a state that was written before there were checksums.
    checksum: Option<u32>,
}

impl Stored {
    /// `value` and `checksum` are columns of `row`. `state` has no value yet.
    pub(super) fn read(
        row: &Row<'_>,
        value: usize,
        checksum: usize,
        state: KeyValue,
    ) -> rusqlite::Result<Self> {
        let value = row.get_ref(value)?.as_blob_or_null()?.map(Bytes::copy_from_slice);
        let lost = value.is_none();
        let state = KeyValue { value: value.unwrap_or_default(), ..state };
        Ok(Self { state, lost, checksum: row.get(checksum)? })
    }

    /// A state whose value has no row.
    pub(super) fn with_lost_value(state: KeyValue) -> Self {
        Self { state, lost: true, checksum: None }
    }

    fn is_intact(&self) -> bool {
        !self.lost && self.checksum.is_none_or(|checksum| checksum == of(&self.state))
    }

    /// The state, if it is unchanged.
    pub(super) fn intact(self) -> Result<KeyValue, StorageError> {
        if self.is_intact() {
            return Ok(self.state);
        }
        let KeyValue { key, mod_revision, .. } = self.state;
        let reason = format!(
            "\"{key}\" at revision {mod_revision} is not what was written: {}",
            super::error::DAMAGED
        );
        Err(StorageError::Failed { reason })
    }

    /// The state, with an empty value if it was changed, so that it can be replaced and deleted.
    pub(super) fn or_empty(self) -> KeyValue {
        if self.is_intact() {
            return self.state;
        }
        let key = &*self.state.key;
        tracing::error!(key, "value is damaged in the storage file, treating it as empty");
        KeyValue { value: Bytes::new(), ..self.state }
    }
}
