//! The public keys of a provider: a JSON web key set (RFC 7517), and the algorithms that its tokens
//! may have (RFC 7518).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm as JwtAlgorithm, AlgorithmFamily, DecodingKey};

use crate::authentication::jwt::{TokenClaims, UnverifiedToken};

/// The number of keys of a set that are used.
const KEYS_MAX: usize = 100;

/// A signature algorithm of tokens: asymmetric ones only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm(pub(super) JwtAlgorithm);

impl Algorithm {
    /// All algorithms with their names in token headers and flags.
    pub const ALL: [(&'static str, Self); 8] = [
        ("RS256", Self(JwtAlgorithm::RS256)),
        ("RS384", Self(JwtAlgorithm::RS384)),
        ("RS512", Self(JwtAlgorithm::RS512)),
        ("PS256", Self(JwtAlgorithm::PS256)),
        ("PS384", Self(JwtAlgorithm::PS384)),
        ("PS512", Self(JwtAlgorithm::PS512)),
        ("ES256", Self(JwtAlgorithm::ES256)),
        ("ES384", Self(JwtAlgorithm::ES384)),
    ];

    /// Finds the algorithm with a name from a flag; `None` for unknown and symmetric ones.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, algorithm)| *algorithm)
    }

    /// Whether the type of the key and its curve are those of the algorithm.
    fn fits(self, key: &Jwk) -> bool {
        match &key.algorithm {
            AlgorithmParameters::RSA(_) => self.0.family() == AlgorithmFamily::Rsa,
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => self.0 == JwtAlgorithm::ES256,
                EllipticCurve::P384 => self.0 == JwtAlgorithm::ES384,
                _ => false,
            },
            _ => false,
        }
    }
}

/// The keys of one provider, at most [`KEYS_MAX`].
pub struct KeySet(JwkSet);

impl KeySet {
    /// Parses a key set. Ignores keys for other purposes than signatures, and keys beyond the
    /// limit.
    ///
    /// # Errors
    /// The text is no key set.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut set: JwkSet = serde_json::from_slice(json)?;
        set.keys.truncate(KEYS_MAX);
        set.keys.retain(|key| {
            matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature))
        });
        Ok(Self(set))
    }

    /// The claims of a token that one of the keys signed with `algorithm`; they are not checked.
    /// With a key ID in the token's header, only keys with that ID are tried.
    pub fn verify(&self, token: &UnverifiedToken<'_>, algorithm: Algorithm) -> Option<TokenClaims> {
        let id = token.key_id();
        let is_named = |key: &&Jwk| id.is_empty() || key.common.key_id.as_deref() == Some(id);
        let keys = self.0.keys.iter().filter(is_named).filter(|key| algorithm.fits(key));
        keys.filter_map(|key| DecodingKey::from_jwk(key).ok())
            .find_map(|key| token.verify(algorithm.0, &key))
    }
}

#[cfg(test)]
mod tests;
