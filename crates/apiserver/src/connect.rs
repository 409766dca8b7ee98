//! Subresources whose response outlives the request: followed logs, and protocols to which the
//! connection is upgraded (`exec`, `attach`, `portforward`).
//!
//! The server authorizes the request and finds the object. The [`Connector`] of the embedding
//! program serves the rest. Without one such paths do not exist.

use std::any::Any;
use std::sync::Arc;

use api_meta::status::Status;
use futures::future::BoxFuture;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::attributes::Revocation;
use crate::body::respond::{self, Body};
use crate::registry::Registry;
use crate::request::Query;
use crate::resource::{Resource, Subresource, SubresourceHandler};
use crate::serve::Connection;
use crate::stored::Stored;

/// The long-running subresources of kube-apiserver.
pub(crate) const LONG_RUNNING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
/// Name, kind and verbs of the pod subresources that a connector serves.
const OF_PODS: [(&str, &str, &[&str]); 4] = [
    ("attach", "PodAttachOptions", &["create", "get"]),
    ("exec", "PodExecOptions", &["create", "get"]),
    ("log", "Pod", &["get"]),
    ("portforward", "PodPortForwardOptions", &["create", "get"]),
];
const SPDY: &str = "SPDY/3.1";
/// The only version of the WebSocket protocol.
const WEBSOCKET_VERSION: &str = "13";

/// Serves the subresources that clients connect to.
pub trait Connector: Send + Sync + 'static {
    /// Serves a request. The response may switch protocols, by [`Connect::switch`].
    ///
    /// # Errors
    /// Why the connection is refused, as the client sees it.
    fn connect(&self, connect: Connect) -> BoxFuture<'_, Result<Response<Body>, Status>>;
}

/// An authorized request and its object.
pub struct Connect {
    /// The registry, for reads of related objects.
    pub registry: Arc<Registry>,
    /// The resource of the object.
    pub resource: Arc<Resource>,
    /// The object that the client connects to.
    pub object: Arc<Stored>,
    /// One of the long-running subresources, such as `exec`.
    pub subresource: &'static str,
    /// The query parameters of the request.
    pub query: Query,
    /// The headers of the request, without credentials.
    pub headers: HeaderMap,
    /// Ends the right to the connection.
    pub revocation: Revocation,
    upgrade: Option<OnUpgrade>,
    connection: Option<Connection>,
}

/// A handle in the extensions of a response that switches protocols, which the new connection
/// holds: the request ends, for metrics and the audit log, when the last clone is dropped.
#[derive(Clone, Default)]
pub struct LongRunning(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl LongRunning {
    /// Holds `request` until the last clone is dropped.
    pub fn hold(&self, request: impl Any + Send) {
        *self.0.lock() = Some(Box::new(request));
    }
}

/// The protocol that a client requests to switch to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// WebSocket, version 13.
    WebSocket,
    /// SPDY/3.1.
    Spdy,
}

/// A switched connection. The server of the connection holds this until its end.
pub struct Switched {
    /// Resolves to the connection after the response was sent.
    pub upgrade: OnUpgrade,
    /// The request lasts until this is dropped.
    _long_running: LongRunning,
    connection: Option<Connection>,
    revocation: Revocation,
}

impl Switched {
    /// Waits until the connection must be closed: the server shuts down, or the user is revoked.
    pub async fn cut(&self) {
        let server_ended = async {
            match &self.connection {
                Some(connection) => connection.cut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = server_ended => {}
            () = self.revocation.revoked() => {}
        }
    }
}

impl Connect {
    /// Creates the connection request from an authorized request.
    pub(crate) fn new(
        registry: Arc<Registry>,
        resource: Arc<Resource>,
        object: Arc<Stored>,
        subresource: &'static str,
        query: Query,
        parts: &request::Parts,
    ) -> Self {
        Self {
            registry,
            resource,
            object,
            subresource,
            query,
            headers: parts.headers.clone(),
            revocation: parts.extensions.get().cloned().unwrap_or_default(),
            upgrade: parts.extensions.get::<OnUpgrade>().cloned(),
            connection: parts.extensions.get().cloned(),
        }
    }

