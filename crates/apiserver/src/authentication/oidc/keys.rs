//! The public keys of a provider: a JSON web key set (RFC 7517), and the verification of their
//! signatures (RFC 7518).

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{self, EcdsaVerificationAlgorithm, RsaParameters, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The number of keys of a set that are used.
const KEYS_MAX: usize = 100;

/// A signature algorithm of tokens: asymmetric ones only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    /// All algorithms with their names in token headers and flags.
    pub const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("ES512", Self::Es512),
    ];

    /// Finds the algorithm with a name from a token's header or a flag; `None` for unknown and
    /// symmetric ones.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, algorithm)| *algorithm)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::Es512 => return None,
        })
    }

    /// The ECDSA parameters with the name of their curve.
    fn ecdsa(self) -> Option<(&'static str, &'static EcdsaVerificationAlgorithm)> {
        Some(match self {
            Self::Es256 => ("P-256", &signature::ECDSA_P256_SHA256_FIXED),
            Self::Es384 => ("P-384", &signature::ECDSA_P384_SHA384_FIXED),
            Self::Es512 => ("P-521", &signature::ECDSA_P521_SHA512_FIXED),
            _ => return None,
        })
    }
}

struct ProviderKey {
    id: String,
    public: Public,
}

enum Public {
    Rsa(PublicKeyComponents<Vec<u8>>),
    Ecdsa { curve: String, point: Vec<u8> },
}

/// The keys of one provider.
pub(super) struct KeySet(Vec<ProviderKey>);

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Jwk {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    usage: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl KeySet {
    /// Parses a key set. Ignores keys of other types and for other purposes.
    ///
    /// # Errors
    /// The text is no key set.
    pub(super) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let set: Jwks = serde_json::from_slice(json)?;
        Ok(Self(set.keys.into_iter().take(KEYS_MAX).filter_map(Jwk::key).collect()))
    }

    /// Whether one of the keys verifies the signature; with an `id`, only keys with that ID are
    /// tried.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        id: &str,
        signed: &[u8],
        signature: &[u8],
    ) -> bool {
        let mut keys = self.0.iter().filter(|key| id.is_empty() || key.id == id);
        keys.any(|key| key.public.verify(algorithm, signed, signature))
    }
}

impl Jwk {
    fn key(self) -> Option<ProviderKey> {
        if !matches!(self.usage.as_str(), "" | "sig") {
            return None;
        }
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|b| !b.is_empty());
        let public = match self.kty.as_str() {
            "RSA" => {
                Public::Rsa(PublicKeyComponents { n: decoded(&self.n)?, e: decoded(&self.e)? })
            }
            "EC" => {
                // The uncompressed encoding of the point.
                let (x, y) = (decoded(&self.x)?, decoded(&self.y)?);
                Public::Ecdsa { curve: self.crv, point: [vec![4], x, y].concat() }
            }
            _ => return None,
        };
        Some(ProviderKey { id: self.kid, public })
    }
}

impl Public {
    fn verify(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa(key) => {
                algorithm.rsa().is_some_and(|rsa| key.verify(rsa, signed, signature).is_ok())
            }
            Self::Ecdsa { curve, point } => algorithm
                .ecdsa()
                .filter(|(expected, _)| expected == curve)
                .is_some_and(|(_, ecdsa)| {
                    UnparsedPublicKey::new(ecdsa, point).verify(signed, signature).is_ok()
                }),
        }
    }
}
