//! TLS towards one API server: only its own CA is trusted.

use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

use crate::endpoint::{Endpoint, EndpointError};

/// TLS sessions stored for resumption, per cluster: there are a thousand clusters with few
/// connections each.
const RESUMPTIONS: usize = 4;

/// Settings for both kinds of connections to an endpoint.
pub(crate) struct Tls {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(crate) requests: Arc<ClientConfig>,
    /// Offers HTTP/1.1 only, since HTTP/2 knows no `Upgrade`.
    pub(crate) upgrades: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())).clone()
}

impl Tls {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let bad = |detail: &dyn std::fmt::Display| EndpointError::Ca { detail: detail.to_string() };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(endpoint.ca_pem.as_bytes()) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            roots.add(certificate).map_err(|error| bad(&error))?;
        }
        if roots.is_empty() {
            return Err(bad(&"there is none"));
        }
        let mut requests = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        requests.resumption = Resumption::in_memory_sessions(RESUMPTIONS);
        let mut upgrades = requests.clone();
        requests.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        upgrades.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = endpoint.server_name.as_deref().unwrap_or(endpoint.address.host());
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| EndpointError::ServerName { name: name.to_owned() })?;
        Ok(Self { requests: Arc::new(requests), upgrades: Arc::new(upgrades), name })
    }
}
