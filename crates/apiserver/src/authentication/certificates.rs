//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! The chain is verified here, against its own CAs, whatever the TLS layer did: one listener may
//! accept certificates of several CAs with different meanings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use http::request;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tls_trust::{crypto_provider, roots_from_pem};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::attributes::{Authenticator, ClientCertificates, InvalidCredential, UserInfo};

/// The number of cached verifications. Without the cache each request of a connection would verify
/// again.
const CACHED_MAX: usize = 4096;

/// The maximum age of a cached verification: intermediate certificates expire, too.
const CACHE_AGE_MAX: Duration = Duration::from_secs(300);

/// The subject attribute with a user's UID.
const OID_UID: &str = "1.3.6.1.4.1.57683.2";

/// The key in the extra values of an identity that identifies its credential.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// No verifier can be created from the CA certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the client certificate authorities: {0}")]
pub struct AuthoritiesError(String);

/// Verifies certificate chains against one set of CAs. Caches verifications for a short time.
pub struct CertificateVerifier {
    verifier: ArcSwap<Arc<dyn ClientCertVerifier>>,
    cache: Mutex<HashMap<[u8; 32], Verified>>,
}

#[derive(Clone)]
struct Verified {
    subject: UserInfo,
    from: SystemTime,
    until: SystemTime,
}

impl CertificateVerifier {
    /// Creates a verifier that trusts the CA certificates in a PEM text.
    ///
    /// # Errors
    /// The text contains no certificate, or one that does not decode.
    pub fn new(authorities_pem: &str) -> Result<Self, AuthoritiesError> {
        Ok(Self {
            verifier: ArcSwap::from_pointee(verifier(authorities_pem)?),
            cache: Mutex::default(),
        })
    }

    /// Replaces the trusted CA certificates and clears the cache. Later verifications use only
    /// these.
    ///
    /// # Errors
    /// As [`CertificateVerifier::new`]; the trusted certificates then remain unchanged.
    pub fn replace(&self, authorities_pem: &str) -> Result<(), AuthoritiesError> {
        let verifier = verifier(authorities_pem)?;
        self.verifier.store(Arc::new(verifier));
        self.cache.lock().clear();
        Ok(())
    }

    /// Verifies a chain at the time `now` and returns the identity in the subject of its leaf. The
    /// name is empty when there is no common name.
    ///
    /// # Errors
    /// No trusted CA has issued the chain, it is not valid at this time or not for clients, or its
    /// subject cannot be decoded.
    pub fn verify(
        &self,
        chain: &ClientCertificates,
        now: SystemTime,
    ) -> Result<UserInfo, InvalidCredential> {
        let (leaf, rest) = chain.0.split_first().ok_or(InvalidCredential)?;
        let hash: [u8; 32] = Sha256::digest(leaf).into();
        if let Some(cached) = self.cache.lock().get(&hash)
            && cached.from <= now
            && now <= cached.until
        {
            return Ok(cached.subject.clone());
        }
        let verifier = self.verifier.load_full();
        let verified = verify(&**verifier, leaf, rest, &hash, now)?;
        let mut cache = self.cache.lock();
        // A verification against replaced CAs must not be cached.
        if Arc::ptr_eq(&verifier, &self.verifier.load_full()) {
            if cache.len() >= CACHED_MAX {
                cache.clear();
            }
            cache.insert(hash, verified.clone());
        }
        Ok(verified.subject)
    }
}

fn verifier(pem: &str) -> Result<Arc<dyn ClientCertVerifier>, AuthoritiesError> {
    let failed = |error: &dyn std::fmt::Display| AuthoritiesError(error.to_string());
    let roots = roots_from_pem(pem).map_err(|error| failed(&error))?;
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
        .build()
        .map_err(|error| failed(&error))
}

fn verify(
    verifier: &dyn ClientCertVerifier,
    leaf: &[u8],
    rest: &[Vec<u8>],
    hash: &[u8; 32],
    now: SystemTime,
) -> Result<Verified, InvalidCredential> {
    let intermediates: Vec<CertificateDer<'_>> =
        rest.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let since_epoch = now.duration_since(UNIX_EPOCH).map_err(|_| InvalidCredential)?;
    verifier
        .verify_client_cert(
            &CertificateDer::from(leaf),
            &intermediates,
            UnixTime::since_unix_epoch(since_epoch),
        )
        .map_err(|error| {
            tracing::debug!(%error, "client certificate refused");
            InvalidCredential
        })?;
    let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| InvalidCredential)?;
    let expires = u64::try_from(certificate.validity().not_after.timestamp())
        .map_err(|_| InvalidCredential)?;
    let expires = UNIX_EPOCH + Duration::from_secs(expires);
    Ok(Verified {
        subject: subject(&certificate, hash)?,
        from: now,
        until: expires.min(now + CACHE_AGE_MAX),
    })
}

fn subject(
    certificate: &X509Certificate<'_>,
    hash: &[u8; 32],
) -> Result<UserInfo, InvalidCredential> {
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        attribute.as_str().map(str::to_owned).map_err(|_| InvalidCredential)
    };
    let subject = certificate.subject();
    let name = subject.iter_common_name().last().map(text).transpose()?.unwrap_or_default();
    let groups = subject.iter_organization().map(text).collect::<Result<Vec<_>, _>>()?;
    let uid = subject.iter_attributes().find(|a| a.attr_type().to_id_string() == OID_UID);
    let uid = uid.map(text).transpose()?.unwrap_or_default();
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")])];
    Ok(UserInfo { name, uid, groups, extra: extra.into() })
}

/// Authenticates requests by their client certificate.
pub struct X509Authenticator {
    verifier: Arc<CertificateVerifier>,
}

impl X509Authenticator {
    /// Creates the authenticator with its trusted CAs.
    pub fn new(verifier: Arc<CertificateVerifier>) -> Self {
        Self { verifier }
    }
}

impl Authenticator for X509Authenticator {
    fn authenticate<'a>(
        &'a self,
        parts: &'a request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        let result = match parts.extensions.get::<ClientCertificates>() {
            None => Ok(None),
            Some(chain) => self
                .verifier
                .verify(chain, SystemTime::now())
                // A valid certificate without a common name identifies no user.
                .map(|user| (!user.name.is_empty()).then_some(user)),
        };
        Box::pin(std::future::ready(result))
    }
}
