//! HTTPS to one server: one reused connection, JSON bodies, limits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use crate::error::{CliError, Failure};
use crate::tls::{self, Trust};

/// Timeout of a connection and its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request and its whole response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest response body, in bytes.
const RESPONSE_SIZE_MAX: usize = 256 * 1024 * 1024;

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("connecting to \"{0}\": {1}")]
    Connect(String, std::io::Error),
    /// The server's certificate is not accepted.
    #[error("the certificate of \"{0}\" is not trusted: {1}")]
    Untrusted(String, String),
    #[error("no response from \"{0}\" within {1} s")]
    Timeout(String, u64),
    #[error("sending a request to \"{0}\": {1}")]
    Transport(String, String),
}

impl From<HttpError> for CliError {
    fn from(error: HttpError) -> Self {
        let hint = match &error {
            HttpError::Untrusted(url, _) => {
                format!("run \"drover login {url}\" to check its certificate authority again")
            }
            _ => "check that the server runs and that the URL is right".to_owned(),
        };
        CliError::new(Failure::Unreachable, error.to_string()).hint(hint)
    }
}

/// A response with its whole body.
pub struct HttpResponse {
    pub status: StatusCode,
    pub body: Bytes,
}

/// A client of one server.
pub struct Http {
    /// `https://host:port`.
    url: String,
    host: String,
    authority: String,
    port: u16,
    tls: Arc<ClientConfig>,
    /// `name:key`; empty to send none.
    token: String,
    idle: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Http {
    /// `url`: normalised by [`crate::config::normal_url`].
    pub fn new(url: &str, trust: &Trust, token: &str) -> Result<Self, CliError> {
        let uri: http::Uri = url
            .parse()
            .map_err(|error| CliError::usage(format!("\"{url}\" is not a URL: {error}")))?;
        let authority =
            uri.authority().ok_or_else(|| CliError::usage(format!("\"{url}\" has no host")))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            url: url.to_owned(),
            host: host.to_owned(),
            authority: authority.as_str().to_owned(),
            port: authority.port_u16().unwrap_or(443),
            tls: tls::client_config(trust)?,
            token: token.to_owned(),
            idle: Mutex::new(None),
        })
    }
    /// URL of the server, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A second client with a connection of its own. Requests of one client wait for each other.
    pub fn another(&self) -> Self {
        Self {
            url: self.url.clone(),
            host: self.host.clone(),
            authority: self.authority.clone(),
            port: self.port,
            tls: self.tls.clone(),
            token: self.token.clone(),
            idle: Mutex::new(None),
        }
    }

    /// Sends one request. Safe methods reuse the idle connection, and retry once over a new one if
    /// it is dead. Other methods are never retried, because the request could take effect twice.
    ///
    /// `path` begins with a slash. `body` is JSON, with PATCH a merge patch.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<HttpResponse, HttpError> {
        let round_trip = async {
            let mut idle = self.idle.lock().await;
            let request = || self.request(&method, path, body.as_deref());
            if method.is_safe()
                && let Some(mut sender) = idle.take()
                && sender.ready().await.is_ok()
                && let Ok(response) = self.round_trip(&mut sender, request()).await
            {
                *idle = Some(sender);
                return Ok(response);
            }
            let mut sender = self.connect().await?;
            let response = self.round_trip(&mut sender, request()).await?;
            *idle = Some(sender);
            Ok(response)
        };
        match tokio::time::timeout(RESPONSE_TIMEOUT, round_trip).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout(self.url.clone(), RESPONSE_TIMEOUT.as_secs())),
        }
    }

    fn request(&self, method: &Method, path: &str, body: Option<&str>) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::USER_AGENT, concat!("drover/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json");
        if !self.token.is_empty() {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {}", self.token))
                .unwrap_or_else(|_| header::HeaderValue::from_static("Bearer unusable"));
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        if body.is_some() {
            let kind = match *method {
                Method::PATCH => "application/merge-patch+json",
                _ => "application/json",
            };
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default().to_owned()));
        request.body(body).expect("paths are built of encoded segments")
    }

    async fn round_trip(
        &self,
        sender: &mut SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpResponse, HttpError> {
        let failed = |error: &dyn std::fmt::Display| {
            HttpError::Transport(self.url.clone(), error.to_string())
        };
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_SIZE_MAX).collect().await;
        let body = body.map_err(|error| failed(&error))?.to_bytes();
        Ok(HttpResponse { status, body })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, HttpError> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.open_connection()).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout(self.url.clone(), CONNECT_TIMEOUT.as_secs())),
        }
    }

    async fn open_connection(&self) -> Result<SendRequest<Full<Bytes>>, HttpError> {
        let failed = |error| HttpError::Connect(self.url.clone(), error);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let name = ServerName::try_from(self.host.clone())
            .map_err(|error| HttpError::Transport(self.url.clone(), error.to_string()))?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(name, stream).await.map_err(|error| {
            let cause = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
            match cause {
                Some(rustls::Error::InvalidCertificate(_)) => {
                    HttpError::Untrusted(self.url.clone(), error.to_string())
                }
                _ => HttpError::Connect(self.url.clone(), error),
            }
        })?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| HttpError::Transport(self.url.clone(), error.to_string()))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

#[cfg(test)]
mod tests;
