//! Requests to an external identity service over HTTPS, with limits.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::webhook::{Connector, Trust};

/// The size of a response, in bytes.
const RESPONSE_SIZE_MAX: usize = 4 * 1024 * 1024;
/// The deadline of a response, during which a client of this server waits.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long an idle connection is pooled.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Why there is no usable response, for the log.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The URL is no HTTPS URL.
    #[error("\"{url}\" is not https://HOST[:PORT][/PATH]")]
    Url { url: String },
    /// The CA certificates cannot be used.
    #[error("cannot connect to \"{url}\": {reason}")]
    Unusable { url: String, reason: String },
    /// The request failed or exceeded a limit.
    #[error("no response from \"{url}\": {reason}")]
    Failed { url: String, reason: String },
    /// The service responded with an error status.
    #[error("\"{url}\" returned {code}")]
    Refused { url: String, code: StatusCode },
    /// The response does not parse.
    #[error("the response of \"{url}\" is invalid: {reason}")]
    InvalidResponse { url: String, reason: String },
}

impl RemoteError {
    /// Whether a retry of the same request may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Failed { .. } => true,
            Self::Refused { code, .. } => {
                code.is_server_error() || *code == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

/// A service at one URL. Redirects are not followed.
pub(super) struct Remote {
    url: Uri,
    client: Client<Connector, Full<Bytes>>,
}

impl Remote {
    /// Creates the client. It trusts the CAs of `ca_pem`, or those of the system when that is
    /// empty.
    /// # Errors
    /// The URL is no HTTPS URL, or `ca_pem` cannot be used.
    pub(super) fn new(url: &str, ca_pem: &[u8]) -> Result<Self, RemoteError> {
        let bad = || RemoteError::Url { url: url.to_owned() };
        let parsed: Uri = url.parse().map_err(|_| bad())?;
        let host = parsed.host().filter(|_| parsed.scheme_str() == Some("https"));
        let host = host.ok_or_else(bad)?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let target = (host.clone(), parsed.port_u16().unwrap_or(443));
        let trust = Trust { ca_bundle: ca_pem.to_vec(), ..Trust::default() };
        let connector = Connector::new(target, &host, &trust)
            .map_err(|error| RemoteError::Unusable { url: url.to_owned(), reason: error.0 })?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .build(connector);
        Ok(Self { url: parsed, client })
    }

    /// Requests the URL.
    ///
    /// # Errors
    /// The service is not reachable, responds with an error status, or exceeds a limit.
    pub(super) async fn get(&self) -> Result<Bytes, RemoteError> {
        self.send(Method::GET, None, Bytes::new()).await
    }

    /// Posts JSON. `authorization` is the header of that name.
    ///
    /// # Errors
    /// The service is not reachable, responds with an error status, or exceeds a limit.
    pub(super) async fn post(
        &self,
        authorization: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<Bytes, RemoteError> {
        self.send(Method::POST, authorization, body).await
    }

    async fn send(
        &self,
        method: Method,
        authorization: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<Bytes, RemoteError> {
        let url = self.url.to_string();
        let failed = |reason: String| RemoteError::Failed { url: url.clone(), reason };
        let mut request = Request::builder()
            .method(method)
            .uri(self.url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json");
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| failed(error.to_string()))?;
        let exchange = async {
            let response = self.client.request(request).await;
            let (parts, body) = response.map_err(|error| failed(innermost(&error)))?.into_parts();
            if !parts.status.is_success() {
                return Err(RemoteError::Refused { url: url.clone(), code: parts.status });
            }
            let bytes = Limited::new(body, RESPONSE_SIZE_MAX).collect().await;
            Ok(bytes.map_err(|error| failed(innermost(&*error)))?.to_bytes())
        };
        let result = tokio::time::timeout(RESPONSE_WAIT_MAX, exchange).await;
        result.unwrap_or_else(|_| {
            Err(failed(format!("none within {} s", RESPONSE_WAIT_MAX.as_secs())))
        })
    }

    /// The error of a response that does not parse.
    pub(super) fn unusable(&self, reason: impl ToString) -> RemoteError {
        RemoteError::InvalidResponse { url: self.url.to_string(), reason: reason.to_string() }
    }
}

/// The innermost error, which says what happened.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
