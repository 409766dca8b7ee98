//! A raw HTTPS client: HTTP/1.1 and HTTP/2, any header, trailers, upgrades, and requests spelled
//! byte by byte. It knows nothing about Kubernetes and corrects nothing.
//!
//! Calls without `async` block, on a runtime of this module.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use ::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use testbed::evidence;
use tls_trust::{roots_from_pem, trust_roots};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Kubeconfig;

/// Longest wait for one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The body of a request, in memory.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    pub const BOTH: [Self; 2] = [Self::Http1, Self::Http2];

    fn alpn(self) -> Vec<u8> {
        match self {
            Self::Http1 => b"http/1.1".to_vec(),
            Self::Http2 => b"h2".to_vec(),
        }
    }
}

/// The runtime of all blocking calls and of background tasks of the tests.
///
/// # Panics
/// When the system refuses threads.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| Runtime::new().expect("a process that cannot start threads tests nothing"))
}

/// A server, the trusted authority, and the client's credentials.
#[derive(Clone)]
pub struct Client {
    authority: String,
    /// Prefix of every path, without a trailing slash.
    prefix: String,
    name: ServerName<'static>,
    roots: Arc<RootCertStore>,
    certificate: Option<Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>>,
    token: Option<String>,
    protocol: Protocol,
    source: Option<IpAddr>,
    is_plain: bool,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl HttpResponse {
    /// The body as text, with a mark for each invalid byte.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; `null` when it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as JSON, when the status is a success.
    ///
    /// # Errors
    /// Another status; the message has the body.
    pub fn success(&self) -> Result<Value> {
        if !self.status.is_success() {
            bail!("{}: {}", self.status, self.text());
        }
        Ok(self.json())
    }
}

impl Client {
    /// A client that trusts only `ca_pem`, sends no credentials, and uses HTTP/1.1.
    ///
    /// # Errors
    /// `url` is not an https URL, or `ca_pem` has no certificate.
    pub fn new(url: &str, ca_pem: &str) -> Result<Self> {
        Self::trusting(url, roots_from_pem(ca_pem).context("the authority")?)
    }

    fn trusting(url: &str, roots: RootCertStore) -> Result<Self> {
        let uri: ::http::Uri = url.parse().with_context(|| format!("'{url}' is not a URL"))?;
        let authority = uri.authority().with_context(|| format!("'{url}' names no host"))?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self {
            authority: match authority.port() {
                Some(_) => authority.to_string(),
                None => format!("{authority}:443"),
            },
            prefix: uri.path().trim_end_matches('/').to_owned(),
            name: ServerName::try_from(host).context("the host is no name")?,
            roots: Arc::new(roots),
            certificate: None,
            token: None,
            protocol: Protocol::Http1,
            source: None,
            is_plain: false,
        })
    }

    /// A client without TLS, over HTTP/1.1: for servers that listen only on this machine.
    ///
    /// # Errors
    /// `authority` is not `host:port`.
    pub fn plain(authority: &str) -> Result<Self> {
        let mut client = Self::trusting(&format!("https://{authority}"), RootCertStore::empty())?;
        client.is_plain = true;
        Ok(client)
    }

