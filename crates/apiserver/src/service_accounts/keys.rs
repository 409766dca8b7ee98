//! Keys for tokens: JSON web signatures with P-256 (ES256).

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo};

use crate::authentication::jwt::UnverifiedToken;

const ALGORITHM: Algorithm = Algorithm::ES256;

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
    private: EncodingKey,
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
        Ok(Self { private: EncodingKey::from_ec_der(der.secret_pkcs8_der()), public })
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
        let kid = Some(self.id().to_owned());
        let header = Header { typ: None, kid, ..Header::new(ALGORITHM) };
        encode(&header, claims, &self.private)
            .expect("the key was usable when it was read, and the system has randomness")
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
    key: DecodingKey,
}

impl VerifyKey {
    fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let (_, spki) =
            SubjectPublicKeyInfo::from_der(der).map_err(|error| KeyError(error.to_string()))?;
        let point = spki.subject_public_key.data;
        // 0x04, x and y: the format of P-256 points, and of no other usual curve.
        if point.len() != 65 || point[0] != 4 {
            return Err(KeyError("not a P-256 public key".to_owned()));
        }
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        Ok(Self { id, key: DecodingKey::from_ec_der(&point) })
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
        let token = UnverifiedToken::parse(token)
            .filter(|token| token.algorithm() == ALGORITHM)
            .ok_or(TokenError::Unrecognized)?;
        let is_named = |key: &VerifyKey| key.id == token.key_id();
        let is_known = self.0.iter().any(is_named);
        let mut keys = self.0.iter().filter(|key| !is_known || is_named(key));
        let claims = keys.find_map(|key| token.verify(ALGORITHM, &key.key));
        claims.map(Value::Object).ok_or(TokenError::BadSignature)
    }

    /// The public keys as a JSON web key set (`/openid/v1/jwks`).
    pub fn jwks(&self) -> Value {
        let keys = self.0.iter().map(|key| {
            let mut jwk = Jwk::from_decoding_key(&key.key, Some(ALGORITHM))
                .expect("the point has the format of P-256");
            jwk.common.public_key_use = Some(PublicKeyUse::Signature);
            jwk.common.key_id = Some(key.id.clone());
            jwk
        });
        json!(JwkSet { keys: keys.collect() })
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
