//! Single GET requests, over plain HTTP or TLS with a client certificate: enough to probe whether a
//! component is ready. Not a Kubernetes client.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;
use tls_trust::{roots_from_pem, trust_roots};

use crate::Error;
use crate::certificates::Issued;

/// Longest wait for one response; the next poll follows anyway.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The rest of a longer response is not read.
const RESPONSE_SIZE_MAX: u64 = 64 * 1024;

/// Probes the components on one address.
pub(crate) struct Probe {
    address: Ipv4Addr,
    tls: Arc<ClientConfig>,
}

impl Probe {
    /// A probe of `address` that trusts `ca_pem` and presents `client`.
    pub(crate) fn new(address: Ipv4Addr, ca_pem: &str, client: &Issued) -> Result<Self, Error> {
        let failed = |why: &dyn Display| Error::Tls(rustls::Error::General(why.to_string()));
        let unreadable = |error: pem::Error| failed(&error);
        let roots = roots_from_pem(ca_pem).map_err(|error| failed(&error))?;
        let certificate = CertificateDer::from_pem_slice(client.certificate_pem.as_bytes())
            .map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(client.key_pem.as_bytes()).map_err(unreadable)?;
        let tls =
            trust_roots(roots).with_client_auth_cert(vec![certificate], key).map_err(Error::Tls)?;
        Ok(Self { address, tls: Arc::new(tls) })
    }

    /// Whether `GET http://ADDRESS:port/path` returns 200; the error is what was observed instead.
    pub(crate) fn http(&self, port: u16, path: &str) -> Result<(), String> {
        require_ok(self.connect(port).and_then(|stream| exchange(stream, path))).map(drop)
    }

    /// Whether `GET https://ADDRESS:port/path` returns 200; the error is what was observed instead.
    pub(crate) fn https(&self, port: u16, path: &str) -> Result<(), String> {
        require_ok(self.get(port, path)).map(drop)
    }

    /// The JSON response of `GET https://ADDRESS:port/path`; the error is what was observed
    /// instead.
    pub(crate) fn json(&self, port: u16, path: &str) -> Result<Value, String> {
        let body = require_ok(self.get(port, path))?;
        serde_json::from_str(&body).map_err(|cause| cause.to_string())
    }

    fn get(&self, port: u16, path: &str) -> std::io::Result<String> {
        let name = ServerName::IpAddress(self.address.into());
        let session =
            ClientConnection::new(Arc::clone(&self.tls), name).map_err(std::io::Error::other)?;
        exchange(StreamOwned::new(session, self.connect(port)?), path)
    }

    fn connect(&self, port: u16) -> std::io::Result<TcpStream> {
        let address = SocketAddr::from((self.address, port));
        let stream = TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(stream)
    }
}

fn exchange(mut stream: impl Read + Write, path: &str) -> std::io::Result<String> {
    // A response in HTTP/1.0 has a plain body and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    stream.flush()?;
    let mut response = Vec::new();
    // A server that closes without a TLS close_notify has still responded.
    let outcome = stream.take(RESPONSE_SIZE_MAX).read_to_end(&mut response);
    if response.is_empty() {
        outcome?;
    }
    Ok(String::from_utf8_lossy(&response).into_owned())
}

fn require_ok(response: std::io::Result<String>) -> Result<String, String> {
    let response = response.map_err(|cause| cause.to_string())?;
    let first = response.lines().next().unwrap_or("an empty response");
    if first.split(' ').nth(1) != Some("200") {
        return Err(first.to_owned());
    }
    let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}
