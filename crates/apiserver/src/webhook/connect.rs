//! Connections to one webhook: TCP to where it is, TLS to who it says it is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};

/// Why no connection came about, in the words of Go's `net` and `crypto/tls`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// Connects to one address, whatever URL is asked for.
#[derive(Clone)]
pub struct Connector {
    /// Host or address, and port.
    target: (Arc<str>, u16),
    server_name: ServerName<'static>,
    tls: TlsConnector,
}

impl Connector {
    /// `ca_bundle` is PEM; without one, the machine's authorities are believed.
    ///
    /// # Errors
    /// A host that no certificate can be for, or a bundle without a certificate.
    pub fn new(
        target: (String, u16),
        server_name: &str,
        ca_bundle: &[u8],
    ) -> Result<Self, ConnectError> {
        let roots = if ca_bundle.is_empty() { machine_roots() } else { bundle_roots(ca_bundle)? };
        let failed = |error: TlsError| ConnectError(error.to_string());
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server_name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError(format!("{server_name:?} is no host name")))?;
        let target = (target.0.into(), target.1);
        Ok(Self { target, server_name, tls: TlsConnector::from(Arc::new(config)) })
    }

    async fn connect(self) -> Result<Stream, ConnectError> {
        let (host, port) = (&*self.target.0, self.target.1);
        let tcp = TcpStream::connect((host, port)).await.map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                _ => error.to_string(),
            };
            ConnectError(format!("dial tcp {host}:{port}: {reason}"))
        })?;
        // Requests are small and each is waited for.
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot turn off the delay of small packets");
        }
        let tls = self.tls.connect(self.server_name, tcp).await;
        tls.map(|tls| Stream(TokioIo::new(tls))).map_err(|error| ConnectError(tls_problem(&error)))
    }
}

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

fn machine_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!(%error, "an authority of this machine cannot be used for webhooks");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

fn tls_problem(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    let Some(TlsError::InvalidCertificate(problem)) = inner else {
        return error.to_string();
    };
    let reason = match problem {
        // A signature that is wrong is of another authority of the same name.
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
