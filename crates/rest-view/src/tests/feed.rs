//! The change feed over HTTP and a real API server, in one process: what a client sees of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::Authorizer;
use futures::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_util::sync::CancellationToken;

use super::in_process::Cluster;
use crate::feed::{CLIENT_MESSAGE_MAX_BYTES, CLIENT_MESSAGES_MAX, FRAME_TIME_MAX};
use crate::sockets::SOCKETS_PER_CALLER_MAX;
use crate::{Caller, Feed, RestView, Subscriber};

/// Longest wait for a frame that must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Within this, a frame that must not come would have come.
const LOOK_AROUND: Duration = Duration::from_millis(600);

/// The cluster of [`super::in_process`] with a feed.
struct World {
    cluster: Arc<Cluster>,
    stop: CancellationToken,
    /// Watches that the feed has begun.
    watches: Arc<AtomicUsize>,
}

struct Socket(WebSocketStream<DuplexStream>);

/// What comes out of a socket.
#[derive(Debug, PartialEq)]
enum Out {
    Frame(Value),
    Closed(u16, String),
}

impl World {
    async fn start() -> Self {
        let mut cluster = Cluster::start().await;
        let (stop, watches) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (admin, count) = (cluster.client("admin"), watches.clone());
        let counting = tower::service_fn(move |request: Request<kube::client::Body>| {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            count.fetch_add(usize::from(is_watch), Ordering::SeqCst);
            let admin = admin.clone();
            async move { admin.send(request).await }
        });
        let feed = Feed::new(kube::Client::new(counting, "default"), stop.clone());
        let bare = RestView::new([], []);
        cluster.view = std::mem::replace(&mut cluster.view, bare).with_feed(feed);
        Self { cluster: Arc::new(cluster), stop, watches }
    }

    fn subscriber(&self, user: &str) -> Subscriber {
        let rbac = self.cluster.rbac.clone();
        Subscriber {
            caller: Caller::user(user),
            client: self.cluster.client(user),
            rights: Box::new(move || rbac.generation()),
        }
    }

    /// Sends the request over a connection with this much room for unread bytes.
    async fn connect(
        &self,
        subscriber: Subscriber,
        request: Request<()>,
        room: usize,
    ) -> Result<Socket, Response<Option<Vec<u8>>>> {
        let (near, far) = tokio::io::duplex(room);
        let cluster = self.cluster.clone();
        let subscriber = Arc::new(std::sync::Mutex::new(Some(subscriber)));
        let service = service_fn(move |request: Request<Incoming>| {
            let (cluster, subscriber) = (cluster.clone(), subscriber.lock().unwrap().take());
            async move {
                let request = request.map(|_| ());
                let answer = cluster.view.subscribe(request, subscriber.unwrap()).await;
                Ok::<_, std::convert::Infallible>(answer.map(Full::new))
            }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(far), service)
                .with_upgrades(),
        );
        match tokio_tungstenite::client_async(request, near).await {
            Ok((stream, _)) => Ok(Socket(stream)),
            Err(tungstenite::Error::Http(response)) => Err(*response),
            Err(error) => panic!("{error}"),
        }
    }

    async fn open(&self, user: &str, path: &str) -> Socket {
        let opened = self.connect(self.subscriber(user), get(path, &[]), 64 * 1024).await;
        opened.unwrap_or_else(|response| panic!("refused: {response:?}"))
    }

