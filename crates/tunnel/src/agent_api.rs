//! The agent's HTTP API inside a session, version 1: the part that both sides must agree on.
//!
//! | Path | Response |
//! | --- | --- |
//! | `GET /v1/health` | [`Health`] |
//! | `GET /v1/version` | [`AgentVersion`] |
//! | `GET /v1/credentials` | endless JSON lines: a [`CredentialReport`] at once and at each change |
//!
//! Other paths are 404. A later version adds paths under `/v2`; unknown fields are ignored.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Path of [`Health`].
pub const PATH_HEALTH: &str = "/v1/health";
/// Path of [`AgentVersion`].
pub const PATH_VERSION: &str = "/v1/version";
/// Path of the stream of [`CredentialReport`]s.
pub const PATH_CREDENTIALS: &str = "/v1/credentials";

/// The response of [`PATH_HEALTH`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Byte streams open in this session.
    pub streams: usize,
    pub uptime_seconds: u64,
}

/// The response of [`PATH_VERSION`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentVersion {
    pub agent_version: String,
    /// See [`crate::limits::PROTOCOL_VERSION`].
    pub protocol: u32,
}

/// How the agent's own API server is reached, from inside the cluster. `Debug` leaves the token
/// out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiCredential {
    /// `host:port`, the only address that the agent dials.
    pub address: String,
    /// The CA of the API server, in PEM.
    pub ca_cert: String,
    /// Bearer token. It is short-lived: use that of the newest report.
    pub token: String,
}

/// A credential, or why the agent has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CredentialReport {
    Credential(ApiCredential),
    Trouble {
        /// For users, with what to do next.
        trouble: String,
    },
}

impl fmt::Debug for ApiCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiCredential")
            .field("address", &self.address)
            .field("ca_cert", &format_args!("{} bytes", self.ca_cert.len()))
            .field("token", &"[redacted]")
            .finish()
    }
}