    /// The protocol that the client requests; `None` when it requests none or the connection cannot
    /// switch.
    pub fn protocol(&self) -> Option<Protocol> {
        self.upgrade.as_ref()?;
        requested_protocol(&self.headers)
    }

    /// Builds the response that switches to `protocol`, and the connection that follows it.
    /// `subprotocol` is the header and value of the agreed subprotocol.
    ///
    /// # Errors
    /// 400: the client did not request the switch, or not like the standard requires.
    pub fn switch(
        &mut self,
        protocol: Protocol,
        subprotocol: (HeaderName, &'static str),
    ) -> Result<(Response<Body>, Switched), Status> {
        let upgrade = self.upgrade.take().filter(|_| requested_protocol(&self.headers).is_some());
        let upgrade = upgrade.ok_or_else(|| Status::bad_request("Upgrade request required"))?;
        let mut response = Response::new(respond::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(subprotocol.0, HeaderValue::from_static(subprotocol.1));
        match protocol {
            Protocol::Spdy => headers.insert(UPGRADE, HeaderValue::from_static(SPDY)),
            Protocol::WebSocket => {
                headers.insert(SEC_WEBSOCKET_ACCEPT, websocket_accept(&self.headers)?);
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"))
            }
        };
        let long_running = LongRunning::default();
        response.extensions_mut().insert(long_running.clone());
        let switched = Switched {
            upgrade,
            _long_running: long_running,
            connection: self.connection.take(),
            revocation: self.revocation.clone(),
        };
        Ok((response, switched))
    }

    /// The client's offers in a header, in its order.
    pub fn offers(&self, name: &HeaderName) -> Vec<String> {
        tokens(&self.headers, name).map(str::to_owned).collect()
    }

    /// The client's offers of WebSocket subprotocols.
    pub fn websocket_protocols(&self) -> Vec<String> {
        self.offers(&SEC_WEBSOCKET_PROTOCOL)
    }
}

/// Adds to pods the subresources that a [`Connector`] serves.
pub fn add_to_pods(resources: &mut [Resource]) {
    let pods = resources.iter_mut().find(|r| r.group.is_empty() && r.plural == "pods");
    let Some(pods) = pods else { return };
    pods.subresources.extend(OF_PODS.map(|(name, kind, verbs)| Subresource {
        name,
        verbs: verbs.to_vec(),
        handler: SubresourceHandler::Connect,
        gvk: (kind != "Pod").then_some(("", "v1", kind)),
    }));
}

fn requested_protocol(headers: &HeaderMap) -> Option<Protocol> {
    let upgrades = |token: &str| token.eq_ignore_ascii_case("upgrade");
    if !tokens(headers, &CONNECTION).any(upgrades) {
        return None;
    }
    tokens(headers, &UPGRADE).find_map(|token| match token {
        token if token.eq_ignore_ascii_case("websocket") => Some(Protocol::WebSocket),
        token if token.eq_ignore_ascii_case(SPDY) => Some(Protocol::Spdy),
        _ => None,
    })
}

/// The value of `Sec-WebSocket-Accept`.
fn websocket_accept(headers: &HeaderMap) -> Result<HeaderValue, Status> {
    let version = headers.get(SEC_WEBSOCKET_VERSION).and_then(|value| value.to_str().ok());
    if version != Some(WEBSOCKET_VERSION) {
        let text = format!("the version of the WebSocket must be {WEBSOCKET_VERSION}");
        return Err(Status::bad_request(text));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Status::bad_request("the WebSocket has no key"))?;
    let accept = derive_accept_key(key.as_bytes());
    Ok(HeaderValue::from_str(&accept).expect("base64 is a header value"))
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}
