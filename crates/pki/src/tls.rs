//! TLS configurations for rustls, all on one crypto provider.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tls_trust::{crypto_provider, roots_from_pem, trust_roots};

use crate::PkiError;
use crate::authority::Issued;

/// Protocols of ALPN in the order of preference.
pub const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How a server treats client certificates.
#[derive(Clone, Debug)]
pub enum ClientCertificatePolicy {
    /// Requests none. Browsers never show a choice of certificates.
    None,
    /// Requests one, which is optional. A certificate that is expired or not signed by an authority
    /// of this PEM text ends the handshake.
    Verified { authorities_pem: String },
    /// Requests one, which is optional. The handshake proves only that the client has the key of
    /// its certificate: **the reader of the chain must verify it**. Like kube-apiserver, a server
    /// can then respond 401 to an expired certificate, and distinguish several authorities.
    Requested,
}

/// The configuration of a server that presents the certificate of `resolver` and speaks HTTP/2 and
/// HTTP/1.1 over TLS 1.2 and 1.3.
///
/// # Errors
/// [`PkiError::Parse`] and [`PkiError::ClientVerifier`] when the authorities do not decode or there
/// is none.
pub fn server_config(
    resolver: Arc<dyn ResolvesServerCert>,
    clients: &ClientCertificatePolicy,
) -> Result<ServerConfig, PkiError> {
    let provider = crypto_provider();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match clients {
        ClientCertificatePolicy::None => builder.with_no_client_auth(),
        ClientCertificatePolicy::Verified { authorities_pem } => {
            let roots = Arc::new(roots(authorities_pem)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .allow_unauthenticated()
                .build()?;
            builder.with_client_cert_verifier(verifier)
        }
        ClientCertificatePolicy::Requested => {
            let algorithms = provider.signature_verification_algorithms;
            builder.with_client_cert_verifier(Arc::new(PossessionOnly { algorithms }))
        }
    };
    let mut config = builder.with_cert_resolver(resolver);
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// The configuration of a client that trusts only the authorities of this PEM text, and presents
/// `identity` if there is one.
///
/// # Errors
/// [`PkiError::Parse`] when the authorities or the identity do not decode.
pub fn client_config(
    authorities_pem: &str,
    identity: Option<&Issued>,
) -> Result<ClientConfig, PkiError> {
    let builder = trust_roots(roots(authorities_pem)?);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())
                .map_err(|error| PkiError::parse("a client key", error))?;
            builder.with_client_auth_cert(certificates(&pair.certificate_pem)?, key)?
        }
    };
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let list: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| PkiError::parse("a PEM text", error))?;
    if list.is_empty() {
        return Err(PkiError::parse("a PEM text", "no certificate in it"));
    }
    Ok(list)
}

fn roots(pem: &str) -> Result<RootCertStore, PkiError> {
    roots_from_pem(pem).map_err(|error| PkiError::parse("a PEM text", error))
}

/// Accepts any certificate whose key the client has.
#[derive(Debug)]
struct PossessionOnly {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for PossessionOnly {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
