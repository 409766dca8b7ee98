//! WebSockets of the views: how they are agreed on, how many there are, and how all of them end.

mod slots;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::slots::SocketSlots;
use crate::error::ApiError;

/// Sockets open at the same time.
pub const SOCKETS_MAX: usize = 4_096;
/// Sockets of one caller at the same time: the tabs and scripts of one user.
pub const SOCKETS_PER_CALLER_MAX: usize = 64;
/// Longest wait for the client's half of an upgrade.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// The connection below a WebSocket.
pub type SocketIo = TokioIo<Upgraded>;

/// All open sockets.
pub struct Sockets {
    slots: Arc<SocketSlots>,
    open: TaskTracker,
    stop: CancellationToken,
}

impl Sockets {
    /// No sockets yet. Those that are open end when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { slots: Arc::default(), open: TaskTracker::new(), stop })
    }

    /// Agrees on a WebSocket: 101 over HTTP/1.1, 200 over HTTP/2. `serve` then runs in a task of
    /// its own; it must return soon after its token is cancelled.
    ///
    /// `request` must come from an HTTP server of hyper, which has the upgrade in its extensions.
    ///
    /// # Errors
    /// The request is no WebSocket upgrade, or a limit of sockets is reached.
    pub fn open<F>(
        &self,
        mut request: Request<()>,
        user: &str,
        serve: impl FnOnce(SocketIo, CancellationToken) -> F + Send + 'static,
    ) -> Result<Response<Bytes>, ApiError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let response = agree(&request)?;
        let slot = self.slots.acquire(user)?;
        let upgrade = hyper::upgrade::on(&mut request);
        let stop = self.stop.clone();
        self.open.spawn(async move {
            match tokio::time::timeout(HANDSHAKE_TIME_MAX, upgrade).await {
                Ok(Ok(upgraded)) => serve(TokioIo::new(upgraded), stop).await,
                _ => tracing::debug!("a client disconnected before the upgrade to a WebSocket"),
            }
            drop(slot);
        });
        Ok(response)
    }

    /// Waits until all sockets are closed, which is soon after `stop` is cancelled.
    pub async fn closed(&self) {
        self.open.close();
        self.open.wait().await;
    }
}

fn agree(request: &Request<()>) -> Result<Response<Bytes>, ApiError> {
    if is_extended_connect(request) {
        return Ok(Response::new(Bytes::new()));
    }
    create_response_with_body(request, Bytes::new).map_err(|error| {
        let text = format!("this path is a WebSocket: {error}");
        ApiError::new(400, "BadRequest", text)
    })
}

/// Whether a browser requests a WebSocket on its existing HTTP/2 connection (RFC 8441).
pub fn is_extended_connect(request: &Request<()>) -> bool {
    let protocol = request.extensions().get::<hyper::ext::Protocol>();
    *request.method() == Method::CONNECT && protocol.is_some_and(|p| p.as_str() == "websocket")
}
