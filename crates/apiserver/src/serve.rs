//! Serves connections: TLS, HTTP/1.1 and HTTP/2, upgrades, graceful shutdown. Serves any service,
//! not only that of this crate.

mod drain;
mod head_guard;
mod strangers;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drain::ShortRequests;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use read_ahead::ReadAhead;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::attributes::ClientCertificates;
use crate::body::BoxError;
use crate::body::ending::GuardedBody;
use crate::rejections;

pub use head_guard::HeadChecker;
use head_guard::{HeadGuard, Switched};
use strangers::{Strangers, Ticket};

/// Connections served at once; more wait in the backlog of the listener, and unauthenticated ones
/// yield to them. [`strangers`] limits the number of unauthenticated ones.
const CONNECTIONS_MAX: usize = 16_384;
/// A client must finish its TLS handshake within this.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client must send the head of its request within this.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of all header fields of one request; impersonation headers can be long.
const HEADERS_SIZE_MAX: u32 = 128 * 1024;
/// Header lines of one HTTP/1.1 request: each group of an impersonated user has one.
const HEADER_LINES_MAX: usize = 1_280;
/// Streams on one HTTP/2 connection: a client runs all its watches on one.
const STREAMS_MAX: u32 = 1_000;
/// Concurrent requests on one connection until a caller has authenticated on it: a browser fetches
/// the files of the web interface at once.
const STRANGERS_REQUESTS_MAX: usize = 100;
/// How long a connection is served without authentication. Then the client is requested to close
/// it,
const STRANGERS_TIME_MAX: Duration = Duration::from_secs(60);
/// and closed after this.
const STRANGERS_GRACE: Duration = Duration::from_secs(30);
/// Flow-control windows of one stream, and of all streams of a connection together. Unread data of
/// unauthenticated clients fills them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of responses that wait in the buffers of one connection.
const SEND_BUFFER_MAX: usize = 256 * 1024;
/// A peer that does not respond to a ping in time is disconnected.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIME_MAX: Duration = Duration::from_secs(15);
/// How long open requests may continue after the shutdown began: as long as a request may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);
/// How long long-running requests, such as watches, may continue.
const LONG_DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The address of the peer, in the extensions of every request.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// In the extensions of every request: its connection. A task that uses the connection after an
/// upgrade holds this, so that the connection counts until the task ends.
#[derive(Clone)]
pub struct Connection {
    alive: mpsc::Sender<Infallible>,
    ticket: Arc<Ticket>,
}

impl Connection {
    /// Waits until the connection must be closed because the server has stopped.
    pub async fn cut(&self) {
        self.alive.closed().await;
    }

    /// Records that a caller has authenticated on the connection: the limits of unauthenticated
    /// connections no longer apply to it.
    pub fn mark_authenticated(&self) {
        self.ticket.mark_authenticated();
    }
}

/// Marks the connection of a request as authenticated. Does nothing for requests without a
/// connection.
pub fn mark_authenticated(extensions: &http::Extensions) {
    if let Some(connection) = extensions.get::<Connection>() {
        connection.mark_authenticated();
    }
}

/// Whether an address is that of a proxy with many users behind it.
pub type IsProxy = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Accepts connections until `shutdown` becomes `true`. Then clients are requested to use another
/// server, and open requests may finish, up to [`DRAIN_TIME_MAX`]. Long-running ones are cut after
/// [`LONG_DRAIN_TIME_MAX`], once no other request is open.
///
/// `tls` is read for each connection, so that a renewed certificate takes effect without a restart.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: watch::Receiver<Arc<ServerConfig>>,
    service: S,
    shutdown: watch::Receiver<bool>,
) where
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    serve_behind(Arc::new(|_| false), listener, tls, service, shutdown).await;
}

