//! Watches over WebSockets: one message for each event, text for JSON and binary for protobuf.
//!
//! Like kube-apiserver: `Origin` is required, and any value is accepted, since no browser adds
//! credentials by itself; a subprotocol is accepted when it is the only one that is offered;
//! messages of the client are ignored; and every socket closes with code 1000. In addition, a
//! client that does not read is disconnected, and so is one that sends too much at once.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, Stream, StreamExt};
use http::header::{
    CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use crate::body::respond::{self, Body};
use crate::cache::Framing;
use crate::connect::LongRunning;
use crate::serve::Connection;

/// Longest wait for the connection after the upgrade was accepted.
const UPGRADE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client must receive a message within this, or its socket is closed.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the close frame of the client.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
/// Longest message of a client. Messages are ignored, but must be read.
const CLIENT_MESSAGE_SIZE_MAX: usize = 64 * 1024;
/// Read buffer per socket, allocated at once.
const READ_BUFFER_SIZE: usize = 1024;
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// The upgrade of the connection, when the request asks for a WebSocket and the connection supports
/// it. On others, such as HTTP/2, the header is ignored.
pub fn upgrade_of(parts: &request::Parts) -> Option<OnUpgrade> {
    let is_websocket = text(&parts.headers, UPGRADE).eq_ignore_ascii_case("websocket");
    let mut connection = parts.headers.get_all(CONNECTION).into_iter();
    let upgrades = |value: &HeaderValue| {
        value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("upgrade"))
    };
    let is_requested = is_websocket && connection.any(upgrades);
    is_requested.then(|| parts.extensions.get::<OnUpgrade>().cloned()).flatten()
}

/// Responds with 101 and serves the frames in their own task, or with the reason for a rejection.
pub fn open(
    parts: &request::Parts,
    upgrade: OnUpgrade,
    frames: impl Stream<Item = VecDeque<Bytes>> + Send + 'static,
    framing: Framing,
) -> Response<Body> {
    let mut response = agree(&parts.headers);
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return response;
    }
    let long_running = LongRunning::default();
    response.extensions_mut().insert(long_running.clone());
    let connection = parts.extensions.get::<Connection>().cloned();
    tokio::spawn(async move {
        let cut = async {
            match &connection {
                Some(connection) => connection.cut().await,
                None => std::future::pending().await,
            }
        };
        let served = async {
            match timeout(UPGRADE_TIME_MAX, upgrade).await {
                Ok(Ok(upgraded)) => serve(TokioIo::new(upgraded), frames, framing).await,
                _ => tracing::debug!("a client requested a WebSocket and disconnected"),
            }
        };
        tokio::select! {
            () = cut => {}
            () = served => {}
        }
        drop(long_running);
    });
    response
}

/// The server's half of the handshake, with the rejections of kube-apiserver.
fn agree(headers: &HeaderMap) -> Response<Body> {
    let bad = |problem: &'static str| {
        let mut response = Response::new(respond::full(problem));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    };
    let key = text(headers, SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return bad("mismatch challenge/response");
    }
    if text(headers, SEC_WEBSOCKET_VERSION) != "13" {
        let mut response = bad("missing or bad WebSocket Version");
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, VERSION);
        return response;
    }
    if !is_origin(text(headers, ORIGIN)) {
        let mut response = Response::new(respond::empty());
        *response.status_mut() = StatusCode::FORBIDDEN;
        return response;
    }
    let offered = text(headers, SEC_WEBSOCKET_PROTOCOL).trim();
    if offered.contains(',') {
        return bad("");
    }
    let mut response = Response::new(respond::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set_header = |name, value: &str| {
        let value = HeaderValue::from_str(value).expect("of a header, or base64");
        response.headers_mut().insert(name, value);
    };
    set_header(CONNECTION, "Upgrade");
    set_header(UPGRADE, "websocket");
    set_header(SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes()));
    if !offered.is_empty() {
        set_header(SEC_WEBSOCKET_PROTOCOL, offered);
    }
    response
}

/// The first value of a header; empty when there is none, or no text.
fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether the origin is a path, `*`, or begins with a scheme: nothing else is required of it.
fn is_origin(origin: &str) -> bool {
    let is_scheme = |scheme: &str| {
        let mut bytes = scheme.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    origin == "*"
        || origin.starts_with('/')
        || origin.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// Serves the socket until it ends.
async fn serve<S>(io: S, frames: impl Stream<Item = VecDeque<Bytes>>, framing: Framing)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_SIZE)
        .write_buffer_size(0)
        .max_message_size(Some(CLIENT_MESSAGE_SIZE_MAX))
        .max_frame_size(Some(CLIENT_MESSAGE_SIZE_MAX));
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut sink, mut stream) = socket.split();
    let has_client = tokio::select! {
        () = discard(&mut stream) => true,
        has_client = send_frames(&mut sink, frames, framing) => has_client,
    };
    if !has_client {
        return;
    }
    let close = async {
        let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let _ = sink.send(Message::Close(Some(normal))).await;
        // Reads on to the close frame of the client: unread bytes would turn the close into an
        // error for the client.
        discard(&mut stream).await;
        let mut socket = sink.reunite(stream).expect("they are halves of one socket");
        let _ = socket.get_mut().shutdown().await;
    };
    let _ = timeout(CLOSE_TIME_MAX, close).await;
}

