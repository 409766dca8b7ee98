//! Which server to trust: one whose CA has the checksum in the manifest, or one that the system's
//! CAs verify.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Deserialize;
use sha2::{Digest, Sha256};

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

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The TLS configuration that trusts exactly `roots`.
pub(crate) fn client_config(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

pub(crate) fn roots_from_pem(pem: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("there is none".to_owned()) } else { Ok(roots) }
}

/// Determines how to verify the server. With a checksum, this fetches the CA from the server.
pub(crate) async fn establish(
    server: &ServerUrl,
    ca_checksum: Option<&str>,
    proxies: &Proxies,
) -> Result<Arc<ClientConfig>, TrustError> {
    let roots = match ca_checksum {
        Some(expected) => {
            let pem = fetch_ca(server, expected, proxies).await?;
            roots_from_pem(&pem).map_err(TrustError::Malformed)?
        }
        None => system_roots()?,
    };
    let mut config = client_config(roots);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn system_roots() -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TrustError::NoSystemRoots) } else { Ok(roots) }
}

async fn fetch_ca(
    server: &ServerUrl,
    expected: &str,
    proxies: &Proxies,
) -> Result<String, TrustError> {
    #[derive(Deserialize)]
    struct Setting {
        #[serde(default)]
        value: String,
    }
    let name = server.tls_name().expect("checked when parsed");
    let tls = Arc::new(unverified());
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
    let actual = ca_checksum(&setting.value);
    if actual != expected {
        return Err(TrustError::Checksum { server, expected, actual });
    }
    Ok(setting.value)
}

/// SHA-256 of the PEM text, with one line end added when it has none, as in the manifest.
pub(crate) fn ca_checksum(pem: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(pem);
    if !pem.ends_with('\n') {
        hash.update("\n");
    }
    tunnel::key::hex(&hash.finalize())
}

/// Trusts any server: only to fetch a CA whose checksum is known beforehand.
fn unverified() -> ClientConfig {
    let mut config = client_config(RootCertStore::empty());
    config.dangerous().set_certificate_verifier(Arc::new(AnyServer(provider())));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