    async fn refused(&self, subscriber: Subscriber, request: Request<()>) -> (StatusCode, Value) {
        let answer = match self.connect(subscriber, request, 64 * 1024).await {
            Ok(_) => panic!("a socket was opened"),
            Err(answer) => answer,
        };
        let body = answer.body().clone().unwrap_or_default();
        (answer.status(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, user: &str, path: &str) -> Value {
        let reply = self.cluster.call(user, "GET", path, Value::Null).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }

    async fn paint(&self, widget: &str, color: &str) {
        let (path, sent) = (format!("/v3/widgets/{widget}"), json!({"color": color}));
        let reply = self.cluster.call("admin", "PUT", &path, sent).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    async fn delete(&self, path: &str) {
        let reply = self.cluster.call("admin", "DELETE", path, Value::Null).await;
        assert_eq!(reply.status, 204, "{}", reply.body);
    }
}

/// The host is the one that the other requests of these tests name.
fn get(path: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = format!("ws://h{path}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

impl Socket {
    /// The next thing but a ping.
    async fn next(&mut self) -> Out {
        let next = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        if frame["name"] != "ping" {
                            return Out::Frame(frame);
                        }
                    }
                    Some(Ok(Message::Close(Some(close)))) => {
                        return Out::Closed(close.code.into(), close.reason.to_string());
                    }
                    other => panic!("neither a frame nor a close with its reason: {other:?}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("something comes")
    }

    async fn frame(&mut self) -> (String, Value) {
        match self.next().await {
            Out::Frame(mut frame) => {
                (frame["name"].as_str().unwrap().to_owned(), frame["data"].take())
            }
            Out::Closed(code, reason) => panic!("closed: {code} {reason}"),
        }
    }

    /// The data of `count` changes, by id.
    async fn changes(&mut self, count: usize) -> BTreeMap<String, Value> {
        let mut changes = BTreeMap::new();
        while changes.len() < count {
            let (name, data) = self.frame().await;
            assert_eq!(name, "resource.change", "{data}");
            changes.insert(data["id"].as_str().unwrap().to_owned(), data);
        }
        changes
    }

    async fn assert_silent(&mut self) {
        let next = tokio::time::timeout(LOOK_AROUND, self.0.next()).await;
        assert!(next.is_err(), "{next:?}");
    }

    async fn assert_closed(&mut self, code: u16, word: &str) {
        loop {
            if let Out::Closed(found, reason) = self.next().await {
                assert!(found == code && reason.contains(word), "{found} {reason}");
                return;
            }
        }
    }
}

#[tokio::test]
async fn what_there_is_comes_first_and_then_each_change_as_a_get_shows_it() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let (one, two) =
        (world.cluster.widget(&depot, "One").await, world.cluster.widget(&depot, "Two").await);
    let path = "/v3/subscribe?eventNames=resource.change&resourceTypes=widget&resourceTypes=depot";
    let mut socket = world.open("admin", path).await;
    let first = socket.changes(3).await;
    for (id, path) in [
        (&depot, format!("/v3/depots/{depot}")),
        (&one, format!("/v3/widgets/{one}")),
        (&two, format!("/v3/widgets/{two}")),
    ] {
        assert_eq!(first[id], world.get("admin", &path).await);
    }

    world.paint(&one, "red").await;
    let (name, data) = socket.frame().await;
    assert_eq!((name.as_str(), &data["color"]), ("resource.change", &json!("red")));
    assert_eq!(data, world.get("admin", &format!("/v3/widgets/{one}")).await);
    let three = world.cluster.widget(&depot, "Three").await;
    assert!(socket.changes(1).await.contains_key(&three));

    let last = world.get("admin", &format!("/v3/widgets/{two}")).await;
    world.delete(&format!("/v3/widgets/{two}")).await;
    assert_eq!(socket.frame().await, ("resource.remove".to_owned(), last));
    socket.assert_silent().await;
}

/// As browsers request it on their existing connection.
#[tokio::test]
async fn over_http_2_the_feed_opens_by_an_extended_connect() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let widget = world.cluster.widget(&depot, "One").await;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (cluster, subscriber) = (world.cluster.clone(), world.subscriber("admin"));
    let subscriber = Arc::new(std::sync::Mutex::new(Some(subscriber)));
    let service = service_fn(move |request: Request<Incoming>| {
        let (cluster, subscriber) = (cluster.clone(), subscriber.lock().unwrap().take());
        async move {
            let answer = cluster.view.subscribe(request.map(|_| ()), subscriber.unwrap()).await;
            Ok::<_, std::convert::Infallible>(answer.map(Full::new))
        }
    });
    let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    server.enable_connect_protocol();
    tokio::spawn(server.serve_connection(TokioIo::new(far), service));
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) =
        client.handshake::<_, Full<bytes::Bytes>>(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);

    let request = Request::connect("https://view.example/v3/subscribe?resourceTypes=widget")
        .header("origin", "https://view.example")
        .header("sec-websocket-version", "13")
        .extension(hyper::ext::Protocol::from_static("websocket"))
        .body(Full::default())
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!() };
    let frame: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(frame["name"], "resource.change");
    assert_eq!(frame["data"]["id"], widget.as_str(), "{frame}");
}

#[tokio::test]
async fn a_socket_shows_what_its_caller_may_see_now() {
    let world = World::start().await;
    let (north, south) = (world.cluster.depot("north").await, world.cluster.depot("south").await);
    let in_north = world.cluster.widget(&north, "One").await;
    let in_south = world.cluster.widget(&south, "Two").await;
    world.cluster.allow("ann", &["get"], "depots", "", &north);
    world.cluster.allow("ann", &["get", "list"], "widgets", &north, "");
    let mut socket = world.open("ann", "/v3/subscribe").await;
    let mut seen: Vec<String> = socket.changes(2).await.into_keys().collect();
    seen.sort();
    let mut expected = vec![north.clone(), in_north.clone()];
    expected.sort();
    assert_eq!(seen, expected);

    // What she may not see makes no frame, however it changes.
    world.paint(&in_south, "red").await;
    world.delete(&format!("/v3/widgets/{}", world.cluster.widget(&south, "Gone").await)).await;
    socket.assert_silent().await;

    // A right that is given shows what was there all the time.
    world.cluster.allow("ann", &["get"], "depots", "", &south);
    let (_, data) = socket.frame().await;
    assert_eq!(data, world.get("ann", &format!("/v3/depots/{south}")).await);
    let (_, name) = in_south.split_once(':').unwrap();
    world.cluster.allow("ann", &["get"], "widgets", &south, name);
    let (_, data) = socket.frame().await;
    assert_eq!((data["id"].as_str(), &data["color"]), (Some(in_south.as_str()), &json!("red")));

    // A right that is taken takes the object away, with nothing said of it.
    world.cluster.forbid("ann", "widgets", &south, name);
    world.paint(&in_south, "green").await;
    let gone = json!({"id": in_south, "type": "widget", "baseType": "widget"});
    assert_eq!(socket.frame().await, ("resource.remove".to_owned(), gone));
    world.paint(&in_south, "blue").await;
    world.delete(&format!("/v3/widgets/{in_south}")).await;
    socket.assert_silent().await;
}

#[tokio::test]
async fn below_a_resource_only_what_belongs_to_it_comes() {
    let world = World::start().await;
    let (north, south) = (world.cluster.depot("north").await, world.cluster.depot("south").await);
    let in_north = world.cluster.widget(&north, "One").await;
    let in_south = world.cluster.widget(&south, "Two").await;
    let mut socket = world.open("admin", &format!("/v3/depots/{north}/subscribe")).await;
    assert!(socket.changes(1).await.contains_key(&in_north));
    world.paint(&in_south, "red").await;
    world.paint(&in_north, "red").await;
    let (_, data) = socket.frame().await;
    assert_eq!(data["id"], in_north.as_str());
    socket.assert_silent().await;

    let eve = || world.subscriber("eve");
    let path = format!("/v3/depots/{north}/subscribe");
    assert_eq!(world.refused(eve(), get(&path, &[])).await.0, 403);
    let missing = get("/v3/depots/d-none/subscribe", &[]);
    assert_eq!(world.refused(world.subscriber("admin"), missing).await.0, 404);
}

#[tokio::test]
async fn a_token_of_one_depot_opens_only_the_socket_of_that_depot() {
    let world = World::start().await;
    let (north, south) = (world.cluster.depot("north").await, world.cluster.depot("south").await);
    let bound = || {
        let mut subscriber = world.subscriber("admin");
        subscriber.caller.token_cluster = Some(north.clone());
        subscriber
    };
    for path in ["/v3/subscribe".to_owned(), format!("/v3/depots/{south}/subscribe")] {
        assert_eq!(world.refused(bound(), get(&path, &[])).await.0, 401, "{path}");
    }
    let own = get(&format!("/v3/depots/{north}/subscribe"), &[]);
    assert!(world.connect(bound(), own, 1024).await.is_ok());
}

#[tokio::test]
async fn who_has_no_business_here_gets_no_socket() {
    let world = World::start().await;
    let admin = || world.subscriber("admin");
    let mut nobody = world.subscriber("admin");
    nobody.caller = Caller::anonymous();
    assert_eq!(world.refused(nobody, get("/v3/subscribe", &[])).await.0, 401);

    let (status, body) =
        world.refused(admin(), get("/v3/subscribe?resourceTypes=nothing", &[])).await;
    assert_eq!((status.as_u16(), &body["message"]), (404, &json!("no resources types matched")));

    // A plain GET, and an upgrade of another version.
    let plain = Request::get("/v3/subscribe").header("host", "h").body(()).unwrap();
    assert_eq!(world.cluster.view.subscribe(plain, admin()).await.status(), 400);
    let old = get("/v3/subscribe", &[("sec-websocket-version", "8")]);
    let (status, body) = world.refused(admin(), old).await;
    assert!(status == 400 && body["message"].as_str().unwrap().contains("WebSocket"), "{body}");
}

#[tokio::test]
async fn one_caller_has_a_limited_number_of_sockets() {
    let world = World::start().await;
    let mut open = Vec::new();
    for _ in 0..SOCKETS_PER_CALLER_MAX {
        open.push(world.open("ann", "/v3/subscribe").await);
    }
    let (status, body) = world.refused(world.subscriber("ann"), get("/v3/subscribe", &[])).await;
    assert_eq!((status.as_u16(), &body["code"]), (429, &json!("TooManyRequests")));
    world.open("bob", "/v3/subscribe").await;
    drop(open);
    let again = async {
        while world.connect(world.subscriber("ann"), get("/v3/subscribe", &[]), 1024).await.is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("slots are released");
}

#[tokio::test]
async fn all_sockets_share_one_watch_that_ends_with_the_last() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let mut sockets = Vec::new();
    for user in ["admin", "ann", "bob"].iter().cycle().take(30) {
        sockets.push(world.open(user, "/v3/subscribe").await);
    }
    for socket in sockets.iter_mut().step_by(3) {
        assert!(socket.changes(1).await.contains_key(&depot));
    }
    // One for depots, one for widgets.
    assert_eq!(world.watches.load(Ordering::SeqCst), 2);
    drop(sockets);
    let begun_anew = async {
        loop {
            world.open("admin", "/v3/subscribe").await.changes(1).await;
            if world.watches.load(Ordering::SeqCst) > 2 {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, begun_anew).await.expect("the watches ended in between");
}

#[tokio::test]
async fn a_login_that_ends_ends_its_sockets_and_no_others() {
    let world = World::start().await;
    let subscriber = world.subscriber("admin");
    let login = subscriber.caller.ended.clone();
    let opened = world.connect(subscriber, get("/v3/subscribe", &[]), 1024).await;
    let mut socket = opened.unwrap_or_else(|response| panic!("{response:?}"));
    let mut other = world.open("admin", "/v3/subscribe").await;
    login.cancel();
    socket.assert_closed(1008, "log in again").await;
    let depot = world.cluster.depot("north").await;
    assert!(other.changes(1).await.contains_key(&depot));
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let world = World::start().await;
    let mut socket = world.open("admin", "/v3/subscribe").await;
    world.stop.cancel();
    socket.assert_closed(1001, "connect again").await;
    drop(socket);
    let closed = world.cluster.view.feed_closed();
    tokio::time::timeout(PATIENCE, closed).await.expect("all sockets end");
}

#[tokio::test]
async fn when_changes_may_have_been_missed_the_client_must_come_again() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let mut socket = world.open("admin", "/v3/subscribe?resourceTypes=depot").await;
    socket.changes(1).await;
    // The kind is served no more: its watch ends and cannot be resumed.
    world.cluster.server.registry().uninstall("example.io", "depots").await;
    socket.assert_closed(1013, "connect again").await;
    drop(depot);
}

#[tokio::test]
async fn clients_that_talk_are_not_listened_to_and_cut_when_it_is_too_much() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let mut socket = world.open("admin", "/v3/subscribe").await;
    socket.changes(1).await;
    for message in [Message::text("{\"name\":\"stop\"}"), Message::binary(vec![0u8; 64])] {
        socket.0.send(message).await.unwrap();
    }
    world.cluster.widget(&depot, "One").await;
    socket.changes(1).await;
    for _ in 0..CLIENT_MESSAGES_MAX {
        socket.0.send(Message::text("again")).await.unwrap();
    }
    socket.assert_closed(1008, "too many").await;

    let mut socket = world.open("admin", "/v3/subscribe").await;
    socket.0.send(Message::text("x".repeat(CLIENT_MESSAGE_MAX_BYTES + 1))).await.unwrap();
    socket.assert_closed(1009, "too long").await;
}

#[tokio::test]
async fn a_slow_client_gets_fewer_and_newer_states() {
    const UPDATES: usize = 200;
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    let widget = world.cluster.widget(&depot, "One").await;
    let path = get("/v3/subscribe?resourceTypes=widget", &[]);
    let opened = world.connect(world.subscriber("admin"), path, 512).await;
    let mut socket = opened.unwrap_or_else(|response| panic!("{response:?}"));
    socket.changes(1).await;
    for update in 0..UPDATES {
        world.paint(&widget, if update % 2 == 0 { "red" } else { "green" }).await;
    }
    world.paint(&widget, "blue").await;
    let mut frames = 0;
    loop {
        let (_, data) = socket.frame().await;
        frames += 1;
        if data["color"] == "blue" {
            break;
        }
    }
    assert!(frames < UPDATES / 10, "{frames} frames");
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut() {
    let world = World::start().await;
    let depot = world.cluster.depot("north").await;
    for name in ["One", "Two", "Three"] {
        world.cluster.widget(&depot, name).await;
    }
    let opened = world.connect(world.subscriber("admin"), get("/v3/subscribe", &[]), 512).await;
    let mut socket = opened.unwrap_or_else(|response| panic!("{response:?}"));
    socket.changes(1).await;
    // From here on, time is a matter of the clock alone; pings fill the buffers if nothing else
    // does.
    tokio::time::pause();
    let cut = world.cluster.view.feed_closed();
    tokio::time::timeout(100 * FRAME_TIME_MAX, cut).await.expect("the socket ends");
    drop(socket);
}

#[tokio::test]
async fn pings_say_that_the_feed_is_alive() {
    let world = World::start().await;
    let mut socket = world.open("admin", "/v3/subscribe").await;
    socket.assert_silent().await;
    tokio::time::pause();
    let first = socket.0.next().await.unwrap().unwrap();
    let frame: Value = serde_json::from_str(first.to_text().unwrap()).unwrap();
    assert_eq!(frame, json!({"name": "ping", "data": {}}));
}
