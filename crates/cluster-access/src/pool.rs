//! The connections to one cluster.
//!
//! The server's own requests and all watches share a few HTTP/2 connections. Each other request of
//! a user has an HTTP/1.1 connection of its own, which is reused between requests: a response that
//! is long or not read delays no other, and its tunnel stream already has a window. While no
//! HTTP/1.1 connection is free, requests use HTTP/2 at once, and another HTTP/1.1 connection is
//! prepared. An API server without HTTP/2 gets a bounded number of them. Each upgrade has a
//! connection of its own.

mod exclusive;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, Version, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::{Mutex, RwLock};
use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tunnel::ClusterId;

use crate::access::Reachability;
use crate::body::{Body, wrap};
use crate::cuttable::Cuttable;
use crate::dialer::Dialer;
use crate::endpoint::{Endpoint, EndpointError};
use crate::error::AccessError;
use crate::limits::{
    CONNECTION_WINDOW_BYTES, DIAL_TIME_MAX, HEADER_LINES_MAX, HEADERS_MAX_BYTES,
    HTTP1_CONNECTIONS_MAX, IDLE_MAX, PING_INTERVAL, PING_TIMEOUT, READY_TIME,
    REQUESTS_PER_CLUSTER_MAX, SETUP_TIME_MAX, STREAM_WINDOW_BYTES, STREAMS_PER_CONNECTION_MAX,
    SWEEP_INTERVAL, UPGRADE_TIME_MAX, UPGRADES_PER_CLUSTER_MAX,
};
use crate::tls::Tls;
use exclusive::Exclusive;

/// Attempts to send a request when pooled connections turn out to be closed before they accept it.
const SENDS_MAX: usize = 3;

/// One cluster's endpoint and the connections to it. Dropping it closes them all.
pub(crate) struct Pool {
    cluster: ClusterId,
    endpoint: Endpoint,
    /// Replaced when the cluster's token is rotated; open connections continue.
    authorization: RwLock<HeaderValue>,
    tls: Tls,
    dialer: Arc<dyn Dialer>,
    connections: Mutex<Connections>,
    /// Only one connection is set up at a time; other requests wait, and then share it or its
    /// failure.
    connecting: tokio::sync::Mutex<()>,
    requests: Arc<Semaphore>,
    upgrades: Arc<Semaphore>,
    http1_open: Arc<Semaphore>,
    /// An HTTP/1.1 connection is being set up for later requests.
    is_preparing: AtomicBool,
    host: HeaderValue,
    state: watch::Sender<Reachability>,
    cut: CancellationToken,
    _cut_on_drop: DropGuard,
}

#[derive(Default)]
struct Connections {
    http2: Vec<Arc<SharedConnection>>,
    http1: Vec<Exclusive>,
    failure: Option<(Instant, AccessError)>,
    /// When the last request came that is to have a connection of its own.
    alone_at: Option<Instant>,
    is_swept: bool,
}

/// An HTTP/2 connection.
struct SharedConnection {
    sender: http2::SendRequest<Body>,
    open: AtomicUsize,
    used: Mutex<Instant>,
}

/// Which kind of connection a request gets, if possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// A connection that other requests use at the same time.
    Shared,
    /// A connection of its own.
    Alone,
}

/// A connection with room for one request.
enum Line {
    Shared(Lease),
    Exclusive(Exclusive),
}

/// A slot on an HTTP/2 connection; dropping it frees the slot.
struct Lease(Arc<SharedConnection>);

impl SharedConnection {
    fn lease(self: &Arc<Self>) -> Option<Lease> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let lease = Lease(self.clone());
        (before < STREAMS_PER_CONNECTION_MAX).then_some(lease)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.0.used.lock() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn setup_error(error: impl std::fmt::Display) -> AccessError {
    AccessError::Setup { detail: error.to_string() }
}

/// The error with all its sources, because hyper's own texts say little.
fn lost_connection(error: &dyn std::error::Error) -> AccessError {
    let mut detail = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        detail = format!("{detail}: {error}");
        source = error.source();
    }
    AccessError::Lost { detail }
}

