//! The handshake of a WebSocket of one resource: `GET <resource>?NAME=true`.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use jiff::Timestamp;

use crate::error::ApiError;
use crate::route::{Route, RouteTarget, route};
use crate::sockets::Sockets;
use crate::types::context::{Caller, Context, Presentation};
use crate::types::registry::Registry;
use crate::types::socket::{ResourceSocket, SocketRequest};
use crate::types::urls::{Urls, query_pairs};

/// The socket that the URL names, and the path's route.
pub(crate) fn find(registry: &Registry, uri: &Uri) -> Option<(Route, ResourceSocket)> {
    let found = route(registry, uri.path())?;
    let RouteTarget::Resource { descriptor, .. } = &found.target else { return None };
    let query = query_pairs(uri.query()?);
    let is_named =
        |name: &str| query.iter().any(|(key, value)| key == name && value.as_str() == "true");
    let socket = descriptor.sockets.iter().find(|socket| is_named(&socket.name))?.clone();
    Some((found, socket))
}

/// Reads the resource as the caller and opens the socket.
///
/// # Errors
/// The caller may not see the resource, the resource has no such socket now, the request is no
/// handshake for one of its subprotocols, or a limit of sockets is reached.
pub(crate) async fn open(
    registry: &Registry,
    sockets: &Sockets,
    request: Request<()>,
    caller: &Caller,
    client: &kube::Client,
) -> Result<Response<Bytes>, ApiError> {
    let unknown = || ApiError::not_found(format!("no such path \"{}\"", request.uri().path()));
    let (found, socket) = find(registry, request.uri()).ok_or_else(unknown)?;
    let bound = caller.token_cluster.as_deref();
    if caller.is_anonymous() || bound.is_some_and(|id| !found.is_within(registry, id)) {
        return Err(ApiError::unauthenticated());
    }
    let RouteTarget::Resource { descriptor, id } = &found.target else { return Err(unknown()) };
    let urls = found.urls(Urls::of_request(request.headers(), request.uri()));
    let now = Timestamp::now();
    let presentation = Presentation { caller, urls: &urls, registry, now, action_links: false };
    let headers = HeaderMap::new();
    let context = Context::new(presentation, client, &headers, &[]);
    let object = descriptor.store.get(&context, &descriptor.key_of(id)?).await?;
    if !socket.is_available(&object, caller) {
        let text = format!("\"{}\" is not available for {} \"{id}\"", socket.name, descriptor.id);
        return Err(ApiError::not_found(text));
    }
    let protocol = protocol_of(&socket, request.headers())?;
    let session =
        socket.handler.prepare(SocketRequest { context: &context, object: &object, protocol })?;
    let mut response = sockets.open(request, &caller.user_id, session)?;
    let name = HeaderValue::from_static(protocol);
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
}

fn protocol_of(socket: &ResourceSocket, headers: &HeaderMap) -> Result<&'static str, ApiError> {
    let offers = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let offers = offers.filter_map(|offer| offer.to_str().ok()).flat_map(|offer| offer.split(','));
    let mut known = offers
        .filter_map(|offer| socket.protocols.iter().find(|protocol| **protocol == offer.trim()));
    known.next().copied().ok_or_else(|| {
        let all = socket.protocols.join(", ");
        ApiError::new(400, "BadRequest", format!("offer one of these subprotocols: {all}"))
    })
}
