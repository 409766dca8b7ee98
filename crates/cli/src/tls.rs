//! Which certificates to trust: the system's authorities', those of one given authority, or any, to
//! learn a server's authority.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tls_trust::{roots_from_pem, system_roots, trust_any_certificate, trust_roots};

use crate::error::{CliError, Failure};

/// Whose certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Authorities that the system trusts.
    System,
    /// Only this one, PEM.
    Authority(String),
    /// Any. Only to learn which authority the server has; no secret may be sent over it.
    AnyCertificate,
}

/// The TLS settings for `trust`.
pub fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, CliError> {
    let builder = match trust {
        Trust::System => trust_roots(system_roots()),
        Trust::Authority(pem) => trust_roots(roots_of(pem)?),
        Trust::AnyCertificate => trust_any_certificate(),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots_of(pem: &str) -> Result<RootCertStore, CliError> {
    roots_from_pem(pem)
        .map_err(|why| CliError::new(Failure::Other, format!("certificate authority: {why}")))
}
