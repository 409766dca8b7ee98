//! TLS towards one API server: its own CA is trusted, or the machine's where it has none.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::ServerName;
use tls_trust::{roots_from_pem, system_roots, trust_roots};

use crate::endpoint::{Endpoint, EndpointError, Route};

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

impl Tls {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let roots = if endpoint.ca_pem.is_empty() && endpoint.route == Route::Direct {
            system_roots()
        } else {
            roots_from_pem(&endpoint.ca_pem)
                .map_err(|error| EndpointError::Ca { detail: error.to_string() })?
        };
        let mut requests = trust_roots(roots).with_no_client_auth();
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
