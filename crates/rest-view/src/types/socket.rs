//! WebSockets of single resources: `GET <resource>?NAME=true` with an upgrade, such as a shell in a
//! cluster.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;
use crate::sockets::SocketIo;
use crate::types::action::Available;
use crate::types::context::{Caller, Context};

/// A WebSocket that each resource of a type has.
#[derive(Clone)]
pub struct ResourceSocket {
    /// As `links` lists it, and as the query parameter spells it. Lower case.
    pub name: String,
    /// Subprotocols of the socket; the first that the client offers is used. A client that offers
    /// none of them is refused.
    pub protocols: &'static [&'static str],
    /// Serves the sockets.
    pub handler: Arc<dyn SocketHandler>,
    /// `None`: always.
    pub available: Option<Available>,
}

impl ResourceSocket {
    /// A socket that is always available.
    pub fn new(
        name: &str,
        protocols: &'static [&'static str],
        handler: impl SocketHandler,
    ) -> Self {
        Self { name: name.to_owned(), protocols, handler: Arc::new(handler), available: None }
    }
    /// Serves the socket only while `available` returns `true` for the stored object and the
    /// caller. Otherwise it is not listed, and a request for it is a 404.
    pub fn available_when(
        mut self,
        available: impl Fn(&Value, &Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.available = Some(Arc::new(available));
        self
    }
    pub(crate) fn is_available(&self, object: &Value, caller: &Caller) -> bool {
        self.available.as_ref().is_none_or(|available| available(object, caller))
    }
}

/// One request for a socket.
pub struct SocketRequest<'a> {
    /// The caller and their client. The socket must end when [`Caller::ended`] is cancelled.
    pub context: &'a Context<'a>,
    /// The stored object, read with the caller's rights.
    pub object: &'a Value,
    /// The subprotocol that was agreed on, one of [`ResourceSocket::protocols`].
    pub protocol: &'static str,
}

/// Serves an agreed socket. Must return soon after the token is cancelled, which happens when the
/// server stops.
pub type SocketSession =
    Box<dyn FnOnce(SocketIo, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Serves the sockets of a type, each in two steps: a check, then a session.
pub trait SocketHandler: Send + Sync + 'static {
    /// Checks the request before the handshake. A browser does not show pages why a handshake was
    /// refused, so what users should read is better sent over the socket.
    ///
    /// # Errors
    /// Any [`ApiError`]; it is the response to the handshake.
    fn prepare(&self, request: SocketRequest<'_>) -> Result<SocketSession, ApiError>;
}
