//! Requests to a service outside that tells identities, over HTTPS, within limits.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::webhook::{Connector, Trust};

/// Largest answer that is read, in bytes.
const ANSWER_SIZE_MAX: usize = 4 * 1024 * 1024;
/// A client of ours waits for its answer meanwhile.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a connection without a request is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Why there is no answer, for the log.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("\"{url}\" is not https://HOST[:PORT][/PATH]")]
    Url { url: String },
    #[error("cannot connect to \"{url}\": {reason}")]
    Unusable { url: String, reason: String },
    #[error("no answer of \"{url}\": {reason}")]
    Failed { url: String, reason: String },
    #[error("\"{url}\" answered {code}")]
    Refused { url: String, code: StatusCode },
    #[error("the answer of \"{url}\" is not usable: {reason}")]
    Answer { url: String, reason: String },
}

impl RemoteError {
    /// Whether the same request may have an answer a moment later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Failed { .. } => true,
            Self::Refused { code, .. } => {
                code.is_server_error() || *code == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

/// One URL. It does not follow redirects.
pub(super) struct Remote {
    url: Uri,
    client: Client<Connector, Full<Bytes>>,
}

impl Remote {
    /// Believes the authorities of `ca_pem`; those of the machine when it is empty.
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

    pub(super) async fn get(&self) -> Result<Bytes, RemoteError> {
        self.send(Method::GET, None, Bytes::new()).await
    }

    /// Posts JSON; `authorization` goes into the header of that name.
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
            let answer = self.client.request(request).await;
            let (parts, body) = answer.map_err(|error| failed(innermost(&error)))?.into_parts();
            if !parts.status.is_success() {
                return Err(RemoteError::Refused { url: url.clone(), code: parts.status });
            }
            let bytes = Limited::new(body, ANSWER_SIZE_MAX).collect().await;
            Ok(bytes.map_err(|error| failed(innermost(&*error)))?.to_bytes())
        };
        let answered = tokio::time::timeout(ANSWER_WAIT_MAX, exchange).await;
        answered
            .unwrap_or_else(|_| Err(failed(format!("none within {} s", ANSWER_WAIT_MAX.as_secs()))))
    }

    pub(super) fn unusable(&self, reason: impl ToString) -> RemoteError {
        RemoteError::Answer { url: self.url.to_string(), reason: reason.to_string() }
    }
}

/// The innermost error says what happened; those around it that something did.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
