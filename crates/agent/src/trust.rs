//! Which server to trust: one whose CA has the checksum in the manifest, or one that the system's
//! CAs verify.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tls_trust::{
    ClientConfigBuilder, RootsError, pinned_roots, system_roots, trust_any_certificate, trust_roots,
};

use crate::call::{CallError, call, connect};
use crate::proxy::Proxies;
use crate::server_url::ServerUrl;

const CACERTS_PATH: &str = "/v3/settings/cacerts";

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("fetch the server's CA")]
    Fetch(#[source] CallError),
    #[error("fetch the server's CA: {CACERTS_PATH} responded {0}; is this address a Drover server")]
    Status(StatusCode),
    #[error(
        "the server \"{server}\" reports that it has no CA of its own, but the agent is configured with the \
         checksum {expected}; get a new import command from the server and apply it"
    )]
    Empty { server: String, expected: String },
    #[error(
        "the CA of \"{server}\" has the checksum {actual}, but the agent trusts only \
         {expected}; either the server's CA has changed (get a new import command from the server \
         and apply it), or something between here and the server pretends to be it"
    )]
    Checksum { server: String, expected: String, actual: String },
    #[error("the server's CA is not a list of PEM certificates: {0}")]
    Malformed(String),
    #[error("no CA certificates were found on this system; give --ca-checksum instead")]
    NoSystemRoots,
}

impl TrustError {
    /// Whether only a user can cure this, so that retries are slow.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Fetch(_) | Self::Status(_))
    }
}

/// Determines how to verify the server. With a checksum, this fetches the CA from the server.
pub(crate) async fn establish(
    server: &ServerUrl,
    ca_checksum: Option<&str>,
    proxies: &Proxies,
) -> Result<Arc<ClientConfig>, TrustError> {
    let roots = match ca_checksum {
        Some(expected) => fetch_ca(server, expected, proxies).await?,
        None => {
            let roots = Some(system_roots()).filter(|roots| !roots.is_empty());
            roots.ok_or(TrustError::NoSystemRoots)?
        }
    };
    Ok(Arc::new(over_http1(trust_roots(roots))))
}

fn over_http1(trust: ClientConfigBuilder) -> ClientConfig {
    let mut config = trust.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Fetches the CA without verifying the server: the checksum then verifies the CA.
async fn fetch_ca(
    server: &ServerUrl,
    expected: &str,
    proxies: &Proxies,
) -> Result<RootCertStore, TrustError> {
    #[derive(Deserialize)]
    struct Setting {
        #[serde(default)]
        value: String,
    }
    let name = server.tls_name().expect("checked when parsed");
    let tls = Arc::new(over_http1(trust_any_certificate()));
    let io = connect(server.host(), server.port(), name, &tls, proxies)
        .await
        .map_err(TrustError::Fetch)?;
    let request = Request::get(CACERTS_PATH)
        .header("accept", "application/json")
        .body(Full::<Bytes>::default())
        .expect("a constant path makes a request");
    let (status, body) = call(io, &server.authority(), request).await.map_err(TrustError::Fetch)?;
    if status != StatusCode::OK {
        return Err(TrustError::Status(status));
    }
    let setting: Setting =
        serde_json::from_slice(&body).map_err(|error| TrustError::Malformed(error.to_string()))?;
    let (server, expected) = (server.to_string(), expected.to_owned());
    if setting.value.trim().is_empty() {
        return Err(TrustError::Empty { server, expected });
    }
    pinned_roots(&setting.value, &expected).map_err(|error| match error {
        RootsError::Checksum { actual } => TrustError::Checksum { server, expected, actual },
        other => TrustError::Malformed(other.to_string()),
    })
}
