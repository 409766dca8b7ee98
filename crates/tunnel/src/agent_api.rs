//! The agent's HTTP API inside a session, version 1: what both sides must agree on.
//!
//! | Path | Answer |
//! | --- | --- |
//! | `GET /v1/health` | [`Health`] |
//! | `GET /v1/version` | [`Version`] |
//! | `GET /v1/credentials` | endless lines of JSON, one [`CredentialReport`] now and at each change |
//!
//! Anything else is 404. A later version adds paths under `/v2`; unknown fields are ignored.

use std::fmt;

use serde::{Deserialize, Serialize};

pub const PATH_HEALTH: &str = "/v1/health";
pub const PATH_VERSION: &str = "/v1/version";
pub const PATH_CREDENTIALS: &str = "/v1/credentials";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Byte streams open in this session.
    pub streams: usize,
    pub uptime_seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub agent_version: String,
    pub protocol: u32,
}

/// How the agent's own API server is reached, from where the agent stands.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiCredential {
    /// `host:port`; the agent allows to dial exactly this.
    pub address: String,
    /// PEM.
    pub ca_cert: String,
    /// Bearer token. Short-lived: the newest report counts.
    pub token: String,
}

/// A credential, or why the agent has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CredentialReport {
    Credential(ApiCredential),
    Trouble {
        /// For people, with what to do next.
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
