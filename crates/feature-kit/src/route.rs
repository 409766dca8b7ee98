//! HTTP paths that a feature serves itself, beside the APIs. No framework's types here.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};
use rest_view::audit::AuditNotes;

/// Default limit of the body of a request.
pub const BODY_MAX_BYTES: usize = 64 * 1024;

/// The response of a route.
pub type Response = http::Response<Bytes>;

/// The caller of a request, as authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Id of the user.
    pub user_id: String,
    /// Name of the token that was presented, if it was a token.
    pub token_id: Option<String>,
    /// Groups of the user, including the current role groups of the management API.
    pub groups: Vec<String>,
}

/// A request with its body, which is within the limit of the route.
pub struct Request {
    /// Method, URI and headers.
    pub parts: http::request::Parts,
    pub body: Bytes,
    /// `None` on public routes without credentials.
    pub caller: Option<Caller>,
    /// Where it comes from, if that is known.
    pub sender: Option<IpAddr>,
    /// What the audit event of the request says beside the request itself.
    pub audit: AuditNotes,
}

impl Request {
    /// A request from nowhere.
    pub fn new(parts: http::request::Parts, body: Bytes, caller: Option<Caller>) -> Self {
        Self { parts, body, caller, sender: None, audit: AuditNotes::default() }
    }
    /// The first value of a query parameter, not decoded.
    pub fn query(&self, name: &str) -> Option<&str> {
        let query = self.parts.uri.query()?;
        query.split('&').find_map(|pair| match pair.split_once('=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (pair == name).then_some(""),
        })
    }
    /// Scheme and authority that the client used, for links when no server URL is set.
    pub fn base_url(&self) -> String {
        let host = self.parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = self.parts.uri.authority().map(http::uri::Authority::as_str);
        format!("https://{}", host.or(authority).unwrap_or("localhost"))
    }
}

/// Serves one route.
pub trait Handler: Send + Sync + 'static {
    /// Handles one request. Failures are responses.
    fn handle(&self, request: Request) -> BoxFuture<'_, Response>;
}

impl<F, R> Handler for F
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(self(request))
    }
}

/// All requests whose path begins with a prefix.
#[derive(Clone)]
pub struct Route {
    /// Begins with `/`. The longest matching prefix wins; routes take precedence over the APIs.
    pub prefix: &'static str,
    /// Served to callers without credentials.
    pub public: bool,
    /// A larger body is refused with 413 before the handler is called.
    pub body_max_bytes: usize,
    /// Handles the requests.
    pub handler: Arc<dyn Handler>,
}

impl Route {
    /// A route that is open to callers without credentials.
    pub fn public(prefix: &'static str, handler: Arc<dyn Handler>) -> Self {
        Self { prefix, public: true, body_max_bytes: BODY_MAX_BYTES, handler }
    }
    /// A route that needs a valid credential; other requests get 401.
    pub fn authenticated(prefix: &'static str, handler: Arc<dyn Handler>) -> Self {
        Self { prefix, public: false, body_max_bytes: BODY_MAX_BYTES, handler }
    }
}

/// A plain-text response.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response {
    with_type(status, "text/plain; charset=utf-8", Bytes::from(body.into()))
}

/// A JSON response.
pub fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    with_type(status, "application/json", Bytes::from(body.to_string()))
}

fn with_type(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
