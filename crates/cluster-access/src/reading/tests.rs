//! Clusters that send too much, for too long, or an unexpected response.

use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;

use super::*;
use crate::access::Reachability;
use crate::limits::{BACK_OFF_FIRST, BUFFERED_PER_CLUSTER_MAX, LIST_BYTES_MAX, VOLUME_AT_ONCE};

const CHUNK: usize = 1024 * 1024;

fn conduct() -> (Arc<Conduct>, watch::Receiver<Reachability>) {
    let state = watch::Sender::new(Reachability::Unknown);
    let seen = state.subscribe();
    (Conduct::new("c-1".into(), state), seen)
}

/// An endless response that repeats this chunk.
fn endless(chunk: Bytes) -> Response<Body> {
    let chunks =
        futures::stream::repeat_with(move || Ok::<_, BoxError>(Frame::data(chunk.clone())));
    Response::new(wrap(StreamBody::new(chunks)))
}

fn blanks() -> Bytes {
    Bytes::from(vec![b' '; CHUNK])
}

async fn read(
    conduct: &Arc<Conduct>,
    reader: ResponseReader,
    path: &str,
    response: Response<Body>,
) -> Result<usize, String> {
    let kind = ResponseKind::of(&Method::GET, &path.parse().unwrap());
    let response = bound_response(conduct, reader, kind, async { Ok(response) }).await;
    let mut body = response.map_err(|error| error.to_string())?.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.map_err(|error| error.to_string())?.into_data().map_or(0, |data| data.len());
    }
    Ok(bytes)
}

#[test]
fn the_kind_of_response_follows_from_the_path() {
    for (path, is_list) in [
        ("/api/v1/nodes", true),
        ("/api/v1/namespaces", true),
        ("/api/v1/namespaces/a", false),
        ("/api/v1/namespaces/a/pods?limit=500", true),
        ("/api/v1/namespaces/a/pods/b", false),
        ("/apis/apps/v1/deployments", true),
        ("/apis/apps/v1/namespaces/a/deployments/b/status", false),
        ("/apis/apps/v1", false),
        ("/version", false),
    ] {
        let kind = ResponseKind::of(&Method::GET, &path.parse().unwrap());
        assert_eq!(matches!(kind, ResponseKind::List { is_first: true, .. }), is_list, "{path}");
    }
    for path in ["/api/v1/pods?a=b&watch=true", "/api/v1/watch/pods", "/x?follow=1"] {
        assert_eq!(
            ResponseKind::of(&Method::GET, &path.parse().unwrap()),
            ResponseKind::Watch,
            "{path}"
        );
    }
    let next =
        ResponseKind::of(&Method::GET, &"/api/v1/nodes?limit=500&continue=x".parse().unwrap());
    assert_eq!(next, ResponseKind::List { path: "/api/v1/nodes".to_owned(), is_first: false });
    let create = ResponseKind::of(&Method::POST, &"/api/v1/namespaces".parse().unwrap());
    assert_eq!(create, ResponseKind::Object);
}

