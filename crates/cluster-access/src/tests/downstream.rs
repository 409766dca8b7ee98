//! A fake API server: TLS, HTTP/1.1 and HTTP/2, upgrades. It records every header that it gets.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast};
use tokio_rustls::TlsAcceptor;
use tunnel::Io;

use crate::body::{Body, empty, full};
use crate::dialer::{Dialer, Resolve};
use crate::endpoint::{BearerToken, Endpoint, Route};
use crate::error::AccessError;

pub const SECOND: Duration = Duration::from_secs(1);
pub const TOKEN: &str = "downstream-token";

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    #[expect(dead_code, reason = "shown by Debug when a test fails")]
    pub method: Method,
    pub target: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub trailers: Option<HeaderMap>,
}

impl Recorded {
    /// All values of a header, in order.
    pub fn values(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }
}

/// A running fake, with what it has received.
pub struct Downstream {
    pub endpoint: Endpoint,
    pub recorded: Arc<Mutex<Vec<Recorded>>>,
    /// Connections that finished their TLS handshake.
    pub connections: Arc<AtomicUsize>,
    /// Lines of the responses to `/watch`; the first is the whole response to `/slow`.
    pub events: broadcast::Sender<Bytes>,
    /// Bytes produced for the responses to `/flood`.
    pub flooded: Arc<AtomicUsize>,
    /// How many requests for `/lost` get no response and end every connection.
    pub lost: Arc<AtomicUsize>,
    state: Arc<State>,
}

struct State {
    tls: TlsAcceptor,
    recorded: Arc<Mutex<Vec<Recorded>>>,
    connections: Arc<AtomicUsize>,
    events: broadcast::Sender<Bytes>,
    flooded: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    end: Notify,
}

impl Downstream {
    /// On a free loopback port. `alpn`: what it offers, best first.
    pub async fn start(alpn: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let this = Self::new(port, alpn);
        let state = this.state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(state.clone(), stream));
            }
        });
        this
    }

    /// Without a listener: dialled through [`InMemory`].
    pub fn new(port: u16, alpn: &[&str]) -> Self {
        let ca = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(ca.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![ca.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let endpoint = Endpoint {
            address: tunnel::Address::new("127.0.0.1", port).unwrap(),
            ca_pem: ca.cert.pem(),
            server_name: None,
            token: BearerToken::new(TOKEN),
            route: Route::Direct,
        };
        let recorded = Arc::<Mutex<Vec<Recorded>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let events = broadcast::Sender::new(64);
        let flooded = Arc::<AtomicUsize>::default();
        let lost = Arc::<AtomicUsize>::default();
        let state = Arc::new(State {
            flooded: flooded.clone(),
            lost: lost.clone(),
            end: Notify::new(),
            tls: TlsAcceptor::from(Arc::new(config)),
            recorded: recorded.clone(),
            connections: connections.clone(),
            events: events.clone(),
        });
        Self { endpoint, recorded, connections, events, flooded, lost, state }
    }

    /// The last request that it received; panics if there is none.
    pub fn last(&self) -> Recorded {
        self.recorded.lock().last().cloned().expect("something reached the downstream")
    }

    /// The number of connections that it has accepted so far.
    pub fn connection_count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(state: Arc<State>, io: impl Io + 'static) {
    let Ok(stream) = state.tls.accept(io).await else { return };
    state.connections.fetch_add(1, Ordering::SeqCst);
    let of_service = state.clone();
    let service = hyper::service::service_fn(move |request| respond(of_service.clone(), request));
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http2().max_header_list_size(1 << 20);
    tokio::select! {
        _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service) => {}
        () = state.end.notified() => {}
    }
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let mut recorded = Recorded {
        method: parts.method.clone(),
        target: parts.uri.path_and_query().unwrap().to_string(),
        version: parts.version,
        headers: parts.headers.clone(),
        trailers: None,
    };
    if parts.headers.contains_key(header::UPGRADE) {
        state.recorded.lock().push(recorded);
        return Ok(upgrade(Request::from_parts(parts, body)));
    }
    let path = parts.uri.path().rsplit_once('/').map(|(_, last)| last).unwrap_or_default();
    if matches!(path, "watch" | "flood" | "never") {
        state.recorded.lock().push(recorded);
        return Ok(endless(path, &state).await);
    }
    if path == "slow" {
        let mut events = state.events.subscribe();
        state.recorded.lock().push(recorded);
        return Ok(Response::new(full(events.recv().await.unwrap())));
    }
    let is_one_less = |left: usize| left.checked_sub(1);
    if path == "lost"
        && state.lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_one_less).is_ok()
    {
        state.recorded.lock().push(recorded);
        state.end.notify_waiters();
        return std::future::pending().await;
    }
    let (count, trailers) = drain(body).await;
    recorded.trailers = trailers;
    state.recorded.lock().push(recorded);
    let mut response = Response::new(full(format!("{{\"bytes\":{count}}}")));
    match path {
        "big" => *response.body_mut() = big(),
        "unauthorized" => *response.status_mut() = StatusCode::UNAUTHORIZED,
        "redirect" => {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(header::LOCATION, "/api/v1/elsewhere/".parse().unwrap());
        }
        "cookie" => {
            for (name, value) in [
                ("set-cookie", "R_SESS=stolen"),
                ("clear-site-data", "\"*\""),
                ("x-kept", "kept"),
                ("x-hop", "hop"),
                ("connection", "x-hop"),
            ] {
                if parts.version == Version::HTTP_11 || name != "connection" {
                    response.headers_mut().insert(name, value.parse().unwrap());
                }
            }
        }
        _ => {}
    }
    Ok(response)
}

