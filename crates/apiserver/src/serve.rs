//! Connections: TLS, HTTP/1.1 and HTTP/2, upgrades, graceful end. Serves any service, not only this crate's.

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
use crate::body::ending::Ending;
use crate::rejections;

pub use head_guard::HeadChecker;
use head_guard::{HeadGuard, Switched};
use strangers::{Strangers, Ticket};

/// Connections served at once; more wait in the listener's backlog, and those on which nobody has authenticated yield
/// to them. How many of those there may be: [`strangers`].
const CONNECTIONS_MAX: usize = 16_384;
/// A client must finish its TLS handshake within this.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client must send its request's head within this.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// All header fields of one request; impersonation headers can be long.
const HEADERS_SIZE_MAX: u32 = 128 * 1024;
/// Streams on one HTTP/2 connection: a client runs all its watches on one.
const STREAMS_MAX: u32 = 1_000;
/// Requests under way on one connection until somebody has authenticated on it: a browser fetches the pieces of the web
/// interface at once.
const STRANGERS_REQUESTS_MAX: usize = 100;
/// How long a connection is served until somebody has authenticated on it; then it is asked to end,
const STRANGERS_TIME_MAX: Duration = Duration::from_secs(60);
/// and closed after another.
const STRANGERS_GRACE: Duration = Duration::from_secs(30);
/// Flow-control windows: one stream, and all streams of a connection together. What strangers send and nobody reads
/// fills them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of answers that wait in one connection's buffers.
const SEND_BUFFER_MAX: usize = 256 * 1024;
/// Peers that do not answer a ping are gone.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIME_MAX: Duration = Duration::from_secs(15);
/// How long open requests may go on after the end was asked for: as long as a request may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);
/// How long those may that have no end of their own, such as watches.
const LONG_DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Where the peer is.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// In the extensions of every request: its connection. What goes on to use the connection after it
/// was upgraded keeps this for as long, so that the connection counts until then.
#[derive(Clone)]
pub struct Connection {
    kept: mpsc::Sender<Infallible>,
    ticket: Arc<Ticket>,
}

impl Connection {
    /// Waits until the connection must be given up: the server has ended.
    pub async fn cut(&self) {
        self.kept.closed().await;
    }

    /// Somebody has authenticated on the connection: the limits of strangers hold for it no more.
    pub fn authenticated(&self) {
        self.ticket.authenticated();
    }
}

/// Marks the connection of a request as one on which somebody has authenticated. Nothing for requests that came over
/// none.
pub fn authenticated(extensions: &http::Extensions) {
    if let Some(connection) = extensions.get::<Connection>() {
        connection.authenticated();
    }
}

/// Whether an address is that of a proxy with many people behind it.
pub type IsProxy = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Accepts connections until `shutdown` turns true. Then clients are told to go elsewhere, open
/// requests may finish, up to [`DRAIN_TIME_MAX`], and what goes on for ever is cut before that.
///
/// `tls` is asked for each connection, so that a renewed certificate takes effect without a restart.
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

/// As [`serve`], with proxies in front: their connections do not count by address.
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
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let requests = ShortRequests::new();
    let strangers = Strangers::default();
    loop {
        while connections.try_join_next().is_some() {}
        if places.available_permits() == 0 {
            strangers.yield_one();
        }
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
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
        // Refused by closing it: TLS would cost more than what is saved.
        let Some(ticket) = strangers.admit((!is_proxy(ip)).then_some(ip)) else { continue };
        let acceptor = TlsAcceptor::from(tls.borrow().clone());
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let requests = requests.clone();
        connections.spawn(async move {
            let ticket = Arc::new(ticket);
            let begin = Begin { stream, peer, acceptor, ticket: ticket.clone(), requests };
            let ended = tokio::select! {
                ended = connection(begin, service, shutdown) => ended,
                () = ticket.cut() => Err("it made room for another".into()),
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, error, "connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    let only_long_left = async {
        tokio::time::sleep(LONG_DRAIN_TIME_MAX).await;
        requests.ended().await;
    };
    tokio::select! {
        () = drained => return,
        () = only_long_left => {}
        () = tokio::time::sleep(DRAIN_TIME_MAX) => {}
    }
    connections.shutdown().await;
}

/// A connection that was accepted.
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
    let (kept, mut given_up) = mpsc::channel(1);
    let kept = Connection { kept, ticket: ticket.clone() };
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
        request.extensions_mut().insert(kept.clone());
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let open = requests.begin(&request);
        let may_switch = request.version() != Version::HTTP_2;
        let is_connect = request.method() == Method::CONNECT;
        let switched = switched.clone();
        // Its room is free as soon as the head of the response is there: watches stay for hours.
        let answer = under_way.is_some().then(|| Box::pin(service.clone().call(request)));
        async move {
            let response = match answer {
                Some(answer) => {
                    let Ok(response) = answer.await;
                    response.map(|body| body.map_err(Into::into).boxed_unsync())
                }
                None => too_many_requests(),
            };
            let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS
                || is_connect && response.status().is_success();
            if may_switch && is_switched {
                switched.set();
            }
            // Sent is what counts, not answered.
            Ok::<_, Infallible>(response.map(|body| Ending::new(body, (open, under_way))))
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
            () = overstayed(&ticket, STRANGERS_TIME_MAX) => None,
        };
        match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = overstayed(&ticket, STRANGERS_GRACE) => {
                        rejections::CONNECTIONS.count();
                        Err("nobody authenticated on it in time".into())
                    }
                }
            }
        }
    };
    // Nothing is ever sent: this waits for all that was kept.
    let _ = given_up.recv().await;
    ended
}

/// How HTTP is spoken.
fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEADERS_SIZE_MAX as usize * 2);
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

/// Waits until a connection has been there for `time` without anybody who has authenticated on it; for ever if somebody
/// has.
async fn overstayed(ticket: &Ticket, time: Duration) {
    tokio::time::sleep(time).await;
    if ticket.is_authenticated() {
        std::future::pending::<()>().await;
    }
}

/// What a connection is told on which nobody has authenticated.
fn too_many_requests() -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    rejections::STREAMS.count();
    let text = "too many requests at once on a connection without credentials\n";
    let body = http_body_util::Full::new(Bytes::from_static(text.as_bytes()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