#[tokio::test(start_paused = true)]
async fn an_endless_response_makes_its_cluster_unavailable_and_reports_why() {
    let (conduct, state) = conduct();
    let path = "/api/v1/namespaces/cattle-system";
    let refused =
        read(&conduct, ResponseReader::Server, path, endless(blanks())).await.unwrap_err();
    assert!(refused.contains("over 8388608 bytes"), "{refused}");
    let Reachability::Unreachable { reason } = state.borrow().clone() else { panic!() };
    assert!(reason.contains("over 8388608 bytes"), "{reason}");
    let result =
        read(&conduct, ResponseReader::Server, path, Response::new(crate::body::full("{}"))).await;
    assert!(result.unwrap_err().contains("30 s"), "no request is sent again at once");
    tokio::time::advance(BACK_OFF_FIRST).await;
    let result =
        read(&conduct, ResponseReader::Server, path, Response::new(crate::body::full("{}"))).await;
    assert_eq!(result, Ok(2));
    read(&conduct, ResponseReader::Server, path, endless(blanks())).await.unwrap_err();
    tokio::time::advance(BACK_OFF_FIRST).await;
    conduct.check().unwrap_err();
    tokio::time::advance(BACK_OFF_FIRST).await;
    conduct.check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_endless_list_and_a_list_of_endless_pages_are_aborted() {
    let (one, _) = conduct();
    let refused =
        read(&one, ResponseReader::Server, "/api/v1/nodes?limit=500", endless(blanks())).await;
    assert!(refused.unwrap_err().contains("in one response"));
    let (other, _) = conduct();
    let page = || Response::new(crate::body::full(vec![b' '; 8 * CHUNK]));
    let mut pages = 0;
    let mut path = "/api/v1/nodes?limit=500";
    let refused = loop {
        // Slow enough not to be a flood.
        tokio::time::advance(Duration::from_secs(2)).await;
        match read(&other, ResponseReader::Server, path, page()).await {
            Ok(_) => pages += 1,
            Err(error) => break error,
        }
        path = "/api/v1/nodes?limit=500&continue=x";
    };
    assert!(refused.contains("without an end"), "{refused}");
    assert_eq!(pages, LIST_BYTES_MAX / (8 * CHUNK as u64));
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_long_but_no_line_of_it() {
    let (conduct, _) = conduct();
    let refused = read(&conduct, ResponseReader::Server, "/api/v1/pods?watch=1", endless(blanks()))
        .await
        .unwrap_err();
    assert!(refused.contains("line of a watch"), "{refused}");
    tokio::time::advance(BACK_OFF_FIRST).await;
    let lines = (0..20).map(|_| {
        let mut line = vec![b' '; WATCH_LINE_BYTES_MAX - 1];
        line.push(b'\n');
        Ok::<_, BoxError>(Frame::data(line.into()))
    });
    let lines = Response::new(wrap(StreamBody::new(futures::stream::iter(lines))));
    let read = read(&conduct, ResponseReader::Server, "/api/v1/pods?watch=1", lines).await;
    assert_eq!(read, Ok(20 * WATCH_LINE_BYTES_MAX));
}

#[tokio::test(start_paused = true)]
async fn short_lines_without_an_end_are_a_flood_too() {
    let (conduct, _) = conduct();
    let line = Bytes::from([vec![b' '; CHUNK - 1], vec![b'\n']].concat());
    let refused =
        read(&conduct, ResponseReader::Server, "/api/v1/pods?watch=1", endless(line)).await;
    assert!(refused.unwrap_err().contains("more bytes than the server reads"));
    const { assert!(VOLUME_AT_ONCE > LIST_BYTES_MAX) };
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_has_a_deadline() {
    let (conduct, _) = conduct();
    let seconds = tokio::time::interval(Duration::from_secs(1));
    let drops = futures::stream::unfold(seconds, async |mut seconds| {
        seconds.tick().await;
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(b" "))), seconds))
    });
    let begun = Instant::now();
    let response = Response::new(wrap(StreamBody::new(Box::pin(drops))));
    let refused = read(&conduct, ResponseReader::Server, "/version", response).await.unwrap_err();
    assert!(refused.contains("within 60 s"), "{refused}");
    assert_eq!(begun.elapsed(), READ_TIME_MAX);
    let silent = bound_response(
        &conduct,
        ResponseReader::Server,
        ResponseKind::Object,
        std::future::pending(),
    );
    assert_eq!(silent.await.err(), Some(AccessError::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed() {
    let (conduct, _) = conduct();
    let mut response = Response::new(crate::body::empty());
    *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
    let refused = read(&conduct, ResponseReader::Server, "/version", response).await.unwrap_err();
    assert!(refused.contains("redirect"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_user_who_requests_too_much_does_not_make_the_cluster_unavailable() {
    let (conduct, state) = conduct();
    let refused =
        read(&conduct, ResponseReader::User, "/api/v1/configmaps", endless(blanks())).await;
    assert!(refused.unwrap_err().contains("in one response"));
    conduct.check().unwrap();
    assert_eq!(*state.borrow(), Reachability::Unknown);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_buffered_for_one_cluster_have_a_limit() {
    let (conduct, _) = conduct();
    let mut held = conduct.buffer(ResponseReader::Server);
    assert!(held.grow(BUFFERED_PER_CLUSTER_MAX));
    let full = || Response::new(crate::body::full("{}"));
    let refused = read(&conduct, ResponseReader::Server, "/version", full()).await.unwrap_err();
    assert!(refused.contains("too many responses at once"), "{refused}");
    drop(held);
    assert_eq!(read(&conduct, ResponseReader::Server, "/version", full()).await, Ok(2));
}