async fn drain(mut body: Incoming) -> (u64, Option<HeaderMap>) {
    let (mut count, mut trailers) = (0, None);
    while let Some(Ok(frame)) = body.frame().await {
        match frame.into_data() {
            Ok(data) => count += data.len() as u64,
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    (count, trailers)
}

/// 100 MB, made as it is read.
fn big() -> Body {
    let blocks = futures::stream::iter(0..1600)
        .map(|_| Ok::<_, crate::BoxError>(Frame::data(Bytes::from_static(&[7; 65_536]))));
    use futures::StreamExt;
    crate::body::wrap(StreamBody::new(blocks))
}

async fn endless(path: &str, state: &State) -> Response<Body> {
    use futures::StreamExt;
    let frame = |bytes| Ok::<_, crate::BoxError>(Frame::data(bytes));
    match path {
        "watch" => {
            let events = state.events.subscribe();
            let lines = futures::stream::unfold(events, |mut events| async move {
                events.recv().await.ok().map(|line| (line, events))
            });
            Response::new(crate::body::wrap(StreamBody::new(lines.map(frame))))
        }
        "flood" => {
            let flooded = state.flooded.clone();
            let zeros =
                futures::stream::repeat(Bytes::from_static(&[0; 16_384])).inspect(move |block| {
                    flooded.fetch_add(block.len(), Ordering::Relaxed);
                });
            Response::new(crate::body::wrap(StreamBody::new(zeros.map(frame))))
        }
        _ => std::future::pending().await,
    }
}

/// Switches protocols and echoes bytes until the end, then says `bye`.
fn upgrade(mut request: Request<Incoming>) -> Response<Body> {
    let mut response = Response::new(empty());
    if request.uri().path().ends_with("/refuse") {
        *response.status_mut() = StatusCode::FORBIDDEN;
        *response.body_mut() = full("{\"kind\":\"Status\",\"code\":403}");
        return response;
    }
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, "Upgrade".parse().unwrap());
    headers.insert(header::UPGRADE, request.headers()[header::UPGRADE].clone());
    headers.insert("x-stream-protocol-version", "v4.channel.k8s.io".parse().unwrap());
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        let mut block = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut block).await {
                Ok(0) => break,
                Ok(count) => stream.write_all(&block[..count]).await.unwrap(),
                Err(_) => return,
            }
            stream.flush().await.unwrap();
        }
        let _ = stream.write_all(b"bye").await;
        let _ = stream.shutdown().await;
    });
    response
}

/// Dials a downstream through pipes, so that a paused clock can be used.
pub struct InMemory {
    state: Arc<State>,
    pub dials: Arc<AtomicUsize>,
}

impl InMemory {
    /// Connections to the same fake without a socket.
    pub fn to(downstream: &Downstream) -> Self {
        Self { state: downstream.state.clone(), dials: Arc::default() }
    }
}

impl Dialer for InMemory {
    fn dial<'a>(
        &'a self,
        cluster: &'a str,
        _: &'a Endpoint,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Io>, AccessError>> {
        self.dials.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if cluster == "hole" {
                let _ = tokio::time::timeout(timeout, std::future::pending::<()>()).await;
                return Err(AccessError::TimedOut);
            }
            if cluster == "gone" {
                return Err(AccessError::NotConnected);
            }
            let (near, far) = tokio::io::duplex(256 * 1024);
            tokio::spawn(serve(self.state.clone(), far));
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}

/// Resolves hosts, and refuses none.
pub fn by_name() -> Arc<Resolve> {
    Arc::new(|host, port| {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    })
}

/// A GET without headers and body.
pub fn get(path: &str) -> Request<Body> {
    Request::builder().uri(path).body(empty()).unwrap()
}
