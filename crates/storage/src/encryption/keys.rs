//! The keys that wrap data keys, and their file.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::{digest, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Bytes of a key: AES-256.
const KEY_SIZE: usize = 32;
/// Keys of one file. A file has more than two only during a rotation.
pub const KEYS_MAX: usize = 16;
/// Hashed into an id together with the key, so that the hash serves this purpose only.
const ID_CONTEXT: &[u8] = b"drover encryption key id";

/// Identifies a key without revealing it.
pub(super) type KeyId = [u8; 8];

pub(super) struct EncryptionKey {
    pub(super) id: KeyId,
    pub(super) cipher: LessSafeKey,
}

impl EncryptionKey {
    fn new(bytes: &[u8; KEY_SIZE]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(ID_CONTEXT);
        context.update(bytes);
        let hash = context.finish();
        let id = *hash.as_ref().first_chunk().expect("a hash is longer than an id");
        Self { id, cipher: cipher(bytes) }
    }
}

/// AES-256-GCM with this key.
pub(super) fn cipher(bytes: &[u8; KEY_SIZE]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).expect("the size is that of AES-256"))
}

/// The random bytes of a new key.
///
/// # Panics
/// When the system has no randomness.
pub(super) fn random_key() -> Zeroizing<[u8; KEY_SIZE]> {
    let mut bytes = Zeroizing::new([0; KEY_SIZE]);
    rand::fill(bytes.as_mut_slice()).expect("the system has randomness");
    bytes
}

/// The id as it is shown to users.
pub(super) fn id_text(id: &KeyId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Why the text of a key file cannot be used. The message contains no part of a key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    #[error("it holds no key; make one with `openssl rand -base64 32`")]
    Empty,
    #[error(
        "line {line} is not a key: 32 random bytes in base64, as `openssl rand -base64 32` prints"
    )]
    NotAKey { line: usize },
    #[error("line {line} repeats a key")]
    Repeated { line: usize },
    #[error("it holds more than {KEYS_MAX} keys; remove those that are no longer in use")]
    TooMany,
}

/// The keys of an encrypted storage: the first one is for writes, all of them are for reads.
/// `Debug` shows their ids.
pub struct EncryptionKeys(Vec<EncryptionKey>);

impl EncryptionKeys {
    /// Parses a key file: one key per line, 32 bytes in base64. The first one is used for writes.
    /// Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`KeyFileError`], which names the line to correct.
    pub fn parse(file: &str) -> Result<Self, KeyFileError> {
        let mut keys: Vec<EncryptionKey> = Vec::new();
        for (at, text) in file.lines().map(str::trim).enumerate() {
            let line = at + 1;
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let bytes = STANDARD.decode(text).map(Zeroizing::new);
            let bytes = bytes.map_err(|_| KeyFileError::NotAKey { line })?;
            let bytes: &[u8; KEY_SIZE] =
                bytes.as_slice().try_into().map_err(|_| KeyFileError::NotAKey { line })?;
            let key = EncryptionKey::new(bytes);
            if keys.iter().any(|other| other.id == key.id) {
                return Err(KeyFileError::Repeated { line });
            }
            if keys.len() == KEYS_MAX {
                return Err(KeyFileError::TooMany);
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeyFileError::Empty) } else { Ok(Self(keys)) }
    }

    /// The text of a key file with one new key.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub fn generate_file() -> Zeroizing<String> {
        let key = Zeroizing::new(STANDARD.encode(random_key()));
        Zeroizing::new(format!(
            "# Keys of the encrypted storage. The first one writes, all of them read.\n\
             # Without them the data, and every backup of it, cannot be read.\n{}\n",
            *key
        ))
    }

    /// The ids of the keys; the first is that of the key for writes.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|key| id_text(&key.id))
    }

    pub(super) fn write_key(&self) -> &EncryptionKey {
        self.0.first().expect("there is always one")
    }

    pub(super) fn find(&self, id: &KeyId) -> Option<&EncryptionKey> {
        self.0.iter().find(|key| key.id == *id)
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}
