//! The end of a server, over real connections: what clients receive, and what the server waits for.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use apiserver::server::WATCH_END_SPREAD;
use futures::StreamExt;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use pki::{CertificateFiles, ClientCertificatePolicy, ServingCertificate};
use tls_trust::{roots_from_pem, trust_roots};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::wait::pause_between_polls;
use super::world::{MAPS, World};

type Socket = WebSocketStream<TlsStream<TcpStream>>;

struct Served {
    world: World,
    address: SocketAddr,
    client: Client,
    ca_pem: String,
    end: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start() -> Self {
        let world = World::start(None).await;
        world.server.set_ready(true);
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let authority = CertificateFiles::in_directory(folder.path(), "ca");
        let authority = pki::files::ensure_authority(&authority, "test", now).unwrap();
        let files = CertificateFiles::in_directory(folder.path(), "serving");
        let names = ["127.0.0.1".to_owned()];
        pki::files::ensure_serving(&files, &authority, "test", &names, now).unwrap();
        let ca_pem = std::fs::read_to_string(folder.path().join("ca.pem")).unwrap();
        let certificate = ServingCertificate::load(files).unwrap();
        let tls = pki::server_config(certificate, &ClientCertificatePolicy::None).unwrap();
        let (keep, tls) = watch::channel(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = world.server.clone();
        let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        let (end, ended) = watch::channel(false);
        let serving = tokio::spawn(async move {
            apiserver::serve::serve(listener, tls, service, ended).await;
            drop(keep);
        });
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info =
            AuthInfo { token: Some("t-admin".to_owned().into()), ..AuthInfo::default() };
        let client = Client::try_from(config).unwrap();
        Self { world, address, client, ca_pem, end, serving }
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Begins a watch. The task returns the time at which its stream ended cleanly.
    async fn watch(&self) -> JoinHandle<Instant> {
        let request = Request::get(format!("{MAPS}?watch=1")).body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut body = response.into_body().into_data_stream();
        tokio::spawn(async move {
            while let Some(chunk) = body.next().await {
                chunk.unwrap();
            }
            Instant::now()
        })
    }

    /// Begins a watch over a WebSocket.
    async fn socket(&self) -> Socket {
        let tls = trust_roots(roots_from_pem(&self.ca_pem).unwrap()).with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.unwrap();
        let url = format!("wss://{}{MAPS}?watch=1", self.address);
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("authorization", "Bearer t-admin".parse().unwrap());
        headers.insert("origin", "https://example.org".parse().unwrap());
        tokio_tungstenite::client_async(request, stream).await.unwrap().0
    }

    /// Waits until the metrics report this number of watches.
    async fn until_watched_by(&self, count: usize) {
        let begun = Instant::now();
        loop {
            let (_, text) = self.get("/metrics").await;
            let of_watches = |line: &&str| {
                line.starts_with("apiserver_longrunning_requests{") && line.contains("configmaps")
            };
            let reported =
                text.lines().find(of_watches).map_or("0", |line| line.rsplit(' ').next().unwrap());
            if reported == count.to_string() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{reported} watches, not {count}");
            pause_between_polls().await;
        }
    }
}

/// The next message of a socket, within the time limit of the server's end.
async fn next(socket: &mut Socket) -> Option<Message> {
    let next = tokio::time::timeout(Duration::from_secs(10), socket.next()).await;
    next.unwrap().map(Result::unwrap)
}

#[tokio::test]
async fn a_web_socket_counts_until_it_is_closed_and_is_closed_when_the_server_ends() {
    let served = Served::start().await;
    let request = Request::post(MAPS).header("content-type", "application/json");
    let body = Body::from(br#"{"metadata": {"name": "seen"}}"#.to_vec());
    let made = served.client.send(request.body(body).unwrap()).await.unwrap();
    assert_eq!(made.status(), 201);
    let mut sockets = Vec::new();
    for _ in 0..3 {
        let mut socket = served.socket().await;
        let first = next(&mut socket).await.unwrap();
        assert!(first.to_text().unwrap().contains("seen"), "{first}");
        sockets.push(socket);
    }
    served.until_watched_by(3).await;
    let mut leaving = sockets.pop().unwrap();
    leaving.close(None).await.unwrap();
    assert!(matches!(next(&mut leaving).await, Some(Message::Close(_))));
    drop(leaving);
    // Without a close frame.
    drop(sockets.pop().unwrap());
    served.until_watched_by(1).await;

    let begun = Instant::now();
    served.world.server.end_watches();
    served.end.send_replace(true);
    let last = next(&mut sockets[0]).await;
    let Some(Message::Close(Some(close))) = last else { panic!("{last:?}") };
    assert_eq!(close.code, CloseCode::Normal);
    assert!(next(&mut sockets[0]).await.is_none());
    tokio::time::timeout(Duration::from_secs(10), served.serving).await.unwrap().unwrap();
    assert!(begun.elapsed() < WATCH_END_SPREAD + Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_ending_server_announces_it_finishes_open_requests_and_refuses_new_ones() {
    let served = Served::start().await;
    assert_eq!(served.get("/readyz").await, (StatusCode::OK, "ok".to_owned()));
    let watches: Vec<_> = futures::stream::iter(0..40).then(|_| served.watch()).collect().await;
    let slow = {
        let client = served.client.clone();
        let body = r#"{"metadata": {"name": "slow"}, "data": {"seconds": "2"}}"#;
        let request = Request::post(MAPS).header("content-type", "application/json");
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        tokio::spawn(async move { client.send(request).await.unwrap().status() })
    };
    let writing = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1";
    let begun = Instant::now();
    while !served.get("/metrics").await.1.contains(writing) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the write has not begun");
        pause_between_polls().await;
    }

    // First the server only announces its end.
    served.world.server.begin_stop();
    let (code, text) = served.get("/readyz").await;
    assert_eq!(code, 500);
    assert!(text.contains("[-]shutdown failed: the server is shutting down"), "{text}");
    assert_eq!(served.get("/livez").await.0, 200);
    assert_eq!(served.get(MAPS).await.0, 200, "requests are served meanwhile");
    assert!(watches.iter().all(|watch| !watch.is_finished()));

    let begun = Instant::now();
    served.world.server.end_watches();
    served.end.send_replace(true);
    let mut ends = Vec::new();
    for watch in watches {
        ends.push(watch.await.unwrap() - begun);
    }
    ends.sort();
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    assert!(last < WATCH_END_SPREAD + Duration::from_secs(2), "{last:?}");
    assert!(last - first > WATCH_END_SPREAD / 4, "spread from {first:?} to {last:?}");
    assert_eq!(slow.await.unwrap(), 201, "earlier requests are finished");
    tokio::time::timeout(Duration::from_secs(10), served.serving).await.unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "nothing is waited for longer than needed");
    assert!(TcpStream::connect(served.address).await.is_err());
}
