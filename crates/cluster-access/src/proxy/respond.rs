//! Responses of the proxy itself, as a `Status`.

use api_meta::status::Status;
use http::{HeaderValue, Response, StatusCode, header};

use crate::body::{Body, full};

pub(super) fn status(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(full(status.to_json().to_string()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The message alone. Clients in Go show the body of a refused discovery only if it is plain text.
pub(super) fn text(status: &Status) -> Response<Body> {
    let mut response = self::status(status);
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response.map(|_| full(status.message.clone()))
}

/// A downstream 401 is about the server's credential, not the caller's, so the caller gets another
/// status.
pub(super) fn credential_refused() -> Status {
    Status::unavailable(
        "the cluster refuses the credential that its agent has reported; if this lasts, restart \
         the deployment \"cattle-cluster-agent\" in namespace \"cattle-system\" of the cluster",
    )
}
