//! The agent's identity: an Ed25519 key pair that it makes once and never sends.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

const PUBLIC_KEY_BYTES: usize = 32;
const KEY_ID_CHARS: usize = 64;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("make an agent key: the random generator failed")]
    Generate,
    #[error("read the agent key: it is not an Ed25519 key in PKCS#8")]
    Parse,
}

/// The private half of the key pair. `Debug` shows its id only.
pub struct AgentKey {
    pair: Ed25519KeyPair,
    pkcs8: Vec<u8>,
}

impl AgentKey {
    /// A new key pair.
    ///
    /// # Errors
    /// [`KeyError::Generate`] when the system's random generator fails.
    pub fn generate() -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::Generate)?;
        let pkcs8 = pair.to_pkcs8v1().map_err(|_| KeyError::Generate)?.as_ref().to_vec();
        Ok(Self { pair, pkcs8 })
    }

    /// Reads a key from the bytes of [`Self::to_pkcs8`].
    ///
    /// # Errors
    /// [`KeyError::Parse`] for anything else. Generate a new key, or report the damaged store.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| KeyError::Parse)?;
        Ok(Self { pair, pkcs8: der.to_vec() })
    }

    /// The key in PKCS#8 (DER). Secret: store it where only the agent can read it.
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().expect("an Ed25519 public key has 32 bytes"))
    }

    /// The id of the public half.
    pub fn id(&self) -> KeyId {
        self.public_key().id()
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentKey({})", self.id())
    }
}

/// The public half of an agent's key. Its text, also in JSON, is standard base64.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; PUBLIC_KEY_BYTES]);

impl PublicKey {
    /// The id of this key.
    pub fn id(&self) -> KeyId {
        KeyId(hex(&Sha256::digest(self.0)))
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A text that is no [`PublicKey`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent's public key must be 32 bytes in base64")]
pub struct PublicKeyError;

impl std::str::FromStr for PublicKey {
    type Err = PublicKeyError;

    fn from_str(text: &str) -> Result<Self, PublicKeyError> {
        let bytes = STANDARD.decode(text).map_err(|_| PublicKeyError)?;
        Ok(Self(bytes.try_into().map_err(|_| PublicKeyError)?))
    }
}

/// Identifies a key: the SHA-256 of its public half in lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

impl KeyId {
    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no [`KeyId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key id must be 64 lower-case hex digits")]
pub struct KeyIdError;

impl std::str::FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != KEY_ID_CHARS || !is_hex {
            return Err(KeyIdError);
        }
        Ok(Self(text.to_owned()))
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
serde_as_text!(PublicKey);
serde_as_text!(KeyId);

/// The bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}
