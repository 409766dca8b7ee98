//! One sealed value.
//!
//! ```text
//! magic 4 │ key id 8 │ wrapped data key 12 + 32 + 16 │ nonce 12 │ ciphertext │ tag 16
//! ```
//!
//! A data key seals the values of one process, with AES-256-GCM, a random nonce, and the storage
//! key as associated data. Each value contains it, wrapped by the encryption key that the id names
//! (nonce, ciphertext, tag; magic and id are associated data), so that each value can be read on
//! its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use aws_lc_rs::rand;
use bytes::Bytes;
use parking_lot::RwLock;

use super::keys::{EncryptionKeys, KeyId, cipher, id_text, random_key};

/// Begins a sealed value; the last byte is the version of the format. No text or message that the
/// API server stores begins with NUL.
const MAGIC: [u8; 4] = [0, b'd', b'e', 1];
const TAG_LEN: usize = 16;
const DATA_KEY_LEN: usize = 32;
/// Magic and key id.
const NAMED: usize = MAGIC.len() + size_of::<KeyId>();
/// Everything before the nonce of the value.
const HEADER: usize = NAMED + NONCE_LEN + DATA_KEY_LEN + TAG_LEN;
/// Bytes that sealing adds to a value.
pub const OVERHEAD: usize = HEADER + NONCE_LEN + TAG_LEN;
/// A data key seals about this many values. The probability that their random nonces of 96 bits
/// collide is 2⁻⁴¹; NIST SP 800-38D requires less than 2⁻³².
const SEALED_BY_DATA_KEY_MAX: u64 = 1 << 28;

/// Why a sealed value cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OpenError {
    #[error(
        "is encrypted with the key {id}, which is not in the key file; add it as a further line"
    )]
    UnknownKey { id: String },
    #[error("was tampered with or is damaged: its encryption does not open; restore a backup")]
    Damaged,
}

struct DataKey {
    cipher: LessSafeKey,
    /// The header of each value that the key seals.
    header: [u8; HEADER],
    sealed: AtomicU64,
}

/// Seals and opens values. Sealing needs randomness of the system.
pub(super) struct Sealer {
    keys: EncryptionKeys,
    data_key: RwLock<Arc<DataKey>>,
}

impl Sealer {
    pub(super) fn new(keys: EncryptionKeys) -> Self {
        let data_key = RwLock::new(Arc::new(DataKey::generate(&keys)));
        Self { keys, data_key }
    }

    pub(super) fn keys(&self) -> &EncryptionKeys {
        &self.keys
    }

    /// The value as it is stored under `key`.
    pub(super) fn seal(&self, key: &str, value: &[u8]) -> Bytes {
        let data_key = self.next_data_key();
        let nonce = random_nonce();
        let mut sealed = Vec::with_capacity(OVERHEAD + value.len());
        sealed.extend_from_slice(&data_key.header);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(value);
        let tag = data_key.cipher.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(key.as_bytes()),
            &mut sealed[HEADER + NONCE_LEN..],
        );
        sealed.extend_from_slice(tag.expect("a value is shorter than 64 GiB").as_ref());
        sealed.into()
    }

    /// Opens the value that is stored under `key`; a plain value is returned unchanged.
    pub(super) fn open(&self, key: &str, stored: &Bytes) -> Result<Bytes, OpenError> {
        if !stored.starts_with(&MAGIC) {
            return Ok(stored.clone());
        }
        let (header, rest) = stored.split_first_chunk::<HEADER>().ok_or(OpenError::Damaged)?;
        let (nonce, rest) = rest.split_first_chunk().ok_or(OpenError::Damaged)?;
        let (ciphertext, tag) = rest.split_last_chunk::<TAG_LEN>().ok_or(OpenError::Damaged)?;
        let mut value = vec![0; ciphertext.len()];
        let mut open = |cipher: &LessSafeKey| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let key = Aad::from(key.as_bytes());
            cipher.open_separate_gather(nonce, key, ciphertext, tag, &mut value)
        };
        let own = Arc::clone(&self.data_key.read());
        let opened =
            if own.header == *header { open(&own.cipher) } else { open(&self.unwrap(header)?) };
        opened.map_err(|_| OpenError::Damaged)?;
        Ok(value.into())
    }

    /// Whether the stored value is sealed with the current encryption key.
    pub(super) fn is_current(&self, stored: &[u8]) -> bool {
        let id = &self.keys.write_key().id;
        stored.strip_prefix(&MAGIC).is_some_and(|rest| rest.starts_with(id))
    }

    fn unwrap(&self, header: &[u8; HEADER]) -> Result<LessSafeKey, OpenError> {
        let (named, wrapped) = header.split_at(NAMED);
        let id: &KeyId = named.last_chunk().expect("the header has an id");
        let key = self.keys.find(id).ok_or_else(|| OpenError::UnknownKey { id: id_text(id) })?;
        let (nonce, wrapped) = wrapped.split_first_chunk().expect("the header has a nonce");
        let (ciphertext, tag) = wrapped.split_at(DATA_KEY_LEN);
        let mut bytes = zeroize::Zeroizing::new([0; DATA_KEY_LEN]);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let named = Aad::from(named);
        key.cipher
            .open_separate_gather(nonce, named, ciphertext, tag, bytes.as_mut_slice())
            .map_err(|_| OpenError::Damaged)?;
        Ok(cipher(&bytes))
    }

    /// The data key for one more value.
    fn next_data_key(&self) -> Arc<DataKey> {
        let data_key = Arc::clone(&self.data_key.read());
        // Exactly one writer reaches the limit; the few values that others seal meanwhile do not
        // matter.
        if data_key.sealed.fetch_add(1, Ordering::Relaxed) != SEALED_BY_DATA_KEY_MAX {
            return data_key;
        }
        let next = Arc::new(DataKey::generate(&self.keys));
        *self.data_key.write() = Arc::clone(&next);
        next
    }
}

impl DataKey {
    fn generate(keys: &EncryptionKeys) -> Self {
        let (key, bytes, nonce) = (keys.write_key(), random_key(), random_nonce());
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&key.id);
        let named = Aad::from(header.clone());
        header.extend_from_slice(&nonce);
        header.extend_from_slice(bytes.as_slice());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let wrapped = &mut header[NAMED + NONCE_LEN..];
        let tag = key.cipher.seal_in_place_separate_tag(nonce, named, wrapped);
        header.extend_from_slice(tag.expect("a key is short").as_ref());
        let header = header.try_into().expect("the parts make a header");
        Self { cipher: cipher(&bytes), header, sealed: AtomicU64::new(0) }
    }
}

fn random_nonce() -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    rand::fill(&mut nonce).expect("the system has randomness");
    nonce
}
