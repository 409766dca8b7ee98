//! The address of a cluster's API server, and the credential for it.

use std::fmt;

use http::HeaderValue;
use tunnel::Address;

use crate::limits::CA_MAX_BYTES;

/// The bearer token for a downstream cluster. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl BearerToken {
    /// Any text; [`crate::ClusterAccess::set_endpoint`] checks it.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// `None` when the token cannot be a header value.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// How the API server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Plain TCP from this server.
    Direct,
    /// A stream through the cluster's agent.
    Tunnel,
}

/// How one cluster's API server is reached, and with which credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Resolved by the side that dials: the agent, or this server.
    pub address: Address,
    /// The CA of the API server's certificate, in PEM, at most 256 KiB. No other CA is trusted. If
    /// it is empty, on the direct route, those that this machine trusts.
    pub ca_pem: String,
    /// The name in that certificate, when it is not the address's host.
    pub server_name: Option<String>,
    pub token: BearerToken,
    pub route: Route,
}

/// Why an endpoint cannot be used. The texts name no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("the cluster's CA must be PEM certificates: {detail}")]
    Ca { detail: String },
    #[error("\"{name}\" must be a DNS name or an IP address")]
    ServerName { name: String },
    #[error("the cluster's token must be printable ASCII")]
    Token,
}

impl Endpoint {
    /// Whether everything but the token is equal. The token may change while connections are open.
    pub(crate) fn has_same_address(&self, other: &Self) -> bool {
        self.address == other.address
            && self.ca_pem == other.ca_pem
            && self.server_name == other.server_name
            && self.route == other.route
    }

    pub(crate) fn check_size(&self) -> Result<(), EndpointError> {
        if self.ca_pem.len() > CA_MAX_BYTES {
            let detail = format!("may not be more than {CA_MAX_BYTES} bytes");
            return Err(EndpointError::Ca { detail });
        }
        Ok(())
    }
}
