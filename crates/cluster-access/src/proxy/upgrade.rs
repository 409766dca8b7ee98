//! Upgrades: `exec`, `attach`, `port-forward`, and WebSockets of services. After the switch they
//! are relayed as bytes.

use std::any::Any;
use std::sync::Arc;

use api_meta::status::Status;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tunnel::relay;

use super::headers::filter_response;
use super::path::is_proxied;
use super::respond;
use super::revocation::{Revocable, Revocation};
use crate::access::UpgradeResponse;
use crate::body::{Body, empty, wrap};

/// Protocols that clients of Kubernetes switch to. Others, such as `h2c`, are not allowed: a client
/// could send requests of its own inside them.
const WEBSOCKET: &str = "websocket";
const SPDY: &str = "SPDY/3.1";
/// Bytes moved at a time, per direction.
const RELAY_BUFFER_BYTES: usize = 32 * 1024;

/// In the extensions of a response after which bytes are relayed. It drops what it holds when the
/// stream ends.
#[derive(Clone, Default)]
pub struct Relay(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Relay {
    /// Holds a value until the upgraded stream ends, and then drops it. A second call replaces the
    /// first value.
    pub fn hold(&self, until_end: impl Any + Send) {
        *self.0.lock() = Some(Box::new(until_end));
    }
}

/// The upgrade that the client requested.
pub(super) struct RequestedUpgrade {
    protocol: &'static str,
    /// A WebSocket over HTTP/2 (RFC 8441): no `Upgrade` header, and 200 instead of 101.
    is_extended_connect: bool,
    is_proxied: bool,
}

/// The upgrade of this request, if it requests a supported one.
pub(super) fn requested_upgrade(request: &Request<Body>) -> Option<RequestedUpgrade> {
    let is_proxied = is_proxied(request.uri().path());
    if request.version() == Version::HTTP_2 {
        let protocol = request.extensions().get::<hyper::ext::Protocol>()?;
        let is_websocket = request.method() == Method::CONNECT && protocol.as_str() == WEBSOCKET;
        return is_websocket.then_some(RequestedUpgrade {
            protocol: WEBSOCKET,
            is_extended_connect: true,
            is_proxied,
        });
    }
    let headers = request.headers();
    if !tokens(headers, header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade")) {
        return None;
    }
    let protocol = tokens(headers, header::UPGRADE).find_map(|token| {
        [WEBSOCKET, SPDY].into_iter().find(|known| token.eq_ignore_ascii_case(known))
    })?;
    Some(RequestedUpgrade { protocol, is_extended_connect: false, is_proxied })
}

fn tokens(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

impl RequestedUpgrade {
    /// Requests the same upgrade downstream, over HTTP/1.1.
    pub(super) fn write_headers(&self, downstream: &mut Request<()>) {
        let headers = downstream.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(self.protocol));
        if self.is_extended_connect {
            let mut nonce = [0; 16];
            rand::fill(&mut nonce);
            let key = HeaderValue::from_str(&STANDARD.encode(nonce)).expect("base64 is a value");
            headers.insert(header::SEC_WEBSOCKET_KEY, key);
            *downstream.method_mut() = Method::GET;
        }
    }

    /// Converts the downstream response into the client's, and relays bytes if both sides switched.
    pub(super) fn finish(
        &self,
        cluster: &str,
        client: OnUpgrade,
        response: UpgradeResponse,
        revocation: &Revocation,
    ) -> Response<Body> {
        let UpgradeResponse { mut response, held, cut } = response;
        let revocation = revocation.clone().with(cut);
        let mut headers = filter_response(cluster, response.headers());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            if response.status() == StatusCode::UNAUTHORIZED && !self.is_proxied {
                return respond::status(&respond::credential_refused());
            }
            let status = response.status();
            let body = wrap(Revocable::new(wrap(response.into_body()), &revocation));
            let mut refused = Response::new(body);
            *refused.status_mut() = status;
            *refused.headers_mut() = headers;
            return refused;
        }
        let switched = tokens(response.headers(), header::UPGRADE)
            .any(|token| token.eq_ignore_ascii_case(self.protocol));
        if !switched {
            let text = "the cluster's API server switched to another protocol than requested";
            return respond::status(&Status::new(502, "BadGateway", text));
        }
        let downstream = hyper::upgrade::on(&mut response);
        let relay = Relay::default();
        let until_end = relay.clone();
        tokio::spawn(async move {
            let _until_end = until_end;
            let relaying = async {
                let (Ok(client), Ok(downstream)) = tokio::join!(client, downstream) else { return };
                carry(client, downstream).await;
            };
            tokio::select! {
                () = relaying => {}
                _ = revocation.wait_until_revoked() => {}
            }
            drop(held);
        });
        let mut response = Response::new(empty());
        response.extensions_mut().insert(relay);
        if self.is_extended_connect {
            headers.remove(header::SEC_WEBSOCKET_ACCEPT);
        } else {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static(self.protocol));
        }
        *response.headers_mut() = headers;
        response
    }
}

async fn carry(client: Upgraded, downstream: Upgraded) {
    let (client, downstream) = (TokioIo::new(client), TokioIo::new(downstream));
    let relayed = relay::relay(client, downstream, RELAY_BUFFER_BYTES).await;
    if let Err(error) = relayed {
        tracing::debug!(%error, "an upgraded stream broke");
    }
}
