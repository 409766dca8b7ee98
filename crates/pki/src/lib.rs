//! Certificates: a private authority, the certificates it issues, their files, and TLS
//! configurations.
//!
//! [`authority`] issues serving and client certificates with P-256 keys. [`files`] stores pairs of
//! certificate and key on disk and renews them. [`serving`] presents a pair to clients and reloads
//! a replaced pair without a restart. [`tls`] builds the rustls configurations. [`inspect`] reads
//! certificates. The crate gives names no meaning.

pub mod authority;
pub mod files;
pub mod inspect;
pub mod serving;
pub mod tls;

pub use authority::{CertificateAuthority, Issued};
pub use files::CertificateFiles;
pub use inspect::{CertificateInfo, fingerprint};
pub use serving::ServingCertificate;
pub use tls::{ClientCertificatePolicy, client_config, server_config};

use std::path::PathBuf;

/// A failed step, with its cause.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("could not issue the certificate for \"{subject}\"")]
    Issue { subject: String, source: rcgen::Error },
    #[error("\"{name}\" is no host name or address for a certificate")]
    Name { name: String, source: rcgen::Error },
    #[error("could not read the certificate or key of {what}: {reason}")]
    Parse { what: String, reason: String },
    #[error("the key in {key} does not belong to the certificate in {certificate}")]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("could not {step} {path}")]
    File { step: &'static str, path: PathBuf, source: std::io::Error },
    #[error("could not set up TLS")]
    Tls(#[from] rustls::Error),
    #[error("could not set up the check of client certificates")]
    ClientVerifier(#[from] rustls::server::VerifierBuilderError),
}

impl PkiError {
    fn parse(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Parse { what: what.into(), reason: reason.to_string() }
    }
}

#[cfg(test)]
mod tests;
