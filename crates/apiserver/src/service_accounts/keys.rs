//! Keys for tokens: JSON web signatures with P-256 (ES256).

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo};

const ALGORITHM: &str = "ES256";

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the service account key: {0}")]
pub struct KeyError(String);

/// Why a token is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// Not a token that one of the keys could have signed: let other authenticators check it.
    Unrecognized,
    /// A token of this kind with a wrong signature: reject it.
    BadSignature,
}

/// A private key that signs tokens. `Debug` prints only its id.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    public: VerifyKey,
}

impl SigningKey {
    /// Makes a new key, as PEM of PKCS #8.
    ///
    /// # Panics
    /// When the system has no randomness, without which nothing is safe.
    pub fn generate_pem() -> String {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .expect("the system has randomness");
        let text = STANDARD.encode(key.as_ref());
        let lines: Vec<&str> =
            (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    }

    /// Reads a private key (PKCS #8, P-256).
    ///
    /// # Errors
    /// When it does not decode or is of another kind.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let failed = |what: &str| KeyError(what.to_owned());
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| KeyError(error.to_string()))?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der())
                .map_err(|_| failed("not a P-256 key in PKCS #8"))?;
        let spki = pair.public_key().as_der().map_err(|_| failed("it has no public key"))?;
        let public = VerifyKey::from_spki(spki.as_ref())?;
        Ok(Self { pair, public })
    }

    /// The `kid` of its tokens: SHA-256 of the public key, in base64.
    pub fn id(&self) -> &str {
        &self.public.id
    }

    /// A signed token with these claims.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub fn sign(&self, claims: &Value) -> String {
        let head = json!({"alg": ALGORITHM, "kid": self.id()});
        let text = format!("{}.{}", encode(&head), encode(claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), text.as_bytes())
            .expect("the system has randomness");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id()).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct VerifyKey {
    id: String,
    /// The uncompressed point.
    point: Vec<u8>,
}

impl VerifyKey {
    fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let (_, spki) =
            SubjectPublicKeyInfo::from_der(der).map_err(|error| KeyError(error.to_string()))?;
        let point = spki.subject_public_key.data.to_vec();
        // 0x04, x and y: the format of P-256 points, and of no other usual curve.
        if point.len() != 65 || point[0] != 4 {
            return Err(KeyError("not a P-256 public key".to_owned()));
        }
        Ok(Self { id: URL_SAFE_NO_PAD.encode(Sha256::digest(der)), point })
    }
}

/// Public keys that verify tokens: the current key and earlier ones, so that a key rotation
/// invalidates no token.
#[derive(Clone, Debug, Default)]
pub struct VerifyKeys(Vec<VerifyKey>);

impl VerifyKeys {
    /// Verifies with the keys of these PEM texts, each a private or a public key.
    ///
    /// # Errors
    /// The first text that is neither.
    pub fn from_pems<'p>(pems: impl IntoIterator<Item = &'p str>) -> Result<Self, KeyError> {
        let keys = pems.into_iter().map(|pem| {
            if let Ok(spki) = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()) {
                return VerifyKey::from_spki(&spki);
            }
            SigningKey::from_pem(pem).map(|key| key.public)
        });
        Ok(Self(keys.collect::<Result<_, _>>()?))
    }

    /// The claims of a token that one of the keys signed. The claims themselves are not checked.
    ///
    /// # Errors
    /// [`TokenError`] says whether another authenticator may know the token.
    pub fn verify(&self, token: &str) -> Result<Value, TokenError> {
        #[derive(Deserialize)]
        struct TokenHeader {
            alg: String,
            #[serde(default)]
            kid: String,
        }
        let mut parts = token.split('.');
        let (Some(head), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Unrecognized);
        };
        let decoded =
            |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Unrecognized);
        let parsed: TokenHeader =
            serde_json::from_slice(&decoded(head)?).map_err(|_| TokenError::Unrecognized)?;
        // The algorithm is fixed here: the token does not choose it.
        if parsed.alg != ALGORITHM {
            return Err(TokenError::Unrecognized);
        }
        let signed = &token[..head.len() + 1 + claims.len()];
        let signature = decoded(signature)?;
        let by_id = self.0.iter().any(|key| key.id == parsed.kid);
        let holds = self.0.iter().filter(|key| !by_id || key.id == parsed.kid).any(|key| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point)
                .verify(signed.as_bytes(), &signature)
                .is_ok()
        });
        if !holds {
            return Err(TokenError::BadSignature);
        }
        serde_json::from_slice(&decoded(claims)?).map_err(|_| TokenError::BadSignature)
    }

    /// The public keys as a JSON web key set (`/openid/v1/jwks`).
    pub fn jwks(&self) -> Value {
        let keys: Vec<Value> = self
            .0
            .iter()
            .map(|key| {
                json!({
                    "use": "sig",
                    "kty": "EC",
                    "kid": key.id,
                    "crv": "P-256",
                    "alg": ALGORITHM,
                    "x": URL_SAFE_NO_PAD.encode(&key.point[1..33]),
                    "y": URL_SAFE_NO_PAD.encode(&key.point[33..]),
                })
            })
            .collect();
        json!({ "keys": keys })
    }
}

/// The document at `/.well-known/openid-configuration`: where the keys of `issuer` are.
pub fn openid_configuration(issuer: &str, jwks_uri: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    })
}

fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}
