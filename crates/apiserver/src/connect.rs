//! Subresources whose response outlives the request: logs that are followed, and protocols that the
//! connection switches to (`exec`, `attach`, `portforward`).
//!
//! The server authorises the request and finds the object; what happens then is up to the
//! [`Connector`] that the embedding program brings. Without one such paths do not exist.

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

/// Subresources that never end by themselves, by the names that kube-apiserver goes by.
pub(crate) const LONG_RUNNING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
/// Name, kind and verbs of the subresources of pods that a connector serves.
const OF_PODS: [(&str, &str, &[&str]); 4] = [
    ("attach", "PodAttachOptions", &["create", "get"]),
    ("exec", "PodExecOptions", &["create", "get"]),
    ("log", "Pod", &["get"]),
    ("portforward", "PodPortForwardOptions", &["create", "get"]),
];
const SPDY: &str = "SPDY/3.1";
/// The version of WebSockets that there is.
const WEBSOCKET_VERSION: &str = "13";

/// Serves subresources that are connected to.
pub trait Connector: Send + Sync + 'static {
    /// The response. It may switch protocols, by [`Connect::switch`].
    ///
    /// # Errors
    /// What cannot be connected to, as the client is to see it.
    fn connect(&self, connect: Connect) -> BoxFuture<'_, Result<Response<Body>, Status>>;
}

/// A request that was authorised, and the object that it is for.
pub struct Connect {
    pub registry: Arc<Registry>,
    pub resource: Arc<Resource>,
    pub object: Arc<Stored>,
    pub subresource: &'static str,
    pub query: Query,
    pub headers: HeaderMap,
    /// The right to the connection ends with this.
    pub revocation: Revocation,
    upgrade: Option<OnUpgrade>,
    connection: Option<Connection>,
}

/// Put into the extensions of a response that switches protocols, and held by whatever speaks the
/// other one: the request ends, for metrics and the audit log, when that is dropped.
#[derive(Clone, Default)]
pub struct LongRunning(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl LongRunning {
    /// Holds `request` until the last clone is dropped.
    pub fn hold(&self, request: impl Any + Send) {
        *self.0.lock() = Some(Box::new(request));
    }
}

/// What a client requests to speak after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    WebSocket,
    Spdy,
}

/// What a switched connection depends on; whoever speaks on it keeps this until the end.
pub struct Switched {
    pub upgrade: OnUpgrade,
    /// The exchange goes on until this is dropped.
    _long_running: LongRunning,
    connection: Option<Connection>,
    revocation: Revocation,
}

impl Switched {
    /// Waits until the connection must be given up: the server ends, or the right to it.
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
    /// Of a request that was authorised.
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

    /// The protocol that the client asks for, where the connection can switch.
    pub fn protocol(&self) -> Option<Protocol> {
        self.upgrade.as_ref()?;
        wanted_protocol(&self.headers)
    }

    /// The response that switches to `protocol`, and the connection that follows it.
    ///
    /// - `subprotocol`: what of the client's offer is agreed to.
    ///
    /// # Errors
    /// 400: the client did not ask for it, or not as the standard says.
    pub fn switch(
        &mut self,
        protocol: Protocol,
        subprotocol: (HeaderName, &'static str),
    ) -> Result<(Response<Body>, Switched), Status> {
        let upgrade = self.upgrade.take().filter(|_| wanted_protocol(&self.headers).is_some());
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

    /// What the client offers in a header, each alone, in its order.
    pub fn offers(&self, name: &HeaderName) -> Vec<String> {
        tokens(&self.headers, name).map(str::to_owned).collect()
    }

    /// What the client offers to speak inside a WebSocket.
    pub fn websocket_protocols(&self) -> Vec<String> {
        self.offers(&SEC_WEBSOCKET_PROTOCOL)
    }
}

/// Gives pods the subresources that a [`Connector`] serves.
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

fn wanted_protocol(headers: &HeaderMap) -> Option<Protocol> {
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

/// The proof that the server speaks WebSockets.
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
