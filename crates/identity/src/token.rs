//! Token keys: random, shown once, stored as a hash.
//!
//! A token is presented as `name:key`. Keys have 54 characters of an alphabet of 27, more than 250
//! bits, so a fast hash is sufficient for storage. The stored text is `$2:<salt>:<hash>` in
//! unpadded base64, like that of Rancher 2.6.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::secret::Secret;

/// No vowels and no characters that resemble others.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a key.
pub const KEY_LENGTH: usize = 54;
/// Identifies the format of the stored hash.
const HASH_FORMAT: &str = "$2";
const SALT_BYTES: usize = 8;

/// A token as it is presented.
#[derive(Clone, Debug)]
pub struct TokenKey {
    pub name: String,
    pub key: Secret,
}

impl TokenKey {
    /// Splits `name:key`; `None` when no object can have the name or the key is not printable text.
    pub fn parse(text: &str) -> Option<Self> {
        let of_names = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
        let (name, key) = text.split_once(':')?;
        let named = !name.is_empty() && name.len() <= 253 && name.chars().all(of_names);
        let keyed = !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic());
        (named && keyed).then(|| Self { name: name.to_owned(), key: Secret::new(key) })
    }
    /// `name:key`. Every call may leak it.
    pub fn expose(&self) -> String {
        format!("{}:{}", self.name, self.key.expose())
    }
}

/// `length` random characters of the alphabet of ids and keys.
pub fn random_text(length: usize) -> String {
    (0..length).map(|_| char::from(ALPHABET[rand::random_range(0..ALPHABET.len())])).collect()
}

/// A new random key of [`KEY_LENGTH`] characters.
pub fn generate_key() -> Secret {
    Secret::new(random_text(KEY_LENGTH))
}

/// The text in which a key is stored, with a new random salt.
pub fn hash_key(key: &Secret) -> String {
    let salt: [u8; SALT_BYTES] = rand::random();
    format!(
        "{HASH_FORMAT}:{}:{}",
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(digest(&salt, key))
    )
}

/// Whether `key` is the one that was hashed. Takes the same time for every wrong key. A stored text
/// of an unknown format never matches.
pub fn verify_key(stored: &str, key: &Secret) -> bool {
    let mut parts = stored.split(':');
    let (Some(HASH_FORMAT), Some(salt), Some(hash), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Ok(salt), Ok(hash)) = (STANDARD_NO_PAD.decode(salt), STANDARD_NO_PAD.decode(hash)) else {
        return false;
    };
    digest(&salt, key).ct_eq(&hash).into()
}

fn digest(salt: &[u8], key: &Secret) -> Vec<u8> {
    let mut hasher = Sha256::new();
    hasher.update(salt);
    hasher.update(key.expose().as_bytes());
    hasher.finalize().to_vec()
}
