//! HTTP paths that a feature answers itself, beside the APIs. No framework's types here.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header};

/// Largest body that a route takes unless it says otherwise.
pub const BODY_MAX_BYTES: usize = 64 * 1024;

pub type Response = http::Response<Bytes>;

/// Who asks, as authentication found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub user_id: String,
    /// Name of the token presented, when it was one.
    pub token_id: Option<String>,
    /// Those of their roles in the management API included, as of now.
    pub groups: Vec<String>,
}

/// A request with its body read, within the route's limit.
pub struct Request {
    pub parts: http::request::Parts,
    pub body: Bytes,
    /// Absent on public routes without credentials.
    pub caller: Option<Caller>,
}

impl Request {
    /// The first value of a query parameter, undecoded.
    pub fn query(&self, name: &str) -> Option<&str> {
        let query = self.parts.uri.query()?;
        query.split('&').find_map(|pair| match pair.split_once('=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (pair == name).then_some(""),
        })
    }
    /// Scheme and authority by which the client reached us, for links when no URL is set.
    pub fn base_url(&self) -> String {
        let host = self.parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = self.parts.uri.authority().map(http::uri::Authority::as_str);
        format!("https://{}", host.or(authority).unwrap_or("localhost"))
    }
}

/// Answers one route.
pub trait Handler: Send + Sync + 'static {
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
    /// Begins with `/`. The longest that fits wins; routes come before the APIs.
    pub prefix: &'static str,
    /// Open to callers without credentials.
    pub public: bool,
    /// A larger body is refused with 413 before the handler sees it.
    pub body_max_bytes: usize,
    pub handler: Arc<dyn Handler>,
}

impl Route {
    pub fn public(prefix: &'static str, handler: Arc<dyn Handler>) -> Self {
        Self { prefix, public: true, body_max_bytes: BODY_MAX_BYTES, handler }
    }
    pub fn authenticated(prefix: &'static str, handler: Arc<dyn Handler>) -> Self {
        Self { prefix, public: false, body_max_bytes: BODY_MAX_BYTES, handler }
    }
}

/// A plain-text answer.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response {
    with_type(status, "text/plain; charset=utf-8", Bytes::from(body.into()))
}

/// A JSON answer.
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
