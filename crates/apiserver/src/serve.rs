//! Connections: TLS, HTTP/1.1 and HTTP/2, upgrades, graceful end. Serves any service, not only this crate's.

mod drain;
mod read_ahead;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::attributes::ClientCertificates;
use crate::body::ending::Ending;
use crate::server::BoxError;
use drain::ShortRequests;
use read_ahead::ReadAhead;

/// Connections served at once; more wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 16_384;
/// A client must finish its TLS handshake within this.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client must send its request's head within this.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// All header fields of one request; impersonation headers can be long.
const HEADERS_SIZE_MAX: u32 = 128 * 1024;
/// Streams on one HTTP/2 connection: a client runs all its watches on one.
const STREAMS_MAX: u32 = 1_000;
/// Flow-control windows: one stream, and all streams of a connection together.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
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
pub struct Connection(mpsc::Sender<Infallible>);

impl Connection {
    /// Waits until the connection must be given up: the server has ended.
    pub async fn cut(&self) {
        self.0.closed().await;
    }
}

/// Accepts connections until `shutdown` turns true. Then clients are told to go elsewhere, open
/// requests may finish, up to [`DRAIN_TIME_MAX`], and what goes on for ever is cut before that.
///
/// `tls` is asked for each connection, so that a renewed certificate takes effect without a restart.
pub async fn serve<S, B>(
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
    loop {
        while connections.try_join_next().is_some() {}
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
        let acceptor = TlsAcceptor::from(tls.borrow().clone());
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let requests = requests.clone();
        connections.spawn(async move {
            let served = connection(stream, peer, acceptor, service, requests, shutdown);
            if let Err(error) = served.await {
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

async fn connection<S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    service: S,
    requests: ShortRequests,
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
    let (kept, mut given_up) = mpsc::channel(1);
    let kept = Connection(kept);
    stream.set_nodelay(true)?;
    let stream =
        tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(ReadAhead::new(stream))).await??;
    let certificates =
        stream.get_ref().1.peer_certificates().map(|chain| {
            ClientCertificates(Arc::new(chain.iter().map(|der| der.to_vec()).collect()))
        });
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        request.extensions_mut().insert(kept.clone());
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let open = requests.begin(&request);
        // Its room is free as soon as the head of the response is there: watches stay for hours.
        let answer = Box::pin(service.clone().call(request));
        async move {
            let Ok(response) = answer.await;
            // Sent is what counts, not answered.
            Ok::<_, Infallible>(response.map(|body| Ending::new(body.boxed_unsync(), open)))
        }
    });
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
    let ended = {
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let stopped = async { drop(shutdown.wait_for(|end| *end).await) };
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    // Nothing is ever sent: this waits for all that was kept.
    let _ = given_up.recv().await;
    ended
}
