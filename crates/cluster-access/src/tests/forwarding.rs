//! Bodies, watches, upgrades, revocation, failure.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::downstream::SECOND;
use super::front::Front;
use crate::body::{Body, empty, full, wrap};
use crate::{Address, Endpoint};

const BOTH: &[&str] = &["h2", "http/1.1"];

fn get(path: &str) -> Request<Body> {
    Request::get(format!("/k8s/clusters/c-1{path}")).body(empty()).unwrap()
}

async fn text(response: http::Response<hyper::body::Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn path_and_query_are_forwarded_unchanged() {
    let front = Front::start(BOTH).await;
    for (path, target) in [
        ("", "/"),
        ("/", "/"),
        ("/api/v1/nodes?limit=5&continue=a%2Fb", "/api/v1/nodes?limit=5&continue=a%2Fb"),
        ("/a%2Fb//c%20d?x=../..", "/a%2Fb//c%20d?x=../.."),
        (
            "/api/v1/namespaces/n/services/http:s:80/proxy/x;y=1",
            "/api/v1/namespaces/n/services/http:s:80/proxy/x;y=1",
        ),
        ("/...", "/..."),
    ] {
        assert_eq!(front.send(get(path)).await.status(), 200, "{path}");
        assert_eq!(front.downstream.last().target, target);
    }
}

#[tokio::test]
async fn paths_with_dot_segments_or_without_a_cluster_are_refused() {
    let front = Front::start(BOTH).await;
    for (path, status) in [
        ("/k8s/clusters/c-1/../c-2/api", 400),
        ("/k8s/clusters/c-1/%2e%2E/c-2/api", 400),
        ("/k8s/clusters/c-1/api/..%2f..%2fv3", 400),
        ("/k8s/clusters/c-1/%252e%252e/v3", 400),
        ("/k8s/clusters/c-1/..%5cv3", 400),
        ("/k8s/clusters/c-1/a/..;/b", 400),
        ("/k8s/clusters/c-1/./api", 400),
        ("/k8s/clusters/..%2fc-1/api", 404),
        ("/k8s/clusters//api", 404),
        ("/k8s/clusters/C-1/api", 404),
        ("/k8s/clusters/c-2/api", 404),
        ("/v3/clusters", 404),
    ] {
        let request = Request::get(path).body(empty()).unwrap();
        let response = front.send(request).await;
        assert_eq!(response.status(), status, "{path}");
        assert!(text(response).await.contains("\"kind\":\"Status\""));
    }
    assert!(front.downstream.recorded.lock().is_empty());
}

#[tokio::test]
async fn a_large_body_streams_in_both_directions() {
    use futures::StreamExt;
    let front = Front::start(BOTH).await;
    let blocks = futures::stream::iter(0..1600)
        .map(|_| Ok::<_, crate::BoxError>(Frame::data(Bytes::from_static(&[7; 65_536]))));
    let body = wrap(StreamBody::new(blocks));
    let request = Request::post("/k8s/clusters/c-1/upload").body(body).unwrap();
    assert_eq!(text(front.send(request).await).await, "{\"bytes\":104857600}");

    let mut body = front.send(get("/big")).await.into_body();
    let mut count = 0;
    while let Some(frame) = body.frame().await {
        count += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(count, 104_857_600);
}

#[tokio::test]
async fn an_unread_response_is_not_produced() {
    let front = Front::start(BOTH).await;
    let _stalled = front.send(get("/flood")).await;
    let flooded = || front.downstream.flooded.load(std::sync::atomic::Ordering::Relaxed);
    let (mut before, mut same) = (0, 0);
    while same < 50 {
        front.send(get("/api")).await;
        same = if flooded() == before { same + 1 } else { 0 };
        before = flooded();
        assert!(before < 64 << 20, "{before} bytes were made for a reader that stands still");
    }
}

#[tokio::test]
async fn a_stalled_reader_delays_no_other() {
    let front = Front::start(BOTH).await;
    let mut stalled = Vec::new();
    for _ in 0..200 {
        stalled.push(front.send(get("/flood")).await);
    }
    // Two hundred are more than one connection carries; a request that waited for them would wait
    // forever.
    let others = async {
        for _ in 0..20 {
            assert_eq!(text(front.send(get("/api")).await).await, "{\"bytes\":0}");
        }
    };
    tokio::time::timeout(60 * SECOND, others).await.expect("the others are served");
    assert_eq!(front.access.connection_count("c-1"), 3);
}

#[tokio::test]
async fn a_watch_passes_on_each_line_as_it_arrives() {
    let front = Front::start(BOTH).await;
    let mut body = front.send(get("/watch?watch=1")).await.into_body();
    for line in ["one\n", "two\n"] {
        front.downstream.events.send(line.into()).unwrap();
        let frame = tokio::time::timeout(5 * SECOND, body.frame()).await.unwrap();
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), line);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_is_cancelled_downstream() {
    let front = Front::start(BOTH).await;
    let response = front.send(get("/watch")).await;
    assert_eq!(front.downstream.events.receiver_count(), 1);
    drop(response);
    let waiting = tokio::time::timeout(10 * SECOND, async {
        while front.downstream.events.receiver_count() > 0 {
            tokio::task::yield_now().await;
        }
    });
    waiting.await.expect("the downstream must hear that nobody listens");
}

#[tokio::test]
async fn an_upgraded_stream_carries_bytes_and_its_end_both_ways() {
    let front = Front::start(BOTH).await;
    let request = "POST /k8s/clusters/c-1/exec HTTP/1.1\nHost: x\nConnection: keep-alive, Upgrade\n\
                   Upgrade: spdy/3.1\n\n";
    let (stream, response) = front.raw(request).await;
    assert!(response.starts_with("HTTP/1.1 101"), "{response}");
    assert!(response.to_lowercase().contains("upgrade: spdy/3.1"), "{response}");
    assert!(response.contains("x-stream-protocol-version: v4.channel.k8s.io"), "{response}");
    let (mut read, mut write) = stream.into_split();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    tokio::time::timeout(20 * SECOND, read.read_to_end(&mut got)).await.unwrap().unwrap();
    writing.await.unwrap();
    assert!(got.ends_with(b"bye"), "what came after our half-close arrived too");
    assert!(got[..got.len() - 3] == expected);
}

#[tokio::test]
async fn a_websocket_over_http2_is_an_upgrade_downstream() {
    let front = Front::start(BOTH).await;
    let mut client = front.http2().await;
    // The server's settings must have arrived before the extended CONNECT is used.
    while !client.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    let mut request = Request::connect("https://x/k8s/clusters/c-1/exec?command=sh")
        .header("sec-websocket-version", "13")
        .body(())
        .unwrap();
    request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let (response, mut send) = client.send_request(request, false).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    let seen = front.downstream.last();
    assert_eq!(
        (seen.values("upgrade"), seen.values("sec-websocket-key").len()),
        (vec!["websocket".to_owned()], 1)
    );
    front.assert_identity(&super::front::ALICE, "extended connect");
    send.send_data(Bytes::from_static(b"hello"), true).unwrap();
    let mut body = response.into_body();
    let mut got = Vec::new();
    while let Some(chunk) = body.data().await {
        got.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(got, b"hellobye");
}

#[tokio::test]
async fn a_refused_upgrade_gets_the_response_of_the_cluster_and_h2c_is_not_switched_to() {
    let front = Front::start(BOTH).await;
    let (mut stream, response) = front
        .raw(
            "GET /k8s/clusters/c-1/refuse HTTP/1.1\nHost: x\nConnection: Upgrade\n\
             Upgrade: websocket\n\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    let mut body = [0; 28];
    stream.read_exact(&mut body).await.unwrap();
    assert_eq!(&body, b"{\"kind\":\"Status\",\"code\":403}");
    let (_stream, response) = front
        .raw(
            "GET /k8s/clusters/c-1/api HTTP/1.1\nHost: x\nConnection: Upgrade, HTTP2-Settings\n\
             Upgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__\n\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let seen = front.downstream.last();
    assert!(seen.values("upgrade").is_empty() && seen.values("http2-settings").is_empty());
}

#[tokio::test]
async fn revoking_a_token_or_a_role_cuts_what_is_open() {
    for (which, status) in [("token", 401), ("role", 403)] {
        let front = Front::start(BOTH).await;
        let mut watch = front.send(get("/watch?watch=1")).await.into_body();
        let upgrade = "GET /k8s/clusters/c-1/exec HTTP/1.1\nHost: x\nConnection: Upgrade\n\
                       Upgrade: websocket\n\n";
        let (mut exec, _) = front.raw(upgrade).await;
        exec.write_all(b"hi").await.unwrap();
        exec.read_exact(&mut [0; 2]).await.unwrap();
        let never = front.send(get("/never?follow=true"));
        let (waiting, revoked) = tokio::join!(never, revoke(&front, which, 3));
        assert_eq!(waiting.status(), status);
        assert!(watch.frame().await.unwrap().is_err());
        // The stream has ended, with an end or a reset.
        let _ = exec.read_to_end(&mut Vec::new()).await;
        assert!(revoked.elapsed() < SECOND, "{which}: {:?}", revoked.elapsed());
    }
}

#[tokio::test]
async fn a_request_that_began_with_a_role_ends_as_it_would_with_it() {
    let front = Front::start(BOTH).await;
    let respond = async {
        revoke(&front, "role", 1).await;
        front.downstream.events.send(Bytes::from_static(b"late")).unwrap();
    };
    let (response, ()) = tokio::join!(front.send(get("/slow")), respond);
    assert_eq!((response.status(), text(response).await.as_str()), (StatusCode::OK, "late"));
}

/// Revokes the credential or a role when the cluster has got `requests`; returns when that was.
async fn revoke(front: &Front, which: &str, requests: usize) -> Instant {
    while front.downstream.recorded.lock().len() < requests {
        tokio::task::yield_now().await;
    }
    match which {
        "token" => front.caller.lock().revoked.cancel(),
        _ => front.roles.role.cancel(),
    }
    Instant::now()
}

#[tokio::test]
async fn headers_of_a_service_behind_the_cluster_do_not_affect_drovers_own_site() {
    for alpn in [BOTH, &["http/1.1"]] {
        let front = Front::start(alpn).await;
        let response = front.send(get("/cookie")).await;
        let headers = response.headers();
        for name in ["set-cookie", "clear-site-data"] {
            assert!(!headers.contains_key(name), "{name}");
        }
        assert_eq!(headers["x-kept"], "kept");
        assert_eq!(headers.contains_key("x-hop"), alpn == BOTH, "nominated in h1 only");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("sandbox "));
        let redirect = front.send(get("/redirect")).await;
        assert_eq!(redirect.headers()["location"], "/k8s/clusters/c-1/api/v1/elsewhere/");
    }
}

#[tokio::test]
async fn a_downstream_401_is_reported_as_unavailable_unless_a_service_sent_it() {
    let front = Front::start(BOTH).await;
    let response = front.send(get("/api/unauthorized")).await;
    assert_eq!(response.status(), 503);
    assert!(text(response).await.contains("refuses the credential that its agent has reported"));
    let response = front.send(get("/api/v1/namespaces/n/services/s/proxy/unauthorized")).await;
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn unreachable_clusters_are_reported_promptly_with_what_to_do() {
    let front = Front::start(BOTH).await;
    // A port without a listener: bound and released.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let request = |cluster: &str| {
        Request::get(format!("/k8s/clusters/{cluster}/api")).body(full("x")).unwrap()
    };
    let started = Instant::now();
    let response = front.send(request("c-unreported")).await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert!(text(response).await.contains("has no known API endpoint"));

    let endpoint = front.downstream.endpoint.clone();
    let tunnelled = Endpoint { route: crate::Route::Tunnel, ..endpoint.clone() };
    front.access.set_endpoint("c-1", tunnelled).unwrap();
    let response = front.send(request("c-1")).await;
    assert_eq!(response.status(), 503);
    let body = text(response).await;
    assert!(body.contains("cluster agent is not connected; check that"), "{body}");

    let dead = Endpoint { address: Address::new("127.0.0.1", port).unwrap(), ..endpoint };
    front.access.set_endpoint("c-1", dead).unwrap();
    let response = front.send(request("c-1")).await;
    assert_eq!(response.status(), 502);
    assert!(text(response).await.contains("cannot be reached"));
    assert!(started.elapsed() < 5 * SECOND);
}

#[tokio::test]
async fn connect_and_trace_are_not_forwarded() {
    let front = Front::start(BOTH).await;
    let request = Request::builder().method("TRACE").uri("/k8s/clusters/c-1/api");
    assert_eq!(front.send(request.body(empty()).unwrap()).await.status(), 405);
    assert!(front.downstream.recorded.lock().is_empty());
}