/// Reads and ignores what the client sends, until it closes or exceeds the size limit. Pings get a
/// response.
async fn discard<S>(stream: &mut SplitStream<WebSocketStream<S>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = stream.next().await {
        if message.is_close() {
            return;
        }
    }
}

/// Sends the frames until the stream ends; `false` when the client does not receive them in time.
async fn send_frames<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    frames: impl Stream<Item = VecDeque<Bytes>>,
    framing: Framing,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut frames = std::pin::pin!(frames);
    while let Some(together) = frames.next().await {
        for frame in together {
            let Some(message) = message(frame, framing) else { return true };
            match timeout(MESSAGE_TIME_MAX, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }
    true
}

/// The frame as a message, which has its own length; `None` when it should be text and is not.
fn message(frame: Bytes, framing: Framing) -> Option<Message> {
    match framing {
        Framing::Json => Utf8Bytes::try_from(frame).ok().map(Message::Text),
        Framing::Protobuf => {
            Some(Message::Binary(frame.slice(kubernetes_protobuf::WATCH_LENGTH_SIZE..)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const BUFFER: usize = 1024;

    async fn client(near: tokio::io::DuplexStream) -> WebSocketStream<tokio::io::DuplexStream> {
        WebSocketStream::from_raw_socket(near, Role::Client, None).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_disconnected_after_a_minute_with_one_frame_buffered() {
        let (near, far) = tokio::io::duplex(BUFFER);
        let requested_frames = Arc::new(AtomicUsize::new(0));
        let counted = requested_frames.clone();
        let frames = futures::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            VecDeque::from([Bytes::from(vec![b'x'; 4 * BUFFER])])
        });
        let begun = tokio::time::Instant::now();
        serve(far, frames, Framing::Json).await;
        assert_eq!(requested_frames.load(Ordering::Relaxed), 1);
        assert_eq!(begun.elapsed().as_secs(), MESSAGE_TIME_MAX.as_secs());
        drop(near);
    }

    #[tokio::test(start_paused = true)]
    async fn pings_get_a_pong_and_oversized_messages_a_normal_close() {
        let (near, far) = tokio::io::duplex(BUFFER);
        let serving = tokio::spawn(serve(far, futures::stream::pending(), Framing::Json));
        let mut client = client(near).await;
        client.send(Message::text("means nothing")).await.unwrap();
        client.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
        let response = client.next().await.unwrap().unwrap();
        assert_eq!(response, Message::Pong(Bytes::from_static(b"there?")));
        let long = Message::binary(vec![0; CLIENT_MESSAGE_SIZE_MAX + 1]);
        let (mut sink, mut stream) = client.split();
        let (_, response) = tokio::join!(sink.send(long), stream.next());
        let Some(Ok(Message::Close(Some(close)))) = response else { panic!("{response:?}") };
        assert_eq!((close.code, close.reason.as_str()), (CloseCode::Normal, ""));
        drop((sink, stream));
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn each_event_is_one_message_and_the_end_is_normal() {
        let (near, far) = tokio::io::duplex(BUFFER);
        let frames = [VecDeque::from([Bytes::from("{}\n"), "[]\n".into()])];
        let serving = tokio::spawn(serve(far, futures::stream::iter(frames), Framing::Json));
        let mut client = client(near).await;
        for text in ["{}\n", "[]\n"] {
            assert_eq!(client.next().await.unwrap().unwrap(), Message::text(text));
        }
        let end = client.next().await.unwrap().unwrap();
        assert!(matches!(end, Message::Close(Some(close)) if close.code == CloseCode::Normal));
        assert!(client.next().await.is_none());
        serving.await.unwrap();
        let binary = message(Bytes::from_static(b"\0\0\0\x01x"), Framing::Protobuf);
        assert_eq!(binary, Some(Message::binary(&b"x"[..])));
        assert!(message(Bytes::from_static(b"\xff"), Framing::Json).is_none());
    }

    #[test]
    fn an_origin_is_a_path_or_has_a_scheme() {
        for origin in ["https://example.org", "file://", "chrome-extension://x", "/x", "a:b", "*"] {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in ["", "null", "example.org", "1a:b", "://x"] {
            assert!(!is_origin(origin), "{origin}");
        }
    }
}
