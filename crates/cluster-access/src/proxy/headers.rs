//! Which headers pass the proxy, in either direction.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::{Frame, SizeHint};

use super::path::PREFIX;
use crate::body::{Body, BoxError};

/// Request headers that are sent downstream. Lower case, sorted. All others are dropped, above all
/// those that identify the caller, name the origin of the request, or control the connection.
const REQUEST: [&str; 27] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-type",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "kubectl-command",
    "kubectl-session",
    "last-event-id",
    // API servers accept no WebSocket watch without it.
    "origin",
    "pragma",
    "range",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-stream-protocol-version",
];

/// Clients that cannot set headers send their bearer token as one of the WebSocket protocols.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Response headers that are dropped. A service behind a cluster's API server responds under
/// Drover's origin: it must not set Drover's cookies, clear its storage or set policies of its
/// site.
const RESPONSE_DROPPED: [&str; 19] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "alt-svc",
    "clear-site-data",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "public-key-pins",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "te",
    "trailer",
];

/// Pages of services behind the API server run outside Drover's origin: no cookies, no storage.
const PAGE_POLICY: HeaderValue =
    HeaderValue::from_static("sandbox allow-downloads allow-forms allow-popups allow-scripts");

/// The headers of a downstream request, without the identity.
pub(super) fn request_headers(client: &HeaderMap) -> HeaderMap {
    let nominated = connection_headers(client);
    let mut headers = HeaderMap::new();
    for (name, value) in client {
        let is_listed = REQUEST.binary_search(&name.as_str()).is_ok();
        if !is_listed || nominated.contains(name) {
            continue;
        }
        if name == header::SEC_WEBSOCKET_PROTOCOL {
            if let Some(value) = without_bearer(value) {
                headers.append(name.clone(), value);
            }
        } else {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

/// Names listed in `Connection`: meant for the next hop only, which is this proxy.
fn connection_headers(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect()
}

fn without_bearer(value: &HeaderValue) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let others: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !protocol.starts_with(BEARER_PROTOCOL))
        .collect();
    if others.is_empty() { None } else { HeaderValue::from_str(&others.join(", ")).ok() }
}

/// The headers of a response that the client may see.
pub(super) fn filter_response(cluster: &str, downstream: &HeaderMap) -> HeaderMap {
    let nominated = connection_headers(downstream);
    let mut headers = HeaderMap::new();
    for (name, value) in downstream {
        let is_dropped = RESPONSE_DROPPED.binary_search(&name.as_str()).is_ok()
            || name == header::TRANSFER_ENCODING
            || name == header::UPGRADE
            || nominated.contains(name);
        if !is_dropped {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Some(location) = headers.get_mut(header::LOCATION)
        && location.as_bytes().starts_with(b"/")
    {
        // The API server's redirects are relative to the proxy's prefix.
        let path = String::from_utf8_lossy(location.as_bytes());
        let below = HeaderValue::from_str(&format!("{PREFIX}{cluster}{path}"));
        *location = below.unwrap_or_else(|_| HeaderValue::from_static("/"));
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    headers
}

/// A request body without its trailers.
pub(super) struct WithoutTrailers(pub(super) Body);

impl http_body::Body for WithoutTrailers {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.0).poll_frame(cx));
        Poll::Ready(match frame {
            // Trailers are the last frame.
            Some(Ok(frame)) if frame.is_trailers() => None,
            other => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_for_their_search() {
        assert!(REQUEST.is_sorted() && RESPONSE_DROPPED.is_sorted());
    }

    #[test]
    fn no_listed_header_can_carry_an_identity() {
        for name in REQUEST {
            let speaks = ["impersonate", "auth", "cookie", "remote", "forward", "user-info"];
            assert!(!speaks.iter().any(|part| name.contains(part)), "{name}");
        }
    }
}