impl Pool {
    pub(crate) fn new(
        cluster: ClusterId,
        endpoint: Endpoint,
        dialer: Arc<dyn Dialer>,
        state: watch::Sender<Reachability>,
    ) -> Result<Arc<Self>, EndpointError> {
        endpoint.check_size()?;
        let tls = Tls::new(&endpoint)?;
        let authorization = endpoint.token.header().ok_or(EndpointError::Token)?;
        let host = HeaderValue::from_str(&endpoint.address.to_string());
        let host = host.expect("an address is a header value");
        let cut = CancellationToken::new();
        Ok(Arc::new(Self {
            cluster,
            endpoint,
            authorization: RwLock::new(authorization),
            tls,
            dialer,
            connections: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            requests: Arc::new(Semaphore::new(REQUESTS_PER_CLUSTER_MAX)),
            upgrades: Arc::new(Semaphore::new(UPGRADES_PER_CLUSTER_MAX)),
            http1_open: Arc::new(Semaphore::new(HTTP1_CONNECTIONS_MAX)),
            is_preparing: AtomicBool::new(false),
            host,
            state,
            _cut_on_drop: cut.clone().drop_guard(),
            cut,
        }))
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn set_token(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        *self.authorization.write() = endpoint.token.header().ok_or(EndpointError::Token)?;
        Ok(())
    }

    /// Ends every connection and stream of this pool.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    /// The result of the last attempt to connect.
    pub(crate) fn reachability(&self) -> Reachability {
        self.state.borrow().clone()
    }

    /// Tries to connect, so that [`Self::reachability`] says whether that works now.
    pub(crate) fn probe(self: &Arc<Self>) {
        let pool = self.clone();
        // The result is noted.
        tokio::spawn(async move { drop(pool.checkout(Sharing::Shared).await) });
    }

    /// Sends a request with a URI of [`Self::target`]. The credential is added here; bodies stream
    /// in both directions. An error comes with the request if no connection accepted it.
    pub(crate) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
        sharing: Sharing,
    ) -> Result<Response<Body>, Unsent> {
        let Ok(permit) = self.requests.clone().try_acquire_owned() else {
            return Err((Some(request), AccessError::Saturated));
        };
        request.headers_mut().insert(header::AUTHORIZATION, self.authorization.read().clone());
        let mut last = AccessError::Lost { detail: "closed".to_owned() };
        for _ in 0..SENDS_MAX {
            let line = match self.checkout(sharing).await {
                Ok(line) => line,
                Err(error) => return Err((Some(request), error)),
            };
            let sent = match line {
                Line::Shared(lease) => Self::send_shared(lease, request).await,
                Line::Exclusive(line) => {
                    request.headers_mut().insert(header::HOST, self.host.clone());
                    line.send(request, Arc::downgrade(self)).await
                }
            };
            match sent {
                Ok(response) => return Ok(response.map(|body| hold(body, permit))),
                Err((Some(unsent), error)) => (request, last) = (unsent, error),
                Err((None, error)) => return Err((None, error)),
            }
        }
        Err((Some(request), last))
    }

    async fn send_shared(lease: Lease, mut request: Request<Body>) -> SendOutcome {
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().remove(header::HOST);
        let response = lease.0.sender.clone().try_send_request(request).await;
        let response = response.map_err(to_unsent)?;
        Ok(response.map(|body| wrap(Held { body, _held: lease })))
    }

    /// The absolute URI, from which HTTP/2 derives its pseudo-headers.
    pub(crate) fn target(&self, path_and_query: &str) -> Result<Uri, AccessError> {
        Uri::builder()
            .scheme("https")
            .authority(self.endpoint.address.to_string())
            .path_and_query(path_and_query)
            .build()
            .map_err(setup_error)
    }