    /// A client as the user of the kubeconfig.
    ///
    /// # Errors
    /// Like [`Client::new`]; or its certificate cannot be read.
    pub fn of(kubeconfig: &Kubeconfig) -> Result<Self> {
        let mut client = Self::new(&kubeconfig.server, &kubeconfig.ca_pem)?;
        client.token.clone_from(&kubeconfig.token);
        if let Some((certificate, key)) = &kubeconfig.certificate {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let chain = chain.collect::<Result<Vec<_>, _>>().context("certificate")?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).context("client key")?;
            client.certificate = Some(Arc::new((chain, key)));
        }
        Ok(client)
    }

    /// Sends a bearer token.
    #[must_use]
    pub fn bearer(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Sends no credentials.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self { certificate: None, token: None, ..self.clone() }
    }

    /// Uses `protocol` from now on.
    #[must_use]
    pub fn over(&self, protocol: Protocol) -> Self {
        Self { protocol, ..self.clone() }
    }

    /// Connects from this address of the machine.
    #[must_use]
    pub fn from(&self, source: IpAddr) -> Self {
        Self { source: Some(source), ..self.clone() }
    }

    /// The `/prefix` of its URL, which raw requests must include themselves.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// # Errors
    /// There was no response.
    pub fn get(&self, path: &str) -> Result<HttpResponse> {
        self.call(Method::GET, path, Bytes::new())
    }

    /// # Errors
    /// There was no response.
    pub fn delete(&self, path: &str) -> Result<HttpResponse> {
        self.call(Method::DELETE, path, Bytes::new())
    }

    /// # Errors
    /// There was no response.
    pub fn post(&self, path: &str, body: &Value) -> Result<HttpResponse> {
        self.call(Method::POST, path, Bytes::from(body.to_string()))
    }

    /// # Errors
    /// There was no response.
    pub fn put(&self, path: &str, body: &Value) -> Result<HttpResponse> {
        self.call(Method::PUT, path, Bytes::from(body.to_string()))
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// One request with a JSON body, on a connection of its own.
    ///
    /// # Errors
    /// There was no response.
    pub fn call(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<HttpResponse> {
        let body = body.into();
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        self.send(request.body(Full::new(body).boxed_unsync())?)
    }

    /// One request, on a connection of its own. Its URI is a path.
    ///
    /// # Errors
    /// There was no response.
    pub fn send(&self, request: Request<Body>) -> Result<HttpResponse> {
        let call = format!("{} https://{}{}", request.method(), self.authority, request.uri());
        let answer = runtime().block_on(async { self.connect().await?.send(request).await });
        let result = match &answer {
            Ok(answer) if answer.status.is_success() => answer.status.to_string(),
            Ok(answer) => format!("{}: {}", answer.status, answer.text()),
            Err(cause) => format!("{cause:#}"),
        };
        evidence::record_call(&call, &result);
        answer
    }

    /// Writes `bytes` on a connection of its own and returns the raw response; of a protocol
    /// switch, the head.
    ///
    /// # Errors
    /// The connection failed, or there was no response.
    pub fn exchange(&self, bytes: &[u8]) -> Result<String> {
        let exchange = async {
            let mut stream = self.over(Protocol::Http1).handshake().await?;
            // A server may respond and close before everything is written.
            let written = stream.write_all(bytes).await;
            let _ = stream.flush().await;
            let mut seen = Vec::new();
            let mut chunk = vec![0; 16 * 1024];
            loop {
                match stream.read(&mut chunk).await {
                    Ok(0) => break,
                    Ok(count) => seen.extend_from_slice(&chunk[..count]),
                    Err(_) if !seen.is_empty() => break,
                    Err(cause) => return Err(cause).context("nothing came back"),
                }
                if is_whole(&seen) {
                    break;
                }
            }
            if seen.is_empty() {
                written.context("cannot write the request")?;
                bail!("the connection was closed without a response");
            }
            Ok(String::from_utf8_lossy(&seen).into_owned())
        };
        runtime().block_on(async {
            tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await.context("no response in time")?
        })
    }

    /// A connection for any number of requests.
    ///
    /// # Errors
    /// The server is unreachable or not trusted.
    pub async fn connect(&self) -> Result<Connection> {
        if self.is_plain {
            self.begin(self.reach().await?).await
        } else {
            self.begin(self.handshake().await?).await
        }
    }

    async fn begin(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Connection> {
        let stream = TokioIo::new(stream);
        let sender = match self.protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection.with_upgrades());
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        };
        Ok(Connection { sender, client: self.clone() })
    }

    /// The head of a GET over HTTP/1.1 for the connection of [`Self::handshake`].
    #[must_use]
    pub fn head(&self, path: &str) -> String {
        let (prefix, authority) = (&self.prefix, &self.authority);
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        format!(
            "GET {prefix}{path} HTTP/1.1\r\nHost: {authority}\r\nAccept-Encoding: identity\r\n{token}\r\n"
        )
    }

    /// A connection on which nothing was sent, for tests that write every byte.
    ///
    /// # Errors
    /// The server is unreachable or not trusted.
    pub async fn handshake(&self) -> Result<TlsStream<TcpStream>> {
        let tcp = self.reach().await?;
        let connector = TlsConnector::from(Arc::new(self.tls()?));
        let stream = connector.connect(self.name.clone(), tcp).await;
        stream.with_context(|| format!("no TLS with '{}'", self.authority))
    }

    async fn reach(&self) -> Result<TcpStream> {
        let tcp = match self.source {
            None => TcpStream::connect(&self.authority).await,
            Some(source) => {
                let socket = TcpSocket::new_v4()?;
                socket.bind(SocketAddr::new(source, 0))?;
                let mut addresses = lookup_host(&self.authority).await?;
                let address = addresses.find(SocketAddr::is_ipv4);
                socket.connect(address.context("the server has no IPv4 address")?).await
            }
        };
        let tcp = tcp.with_context(|| format!("cannot reach '{}'", self.authority))?;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }

    fn tls(&self) -> Result<ClientConfig> {
        let builder = trust_roots(Arc::clone(&self.roots));
        let mut tls = match &self.certificate {
            Some(pair) => builder.with_client_auth_cert(pair.0.clone(), pair.1.clone_key())?,
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![self.protocol.alpn()];
        Ok(tls)
    }
}

/// Whether a response of HTTP/1.1 is complete, if its head has its length.
fn is_whole(seen: &[u8]) -> bool {
    let text = String::from_utf8_lossy(seen);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if head.starts_with("HTTP/1.1 101") {
        return true;
    }
    let value = |name: &str| {
        let mut headers = head.lines().filter_map(|line| line.split_once(':'));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    match value("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => value("transfer-encoding").is_some() && body.ends_with("0\r\n\r\n"),
    }
}

enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

/// An open connection; requests are sequential.
pub struct Connection {
    sender: Sender,
    client: Client,
}

impl Connection {
    /// Sends a request and reads the whole response. Its URI is a path; host and token are added
    /// when they are missing.
    ///
    /// # Errors
    /// There was no response.
    pub async fn send(&mut self, request: Request<Body>) -> Result<HttpResponse> {
        let exchange = async {
            let response = self.begin(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.context("the response broke off")?.to_bytes();
            Ok(HttpResponse { status: parts.status, headers: parts.headers, body })
        };
        tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await.context("no response in time")?
    }

    /// A GET; returns the number of bytes of the response, which is not stored.
    ///
    /// # Errors
    /// There was no response, or another status than 200.
    pub async fn measure(&mut self, path: &str) -> Result<usize> {
        let request = Request::builder().uri(path).body(empty())?;
        let response = self.begin(request).await?;
        let status = response.status();
        let mut body = response.into_body();
        if status != StatusCode::OK {
            let text = body.collect().await?.to_bytes();
            bail!("'{path}' returned {status}: {}", String::from_utf8_lossy(&text));
        }
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            size += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(size)
    }

    /// A GET with a streamed response. The connection must live until its end.
    ///
    /// # Errors
    /// There was no response.
    pub async fn stream(&mut self, path: &str) -> Result<::http::Response<Incoming>> {
        self.response(Request::builder().uri(path).body(empty())?).await
    }

    /// Sends a request and returns the response once its head has arrived. The connection must live
    /// until the end of the body.
    ///
    /// # Errors
    /// There was no response.
    pub async fn response(&mut self, request: Request<Body>) -> Result<::http::Response<Incoming>> {
        tokio::time::timeout(RESPONSE_TIMEOUT, self.begin(request))
            .await
            .context("no response in time")?
    }

    async fn begin(&mut self, mut request: Request<Body>) -> Result<::http::Response<Incoming>> {
        let client = &self.client;
        let path = format!("{}{}", client.prefix, request.uri());
        let headers = request.headers_mut();
        if let Some(token) = &client.token
            && !headers.contains_key(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}"))?);
        }
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                if !headers.contains_key(HOST) {
                    headers.insert(HOST, HeaderValue::try_from(&client.authority)?);
                }
                *request.uri_mut() = path.parse()?;
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => {
                *request.uri_mut() = format!("https://{}{path}", client.authority).parse()?;
                *request.version_mut() = Version::HTTP_2;
                sender.ready().await?;
                sender.send_request(request).await
            }
        };
        response.context("no response")
    }
}

/// An empty body.
#[must_use]
pub fn empty() -> Body {
    Full::new(Bytes::new()).boxed_unsync()
}

/// A body of these bytes.
#[must_use]
pub fn body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body with trailers. Over HTTP/1.1 they are only sent when announced.
#[must_use]
pub fn with_trailers(bytes: impl Into<Bytes>, trailers: HeaderMap) -> Body {
    Full::new(bytes.into()).with_trailers(async { Some(Ok(trailers)) }).boxed_unsync()
}
