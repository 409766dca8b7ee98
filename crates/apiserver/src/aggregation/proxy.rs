//! Proxies a request to an aggregated server, watches and upgrades included.

use http::header::{
    CONNECTION, EXPECT, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::AggregatedApi;
use super::remote::RequestBody;
use crate::attributes::{Revocation, UserInfo};
use crate::body::respond::{self, Body};
use crate::registry::Registry;
use crate::serve::PeerAddress;

/// The protocols that Kubernetes clients upgrade to. Other protocols are refused, since a client
/// could send its own requests through them.
const PROTOCOLS: [&str; 2] = ["websocket", "SPDY/3.1"];
/// Hop-by-hop headers, which are not forwarded.
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REMOTE_PREFIX: &str = "x-remote-";
/// Punctuation in a key of `X-Remote-Extra-…` that is not escaped.
const TOKEN_MARKS: &[u8] = b"!#$&'*+-.^_`|~";

/// Forwards an authorized request as `user` and returns the response. A failure becomes a 503, like
/// in kube-apiserver. The response ends when the user's [`Revocation`] is revoked.
pub(crate) async fn forward(
    registry: &Registry,
    aggregated: &AggregatedApi,
    parts: &request::Parts,
    user: &UserInfo,
    body: RequestBody,
) -> Response<Body> {
    if !aggregated.available {
        return unavailable("service unavailable");
    }
    let protocol = requested_protocol(&parts.headers);
    let client = parts.extensions.get::<OnUpgrade>().cloned();
    let revocation = parts.extensions.get::<Revocation>().cloned().unwrap_or_default();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::builder().method(&parts.method).uri(path).body(body);
    let mut request = request.expect("the method and path of a request make another");
    *request.headers_mut() = forwarded_headers(parts);
    set_user_headers(request.headers_mut(), user);
    if let Some(protocol) = protocol {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
    }
    match aggregated.remote.send(registry, request).await {
        Err(error) => unavailable(&format!("error trying to reach service: {error}")),
        Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            switch(response, client, protocol, revocation)
        }
        Ok(response) => {
            let (mut parts, body) = response.into_parts();
            remove_hop_by_hop(&mut parts.headers);
            Response::from_parts(parts, respond::relay(body, revocation))
        }
    }
}

fn unavailable(text: &str) -> Response<Body> {
    let mut response = respond::text(StatusCode::SERVICE_UNAVAILABLE, format!("{text}\n"));
    let headers = response.headers_mut();
    headers.insert("cache-control", HeaderValue::from_static("no-cache, private"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn forwarded_headers(parts: &request::Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    remove_hop_by_hop(&mut headers);
    // The HTTP client of the connection sets its own.
    headers.remove(HOST);
    headers.remove(EXPECT);
    if let Some(PeerAddress(peer)) = parts.extensions.get::<PeerAddress>()
        && let Ok(address) = HeaderValue::from_str(&peer.ip().to_string())
    {
        headers.append(FORWARDED_FOR, address);
    }
    headers
}

/// Removes hop-by-hop headers, including those that `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<String> = tokens(headers, CONNECTION).map(str::to_owned).collect();
    listed.iter().for_each(|name| drop(headers.remove(name.as_str())));
    for name in HOP_BY_HOP.into_iter().chain([KEEP_ALIVE, PROXY_CONNECTION]) {
        headers.remove(name);
    }
}

fn requested_protocol(headers: &HeaderMap) -> Option<&'static str> {
    let mut tokens_of = tokens(headers, CONNECTION);
    if !tokens_of.any(|token| token.eq_ignore_ascii_case("upgrade")) {
        return None;
    }
    tokens(headers, UPGRADE)
        .find_map(|token| PROTOCOLS.into_iter().find(|known| token.eq_ignore_ascii_case(known)))
}

fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// Copies bytes in both directions until one end closes or the user is revoked.
fn switch(
    mut response: Response<Incoming>,
    client: Option<OnUpgrade>,
    protocol: Option<&'static str>,
    revocation: Revocation,
) -> Response<Body> {
    let (Some(client), Some(protocol)) = (client, protocol) else {
        return unavailable(
            "error trying to reach service: it switched protocols without a request to do so",
        );
    };
    let server = hyper::upgrade::on(&mut response);
    tokio::spawn(async move {
        let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        tokio::select! {
            copied = tokio::io::copy_bidirectional(&mut client, &mut server) => {
                if let Err(error) = copied {
                    tracing::debug!(%error, "an upgraded stream broke");
                }
            }
            () = revocation.revoked() => {}
        }
    });
    let (mut parts, _) = response.into_parts();
    remove_hop_by_hop(&mut parts.headers);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    parts.headers.insert(UPGRADE, HeaderValue::from_static(protocol));
    Response::from_parts(parts, respond::empty())
}

/// Sets the headers of a user and removes those that a client sent.
pub(super) fn set_user_headers(headers: &mut HeaderMap, user: &UserInfo) {
    let stale: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(REMOTE_PREFIX)).cloned().collect();
    stale.into_iter().for_each(|name| drop(headers.remove(name)));
    let mut append = |name: String, value: &str| {
        match (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
            (Ok(name), Ok(value)) => drop(headers.append(name, value)),
            // The value has a control character. Without this part the user has fewer rights, never
            // more.
            _ => tracing::warn!("a part of an identity cannot be encoded in a header"),
        }
    };
    append("x-remote-user".to_owned(), &user.name);
    if !user.uid.is_empty() {
        append("x-remote-uid".to_owned(), &user.uid);
    }
    user.groups.iter().for_each(|group| append("x-remote-group".to_owned(), group));
    for (key, values) in &user.extra {
        let name = format!("x-remote-extra-{}", escape_key(key));
        values.iter().for_each(|value| append(name.clone(), value));
    }
}

/// Percent-encodes what a header name cannot contain.
fn escape_key(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || TOKEN_MARKS.contains(&byte);
    key.bytes()
        .map(|byte| match byte {
            byte if plain(byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
