//! The HTTP client with which providers are called: no redirects, so that no secret goes where
//! another server sends it; bounded in time and in what it reads.

use std::time::Duration;

use futures::future::BoxFuture;
use http::header;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::de::DeserializeOwned;
use url::Url;

use super::ProviderError;
use crate::secret::Secret;

/// How long a request may take, from connecting to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest response. Key sets and lists of groups have some ten kilobytes.
const RESPONSE_MAX_BYTES: usize = 1024 * 1024;

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{}", chain(.0))]
    Request(#[from] reqwest::Error),
    #[error("the response has more than {RESPONSE_MAX_BYTES} bytes")]
    TooLarge,
    #[error("the response is malformed: {0}")]
    Malformed(#[from] http::Error),
}

/// An error with its causes: the first one alone says only that something failed.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// A client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpClient(reqwest::Client);

impl HttpClient {
    /// A client that trusts the authorities in `certificate`, or of this system if it is empty.
    /// With `private_key`, it presents `certificate` as its own to who requests one. Both are PEM.
    ///
    /// # Errors
    /// The certificate or the key is not readable.
    pub fn new(certificate: &str, private_key: &str) -> Result<Self, String> {
        let tls = tls(certificate, private_key)?;
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .timeout(TIMEOUT)
            .user_agent("drover");
        builder.build().map(Self).map_err(|error| chain(&error))
    }

    /// Sends a request and reads its response.
    ///
    /// # Errors
    /// See [`HttpError`]. A status that says failure is a response.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut response = self.0.execute(request.try_into()?).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > RESPONSE_MAX_BYTES {
                return Err(HttpError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let mut answer = http::Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            *headers = std::mem::take(response.headers_mut());
        }
        Ok(answer.body(body)?)
    }
}

impl HttpClient {
    /// Reads JSON of `service`, which errors name, with the token and further headers.
    ///
    /// # Errors
    /// The service does not respond. A status that says failure is a response.
    pub(super) async fn get(
        &self,
        service: &str,
        url: &str,
        token: Option<&Secret>,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, ProviderError> {
        let mut request = http::Request::get(url).header(header::ACCEPT, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let request =
            request.body(Vec::new()).map_err(|error| ProviderError::Unavailable(error.to_string()));
        self.send(request?).await.map_err(|error| {
            ProviderError::Unavailable(format!("{service} does not respond: {error}"))
        })
    }
}

/// The object in a response of `service`.
///
/// # Errors
/// It is another one, or none.
pub(super) fn decode<T: DeserializeOwned>(
    service: &str,
    response: &HttpResponse,
) -> Result<T, ProviderError> {
    serde_json::from_slice(response.body()).map_err(|error| {
        ProviderError::Unavailable(format!("the response of {service} is not understood: {error}"))
    })
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = HttpError;
    type Future = BoxFuture<'c, Result<HttpResponse, HttpError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

fn tls(certificate: &str, private_key: &str) -> Result<ClientConfig, String> {
    let roots = match certificate.trim() {
        "" => tls_trust::system_roots(),
        pem => tls_trust::roots_from_pem(pem).map_err(|error| error.to_string())?,
    };
    let builder = tls_trust::trust_roots(roots);
    if private_key.trim().is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(private_key.as_bytes());
    let key = key.map_err(|error| format!("the private key is not readable: {error}"))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
}

/// A URL that no other host can read or change on the way.
///
/// # Errors
/// What it must be; goes after the name of the field.
pub(super) fn secure_url(text: &str) -> Result<Url, String> {
    if text.is_empty() {
        return Err("is empty; enter a URL that begins with https://".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        "http" if is_loopback => Ok(url),
        _ => Err("must begin with https://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_go_without_tls() {
        for (url, is_secure) in [
            ("https://idp.example", true),
            ("http://localhost:8080/x", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://127.0.0.1.example", false),
            ("http://idp.example", false),
            ("javascript:alert(1)", false),
            ("//idp.example", false),
        ] {
            assert_eq!(secure_url(url).is_ok(), is_secure, "{url}");
        }
    }
}