/// Like [`serve`], behind proxies: their connections do not count by address.
pub async fn serve_behind<S, B>(
    is_proxy: IsProxy,
    listener: TcpListener,
    tls: watch::Receiver<Arc<ServerConfig>>,
    service: S,
    mut shutdown: watch::Receiver<bool>,
) where
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let requests = ShortRequests::new();
    let strangers = Strangers::default();
    loop {
        while connections.try_join_next().is_some() {}
        if permits.available_permits() == 0 {
            strangers.yield_one();
        }
        let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.wait_for(|end| *end) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: let some connections end.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let ip = peer.ip().to_canonical();
        // Rejected by closing it: TLS would cost more than it saves.
        let Some(ticket) = strangers.admit((!is_proxy(ip)).then_some(ip)) else { continue };
        let acceptor = TlsAcceptor::from(tls.borrow().clone());
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let requests = requests.clone();
        connections.spawn(async move {
            let ticket = Arc::new(ticket);
            let begin = Begin { stream, peer, acceptor, ticket: ticket.clone(), requests };
            let ended = tokio::select! {
                ended = connection(begin, service, shutdown) => ended,
                () = ticket.cut() => Err("it was closed to make room for another one".into()),
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, error, "connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    let only_long_left = async {
        tokio::time::sleep(LONG_DRAIN_TIME_MAX).await;
        requests.wait_until_ended().await;
    };
    tokio::select! {
        () = drained => return,
        () = only_long_left => {}
        () = tokio::time::sleep(DRAIN_TIME_MAX) => {}
    }
    connections.shutdown().await;
}

/// An accepted connection.
struct Begin {
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    ticket: Arc<Ticket>,
    requests: ShortRequests,
}

async fn connection<S, B>(
    begin: Begin,
    service: S,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), BoxError>
where
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Begin { stream, peer, acceptor, ticket, requests } = begin;
    let (alive, mut released) = mpsc::channel(1);
    let connection_handle = Connection { alive, ticket: ticket.clone() };
    stream.set_nodelay(true)?;
    let stream =
        tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(ReadAhead::new(stream))).await??;
    let certificates =
        stream.get_ref().1.peer_certificates().map(|chain| {
            ClientCertificates(Arc::new(chain.iter().map(|der| der.to_vec()).collect()))
        });
    let switched = Switched::default();
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = HeadGuard::new(stream, is_http2, switched.clone());
    let own = ticket.clone();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let under_way = own.begin(STRANGERS_REQUESTS_MAX);
        request.extensions_mut().insert(PeerAddress(peer));
        request.extensions_mut().insert(connection_handle.clone());
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let open = requests.begin(&request);
        let may_switch = request.version() != Version::HTTP_2;
        let is_connect = request.method() == Method::CONNECT;
        let switched = switched.clone();
        // The permit is released when the head of the response is ready: watches last for hours.
        let responding = under_way.is_some().then(|| Box::pin(service.clone().call(request)));
        async move {
            let response = match responding {
                Some(responding) => {
                    let Ok(response) = responding.await;
                    response.map(|body| body.map_err(Into::into).boxed_unsync())
                }
                None => too_many_requests(),
            };
            let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS
                || is_connect && response.status().is_success();
            if may_switch && is_switched {
                switched.set();
            }
            // A request counts until its response has been sent.
            Ok::<_, Infallible>(response.map(|body| GuardedBody::new(body, (open, under_way))))
        }
    });
    let ended = {
        let builder = builder();
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let stopped = async { drop(shutdown.wait_for(|end| *end).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = stopped => None,
            () = wait_until_overstayed(&ticket, STRANGERS_TIME_MAX) => None,
        };
        match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = wait_until_overstayed(&ticket, STRANGERS_GRACE) => {
                        rejections::CONNECTIONS.count();
                        Err("no caller authenticated on it in time".into())
                    }
                }
            }
        }
    };
    // Nothing is ever sent: this waits until all handles are dropped.
    let _ = released.recv().await;
    ended
}

/// The HTTP settings of connections.
fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEADERS_SIZE_MAX as usize * 2)
        .max_headers(HEADER_LINES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADERS_SIZE_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME_MAX)
        .enable_connect_protocol();
    builder
}

/// Waits until a connection has existed for `time` without authentication; never returns when a
/// caller has authenticated.
async fn wait_until_overstayed(ticket: &Ticket, time: Duration) {
    tokio::time::sleep(time).await;
    if ticket.is_authenticated() {
        std::future::pending::<()>().await;
    }
}

/// The response to a request over the limit of an unauthenticated connection.
fn too_many_requests() -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    rejections::STREAMS.count();
    let text = "too many requests at once on a connection without credentials\n";
    let body = http_body_util::Full::new(Bytes::from_static(text.as_bytes()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
