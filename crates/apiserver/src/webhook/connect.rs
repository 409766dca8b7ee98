//! Connections to one webhook or aggregated server: TCP to its address, TLS verified against its
//! name.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tls_trust::{system_roots, trust_any_certificate, trust_roots};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{CertificateError, Error as TlsError, RootCertStore};

/// Why a connection failed, in the words of `net` and `crypto/tls` of Go.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// How the server is verified, and how the client identifies itself.
#[derive(Clone, Default)]
pub struct Trust {
    /// PEM; empty for the machine's authorities.
    pub ca_bundle: Vec<u8>,
    /// Accept any certificate.
    pub unverified: bool,
    /// Certificates and key for client authentication, in PEM.
    pub identity: Option<(Arc<str>, Arc<str>)>,
}

/// Connects to one address, whatever the URL of the request is.
#[derive(Clone)]
pub struct Connector {
    /// Host or address, and port.
    target: (Arc<str>, u16),
    server_name: ServerName<'static>,
    tls: TlsConnector,
}

impl Connector {
    /// Connects to `target` (host or address, and port), and verifies its certificate for
    /// `server_name`.
    ///
    /// # Errors
    /// No certificate can be for that name, the bundle has no certificate, or the identity does not
    /// decode.
    pub fn new(
        target: (String, u16),
        server_name: &str,
        trust: &Trust,
    ) -> Result<Self, ConnectError> {
        let builder = if trust.unverified {
            trust_any_certificate()
        } else if trust.ca_bundle.is_empty() {
            trust_roots(system_roots())
        } else {
            trust_roots(bundle_roots(&trust.ca_bundle)?)
        };
        let config = match &trust.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let unreadable = |error| ConnectError(format!("the client identity: {error}"));
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
                    .collect::<Result<_, _>>()
                    .map_err(unreadable)?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(unreadable)?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| ConnectError(error.to_string()))?
            }
        };
        let server_name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError(format!("{server_name:?} is no host name")))?;
        let target = (target.0.into(), target.1);
        Ok(Self { target, server_name, tls: TlsConnector::from(Arc::new(config)) })
    }

    async fn connect(self) -> Result<Stream, ConnectError> {
        let (host, port) = (&*self.target.0, self.target.1);
        let tcp = dial(host, port).await?;
        // Requests are small, and each is waited for.
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot turn off the delay of small packets");
        }
        let tls = self.tls.connect(self.server_name, tcp).await;
        tls.map(|tls| Stream(TokioIo::new(tls))).map_err(|error| ConnectError(tls_problem(&error)))
    }
}

/// Connects to the first address of `host` that accepts; the error is that of the first address.
async fn dial(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let lookup_error = |why: &str| ConnectError(format!("dial tcp: lookup {host}: {why}"));
    let found = tokio::net::lookup_host((host, port)).await;
    let mut addresses: Vec<_> = found.map_err(|error| lookup_error(&error.to_string()))?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let reason = match error.kind() {
                    ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                    _ => error.to_string(),
                };
                first.get_or_insert(ConnectError(format!("dial tcp {address}: {reason}")));
            }
        }
    }
    Err(first.unwrap_or_else(|| lookup_error("no such host")))
}

/// Certificates that do not decode are skipped, like in `AppendCertsFromPEM` of Go.
fn bundle_roots(pem: &[u8]) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        let text = "unable to load root certificates: unable to parse bytes as PEM block";
        return Err(ConnectError(text.to_owned()));
    }
    Ok(roots)
}

fn tls_problem(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    let Some(TlsError::InvalidCertificate(problem)) = inner else {
        return error.to_string();
    };
    let reason = match problem {
        // A wrong signature comes from another authority of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("certificate has expired or is not yet valid: {problem}")
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {reason}")
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Stream, ConnectError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// An encrypted connection.
pub struct Stream(TokioIo<TlsStream<TcpStream>>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
