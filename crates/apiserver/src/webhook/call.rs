//! One call: a POST of JSON, with limits of time and size for the response.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::ClientConfig;
use super::connect::{ConnectError, Connector, Trust};

/// Bytes of the largest response that is read.
pub const RESPONSE_SIZE_MAX: usize = 16 * 1024 * 1024;
/// Concurrent calls of all webhooks together; later ones wait, and their timeout runs.
const CALLS_MAX: usize = 256;
/// Webhooks whose connections are pooled.
const CLIENTS_MAX: usize = 64;
/// Idle connections that are pooled for each webhook.
const IDLE_CONNECTIONS_MAX: usize = 4;
/// How long an idle connection is pooled.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Bytes of an unsuccessful response that errors contain.
const EXCERPT_MAX: usize = 1024;

/// Why a call failed. The texts are for clients of the server.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The `clientConfig` cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No response: the connection failed, or the timeout passed.
    #[error("Post \"{url}\": {reason}")]
    Failed { url: String, reason: String },
    /// A response that is empty or not 2xx.
    #[error("{0}")]
    Refused(String),
}

type HttpClient = Client<Connector, Full<Bytes>>;

/// What identifies a connection pool: the `clientConfig`, and the address that it resolves to at
/// present.
type ClientKey = (ClientConfig, (String, u16));

/// Calls webhooks, and pools their connections. Costs nothing before the first call.
pub struct WebhookClient {
    clients: Mutex<BTreeMap<ClientKey, HttpClient>>,
    permits: Semaphore,
}

impl Default for WebhookClient {
    fn default() -> Self {
        Self { clients: Mutex::default(), permits: Semaphore::new(CALLS_MAX) }
    }
}

impl WebhookClient {
    /// Posts `body` to the webhook of `config`, and returns the body of the 2xx response.
    ///
    /// - `target`: resolves host and port to connect to; its error is the reason of the failure.
    ///
    /// # Errors
    /// No response within `timeout`, a response above [`RESPONSE_SIZE_MAX`] bytes, or any other
    /// failure.
    pub async fn post(
        &self,
        target: impl Future<Output = Result<(String, u16), String>>,
        config: &ClientConfig,
        timeout: Duration,
        body: Bytes,
    ) -> Result<Bytes, CallError> {
        let url = format!("{}?timeout={}s", config.url(), timeout.as_secs());
        let failed = |reason: String| CallError::Failed { url: url.clone(), reason };
        let call = async {
            let _permit =
                self.permits.acquire().await.map_err(|error| failed(error.to_string()))?;
            let target = target.await.map_err(failed)?;
            let client = self.client(config, target)?;
            let request = Request::builder()
                .method(Method::POST)
                .uri(&url)
                .header(ACCEPT, "application/json")
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(body))
                .map_err(|error| CallError::Unusable(error.to_string()))?;
            let sent = client.request(request).await;
            let (parts, body) = sent.map_err(|error| failed(reason(&error)))?.into_parts();
            let bytes = Limited::new(body, RESPONSE_SIZE_MAX).collect().await;
            let bytes = bytes.map_err(|error| failed(reason(&*error)))?.to_bytes();
            let media = parts.headers.get(CONTENT_TYPE);
            let media = media.and_then(|media| media.to_str().ok()).unwrap_or_default();
            if !parts.status.is_success() {
                return Err(CallError::Refused(refusal(parts.status, media, &bytes)));
            }
            if bytes.is_empty() {
                let code = parts.status.as_u16();
                return Err(CallError::Refused(format!(
                    "0-length response with status code: {code} and content type: {media}"
                )));
            }
            Ok(bytes)
        };
        let response = tokio::time::timeout(timeout, call).await;
        response.unwrap_or_else(|_| Err(failed("context deadline exceeded".to_owned())))
    }

    fn client(
        &self,
        config: &ClientConfig,
        target: (String, u16),
    ) -> Result<HttpClient, CallError> {
        let key = (config.clone(), target);
        if let Some(client) = self.clients.lock().get(&key) {
            return Ok(client.clone());
        }
        let unusable = |error: ConnectError| CallError::Unusable(error.0);
        let (host, _) = config.host_and_port().map_err(CallError::Unusable)?;
        let ca_bundle = config.ca_bundle.clone();
        let trust = Trust { ca_bundle, unverified: false, identity: None };
        let connector = Connector::new(key.1.clone(), &host, &trust).map_err(unusable)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX {
            clients.pop_first();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// The innermost error has the reason; the outer ones only say that something failed.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

/// The error of a response other than 2xx, in the words of client-go.
fn refusal(code: StatusCode, media: &str, body: &[u8]) -> String {
    let status: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let returned_status = status.as_ref().filter(|status| status["kind"] == "Status");
    if let Some(message) = returned_status.and_then(|status| status["message"].as_str()) {
        return message.to_owned();
    }
    let text = match media.starts_with("text/") {
        true => String::from_utf8_lossy(&body[..body.len().min(EXCERPT_MAX)]),
        false => "unknown".into(),
    };
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text.into_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        500.. => format!(
            "an error on the server ({:?}) has prevented the request from succeeding",
            text.trim()
        ),
        code => format!(
            "the server responded with the status code {code} but did not return more \
             information: {}",
            text.trim()
        ),
    }
}
