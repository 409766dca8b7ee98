//! Which servers a TLS client trusts: those of given roots, of roots with a known checksum, or any.
//!
//! [`trust_roots`] and [`trust_any_certificate`] begin a client configuration; the roots come from
//! [`roots_from_pem`], [`pinned_roots`] or [`system_roots`]. Every configuration verifies the
//! signatures of the handshake: the server has the key of the certificate that it presents. This is
//! not a part of `pki`, so that agents and the command line do not link what issues certificates.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs as provider, verify_tls12_signature,
    verify_tls13_signature,
};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

#[cfg(test)]
mod tests;

/// A client configuration that lacks only the client's own certificate, or that it has none.
pub type ClientConfigBuilder = ConfigBuilder<ClientConfig, WantsClientCert>;

/// Why a PEM text gives no roots.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error("no PEM certificate found")]
    Empty,
    #[error("{0}")]
    Pem(pem::Error),
    #[error("{0}")]
    Certificate(rustls::Error),
    #[error("the checksum is {actual}")]
    Checksum { actual: String },
}

/// The one crypto provider of all configurations.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(provider::default_provider())).clone()
}

/// Trusts servers whose certificate is valid now, for their name, and signed by one of `roots`.
/// Speaks TLS 1.2 and 1.3.
pub fn trust_roots(roots: impl Into<Arc<RootCertStore>>) -> ClientConfigBuilder {
    builder().with_root_certificates(roots)
}

/// Trusts any server, whatever its certificate, name and time are. Whoever is between client and
/// server can read and change everything: send no secret, unless the user requested this.
pub fn trust_any_certificate() -> ClientConfigBuilder {
    let algorithms = crypto_provider().signature_verification_algorithms;
    builder().dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate { algorithms }))
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for the default versions")
}

/// The roots of a PEM text. Text around the certificates is skipped.
///
/// # Errors
/// [`RootsError::Pem`] and [`RootsError::Certificate`] if any certificate does not decode;
/// [`RootsError::Empty`] if there is none.
pub fn roots_from_pem(pem: &str) -> Result<RootCertStore, RootsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.map_err(RootsError::Pem)?).map_err(RootsError::Certificate)?;
    }
    if roots.is_empty() { Err(RootsError::Empty) } else { Ok(roots) }
}

/// The roots of a PEM text from a source that is not trusted, if its [`ca_checksum`] is `checksum`.
///
/// # Errors
/// [`RootsError::Checksum`] for another checksum; otherwise like [`roots_from_pem`].
pub fn pinned_roots(pem: &str, checksum: &str) -> Result<RootCertStore, RootsError> {
    let actual = ca_checksum(pem);
    if actual != checksum {
        return Err(RootsError::Checksum { actual });
    }
    roots_from_pem(pem)
}

/// The roots that this system trusts. Logs those that cannot be used; empty if there are none.
/// Reads files: read them once, not per connection.
pub fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::info!(%error, "cannot read a certificate authority of this system");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}

/// The checksum by which agents pin an authority: SHA-256 of its PEM text with exactly one newline
/// at the end, in lower-case hexadecimal. Newlines at the end of `pem` do not matter.
pub fn ca_checksum(pem: &str) -> String {
    let text = format!("{}\n", pem.trim_end_matches(['\n', '\r']));
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