    async fn checkout(self: &Arc<Self>, sharing: Sharing) -> Result<Line, AccessError> {
        let requested_at = Instant::now();
        if let Some(line) = self.reuse(sharing) {
            return Ok(line);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(line) = self.reuse(sharing) {
            return Ok(line);
        }
        if let Some((at, error)) = &self.connections.lock().failure
            && *at >= requested_at
        {
            // Another request tried to connect while this one waited.
            return Err(error.clone());
        }
        let connected = self.connect().await;
        if let Err(error) = &connected {
            self.connections.lock().failure = Some((Instant::now(), error.clone()));
            self.note(Reachability::Unreachable { reason: error.to_string() });
        } else {
            self.note(Reachability::Reachable);
        }
        connected
    }

    fn note(&self, next: Reachability) {
        self.state.send_if_modified(|state| {
            let is_new = *state != next;
            *state = next;
            is_new
        });
    }

    fn reuse(self: &Arc<Self>, sharing: Sharing) -> Option<Line> {
        let mut connections = self.connections.lock();
        connections.http2.retain(|shared| !shared.sender.is_closed());
        connections.http1.retain(Exclusive::is_fresh);
        if sharing == Sharing::Alone {
            connections.alone_at = Some(Instant::now());
            if let Some(line) = connections.http1.pop() {
                return Some(Line::Exclusive(line));
            }
        }
        if let Some(lease) = connections.http2.iter().find_map(SharedConnection::lease) {
            if sharing == Sharing::Alone {
                self.prepare();
            }
            return Some(Line::Shared(lease));
        }
        connections.http1.pop().map(Line::Exclusive)
    }

    /// Sets up an HTTP/1.1 connection for later requests, unless one is being set up or the limit
    /// is reached.
    fn prepare(self: &Arc<Self>) {
        let Ok(permit) = self.http1_open.clone().try_acquire_owned() else { return };
        if self.is_preparing.swap(true, Ordering::Relaxed) {
            return;
        }
        let pool = self.clone();
        tokio::spawn(async move {
            let opened = async { pool.begin_http1(pool.tls(&pool.tls.upgrades).await?).await };
            match opened.await {
                Ok(sender) => pool.store(Exclusive::new(sender, permit)),
                // Requests then use HTTP/2, and report what is wrong with the cluster.
                Err(error) => tracing::debug!(cluster = %pool.cluster, %error, "no HTTP/1.1"),
            }
            pool.is_preparing.store(false, Ordering::Relaxed);
        });
    }

    fn store(self: &Arc<Self>, line: Exclusive) {
        self.connections.lock().http1.push(line);
        self.sweep_later();
    }

    async fn tls(&self, config: &Arc<ClientConfig>) -> Result<TlsStream<Cuttable>, AccessError> {
        let io = self.dialer.dial(&self.cluster, &self.endpoint, DIAL_TIME_MAX).await?;
        let io = Cuttable::new(io, &self.cut);
        let connector = TlsConnector::from(config.clone());
        let connecting = connector.connect(self.tls.name.clone(), io);
        match tokio::time::timeout(SETUP_TIME_MAX, connecting).await {
            Ok(connected) => connected.map_err(setup_error),
            Err(_) => Err(AccessError::TimedOut),
        }
    }

    async fn connect(self: &Arc<Self>) -> Result<Line, AccessError> {
        let io = self.tls(&self.tls.requests).await?;
        if io.get_ref().1.alpn_protocol() != Some(b"h2") {
            let permit = self.http1_open.clone().try_acquire_owned();
            let permit = permit.map_err(|_| AccessError::Saturated)?;
            let sender = self.begin_http1(io).await?;
            return Ok(Line::Exclusive(Exclusive::new(sender, permit)));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(HEADERS_MAX_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        let handshake = builder.handshake(TokioIo::new(io));
        let (sender, connection) = tokio::time::timeout(SETUP_TIME_MAX, handshake)
            .await
            .map_err(|_| AccessError::TimedOut)?
            .map_err(setup_error)?;
        self.drive(connection);
        let open = AtomicUsize::new(0);
        let shared = Arc::new(SharedConnection { sender, open, used: Mutex::new(Instant::now()) });
        let lease = shared.lease().expect("no other request uses this connection yet");
        self.connections.lock().http2.push(shared);
        self.sweep_later();
        Ok(Line::Shared(lease))
    }

    async fn begin_http1(
        &self,
        io: TlsStream<Cuttable>,
    ) -> Result<http1::SendRequest<Body>, AccessError> {
        let handshake = http1::Builder::new()
            .max_buf_size(HEADERS_MAX_BYTES as usize)
            .max_headers(HEADER_LINES_MAX)
            .handshake(TokioIo::new(io))
            .await;
        let (sender, connection) = handshake.map_err(setup_error)?;
        self.drive(connection.with_upgrades());
        Ok(sender)
    }

    fn drive<E: std::fmt::Display + Send>(
        &self,
        connection: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let cluster = self.cluster.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%cluster, %error, "a downstream connection ended");
            }
        });
    }

    /// Sends an upgrade request on a connection of its own. The response need not be 101. An error
    /// comes with the request if no connection accepted it.
    pub(crate) async fn upgrade(
        &self,
        mut request: Request<Body>,
    ) -> Result<(Response<Incoming>, OwnedSemaphorePermit), Unsent> {
        let Ok(permit) = self.upgrades.clone().try_acquire_owned() else {
            return Err((Some(request), AccessError::Saturated));
        };
        request.headers_mut().insert(header::AUTHORIZATION, self.authorization.read().clone());
        request.headers_mut().insert(header::HOST, self.host.clone());
        *request.version_mut() = Version::HTTP_11;
        let opened = async { self.begin_http1(self.tls(&self.tls.upgrades).await?).await };
        let mut sender = match opened.await {
            Ok(sender) => sender,
            Err(error) => return Err((Some(request), error)),
        };
        match tokio::time::timeout(UPGRADE_TIME_MAX, sender.send_request(request)).await {
            Ok(Ok(response)) => Ok((response, permit)),
            Ok(Err(error)) => Err((None, lost_connection(&error))),
            Err(_) => Err((None, AccessError::TimedOut)),
        }
    }

    /// Fires when this pool is closed; the streams of its upgrades must end then.
    pub(crate) fn cut_token(&self) -> CancellationToken {
        self.cut.clone()
    }

    /// Makes sure that idle connections are swept while there are connections.
    fn sweep_later(self: &Arc<Self>) {
        if std::mem::replace(&mut self.connections.lock().is_swept, true) {
            return;
        }
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let Some(pool) = this.upgrade() else { return };
                if pool.sweep() {
                    return;
                }
                if pool.lacks_ready_connection() {
                    pool.prepare();
                }
            }
        });
    }

    /// Closes connections that were not used for [`IDLE_MAX`]. True when no connection is left.
    fn sweep(&self) -> bool {
        let mut connections = self.connections.lock();
        connections.http2.retain(|shared| {
            let is_idle = shared.open.load(Ordering::Relaxed) == 0;
            !(shared.sender.is_closed() || is_idle && shared.used.lock().elapsed() >= IDLE_MAX)
        });
        connections.http1.retain(Exclusive::is_fresh);
        connections.is_swept = !(connections.http2.is_empty() && connections.http1.is_empty());
        !connections.is_swept
    }

    /// Whether a user's request is likely before the next sweep, and would find no connection.
    fn lacks_ready_connection(&self) -> bool {
        let connections = self.connections.lock();
        connections.alone_at.is_some_and(|at| at.elapsed() < READY_TIME)
            && !connections.http1.iter().any(|line| line.is_fresh_for(SWEEP_INTERVAL))
    }

    /// The number of pooled connections, for tests and diagnostics.
    pub(crate) fn connection_count(&self) -> usize {
        let connections = self.connections.lock();
        connections.http2.len() + connections.http1.len()
    }
}

/// The request, if no connection accepted it, so that it can be sent again; and why.
pub(crate) type Unsent = (Option<Request<Body>>, AccessError);
type SendOutcome = Result<Response<Body>, Unsent>;

fn to_unsent(mut error: TrySendError<Request<Body>>) -> Unsent {
    let message = error.take_message();
    (message, lost_connection(error.error()))
}

fn hold<T: Send + Unpin + 'static>(body: Body, held: T) -> Body {
    wrap(Held { body, _held: held })
}

/// A body that holds a value until it has ended or is dropped.
struct Held<B, T> {
    body: B,
    _held: T,
}

impl<B, T> http_body::Body for Held<B, T>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    T: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
