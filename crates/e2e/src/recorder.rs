//! A TLS server in front of a real API server. It records every request with its exact headers and
//! trailers, then forwards it unchanged, upgrades included.
//!
//! In front of a cluster's API server, it shows the identity that a downstream cluster receives.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::http::header::HOST;
use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tls_trust::{crypto_provider, roots_from_pem, trust_roots};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::agent::Downstream;
use crate::http::runtime;
use crate::wait::poll_until;

/// Longest wait for a request: it reaches the recorder before its response is returned.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
const RECORD_INTERVAL: Duration = Duration::from_millis(20);

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub version: Version,
    /// In the order of arrival per name, each value separate, names in lower case.
    pub headers: Vec<(String, String)>,
    pub trailers: Vec<(String, String)>,
}

impl Recorded {
    /// Headers and trailers that carry an identity: `Impersonate-…` and those of other proxies,
    /// sorted.
    #[must_use]
    pub fn identity(&self) -> Vec<(String, String)> {
        let all = self.headers.iter().chain(&self.trailers);
        let mut found: Vec<_> = all.filter(|(name, _)| is_identity(name)).cloned().collect();
        found.sort();
        found
    }

    /// The values of a header.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn is_identity(name: &str) -> bool {
    ["impersonate", "x-remote-", "x-forwarded-", "x-api-", "x-drover-"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[derive(Debug)]
struct RecorderState {
    upstream: String,
    name: ServerName<'static>,
    connector: Arc<ClientConfig>,
    seen: Mutex<Vec<Recorded>>,
}

/// A running recorder. It ends with the process.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<RecorderState>,
    downstream: Downstream,
}

type Outgoing = UnsyncBoxBody<Bytes, hyper::Error>;

impl Recorder {
    /// Listens on a free port and forwards to `cluster`.
    ///
    /// # Errors
    /// No certificate can be issued, or no port is free.
    pub fn in_front_of(cluster: &Downstream) -> Result<Self> {
        let roots = roots_from_pem(&cluster.ca_pem).context("authority of the cluster")?;
        let mut client = trust_roots(roots).with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];

        let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let ca_pem = issued.cert.pem();
        let key = PrivateKeyDer::from_pem_slice(issued.signing_key.serialize_pem().as_bytes())?;
        let mut server = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        let shared = Arc::new(RecorderState {
            upstream: format!("{}:{}", cluster.host, cluster.port),
            name: ServerName::try_from(cluster.host.clone())?,
            connector: Arc::new(client),
            seen: Mutex::default(),
        });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = runtime().block_on(TcpListener::bind(address))?;
        let port = listener.local_addr()?.port().to_string();
        let acceptor = TlsAcceptor::from(Arc::new(server));
        runtime().spawn(accept(listener, acceptor, Arc::clone(&shared)));
        Ok(Self { shared, downstream: Downstream { host: "127.0.0.1".to_owned(), port, ca_pem } })
    }

    /// The settings of an agent that uses the recorder as its API server.
    #[must_use]
    pub fn downstream(&self) -> &Downstream {
        &self.downstream
    }

    /// The only request whose path and query contain `mark`.
    ///
    /// # Errors
    /// There was none, or several.
    pub fn only(&self, mark: &str) -> Result<Recorded> {
        let found = poll_until(RECORD_TIMEOUT, RECORD_INTERVAL, || {
            let found = self.all(mark);
            if found.is_empty() { Err(()) } else { Ok(found) }
        });
        let mut found = found.unwrap_or_default();
        let one = found.pop().with_context(|| format!("no request with '{mark}' arrived"))?;
        anyhow::ensure!(found.is_empty(), "several requests with '{mark}' arrived: {found:?}");
        Ok(one)
    }

    /// Every request so far whose path and query contain `mark`.
    #[must_use]
    pub fn all(&self, mark: &str) -> Vec<Recorded> {
        let seen = lock(&self.shared.seen);
        seen.iter().filter(|one| one.path.contains(mark)).cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<RecorderState>) {
    loop {
        // A client that has disconnected must not end the recorder.
        let Ok((tcp, _)) = listener.accept().await else { continue };
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, hyper::Error>(answer(&shared, request).await) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(shared: &RecorderState, request: Request<Incoming>) -> Response<Outgoing> {
    pass_on(shared, request).await.unwrap_or_else(|cause| {
        let text = Full::new(Bytes::from(format!("recorder: {cause:#}")));
        let mut response = Response::new(text.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    })
}

async fn pass_on(
    shared: &RecorderState,
    mut request: Request<Incoming>,
) -> Result<Response<Outgoing>> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    lock(&shared.seen).push(Recorded {
        method: parts.method.to_string(),
        path: path.clone(),
        version: parts.version,
        headers: pairs(&parts.headers),
        trailers: body.trailers().map(pairs).unwrap_or_default(),
    });

    // Requests over HTTP/2 are forwarded over HTTP/1.1.
    parts.version = Version::HTTP_11;
    parts.uri = path.parse()?;
    parts.headers.insert(HOST, HeaderValue::try_from(&shared.upstream)?);
    let tcp = TcpStream::connect(&shared.upstream).await?;
    let tls = TlsConnector::from(Arc::clone(&shared.connector));
    let stream = tls.connect(shared.name.clone(), tcp).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    let request = Request::from_parts(parts, Full::new(body.to_bytes()));
    let mut response = sender.send_request(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upstream = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            if let (Ok(one), Ok(other)) = (upgrade.await, upstream.await) {
                let _ = copy_bidirectional(&mut TokioIo::new(one), &mut TokioIo::new(other)).await;
            }
        });
    }
    Ok(response.map(BodyExt::boxed_unsync))
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
