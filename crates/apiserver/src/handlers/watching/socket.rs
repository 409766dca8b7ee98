//! Watches over WebSockets: one message an event, of text for JSON and of bytes for protobuf.
//!
//! As kube-apiserver does it: an origin must be told, and any will do, since no browser adds
//! credentials by itself; a subprotocol is agreed to when it is the only one that is offered; what a
//! client says means nothing; and every end is the closing code 1000. Beyond that, a client that
//! does not read is cut off, and one that says too much at once.

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

/// Longest wait for the connection after the upgrade was agreed to.
const UPGRADE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client must take a message within this, or its socket is cut.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the client's half of a close.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
/// Longest message of a client. They mean nothing, but must be read.
const CLIENT_MESSAGE_SIZE_MAX: usize = 64 * 1024;
/// Read buffer per socket, allocated at once.
const READ_BUFFER_SIZE: usize = 1024;
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// The connection to come, when a WebSocket is asked for where there can be one. Elsewhere, as on
/// connections of HTTP/2, the wish is ignored.
pub fn wanted(parts: &request::Parts) -> Option<OnUpgrade> {
    let is_websocket = text(&parts.headers, UPGRADE).eq_ignore_ascii_case("websocket");
    let mut connection = parts.headers.get_all(CONNECTION).into_iter();
    let upgrades = |value: &HeaderValue| {
        value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("upgrade"))
    };
    let is_asked = is_websocket && connection.any(upgrades);
    is_asked.then(|| parts.extensions.get::<OnUpgrade>().cloned()).flatten()
}

/// The answer: 101, and the frames in a task of their own, or why not.
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
    let lasting = LongRunning::default();
    response.extensions_mut().insert(lasting.clone());
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
                _ => tracing::debug!("a client asked for a WebSocket and went away"),
            }
        };
        tokio::select! {
            () = cut => {}
            () = served => {}
        }
        drop(lasting);
    });
    response
}

/// The server's half of the handshake, with the refusals of kube-apiserver.
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
    let mut say = |name, value: &str| {
        let value = HeaderValue::from_str(value).expect("of a header, or base64");
        response.headers_mut().insert(name, value);
    };
    say(CONNECTION, "Upgrade");
    say(UPGRADE, "websocket");
    say(SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes()));
    if !offered.is_empty() {
        say(SEC_WEBSOCKET_PROTOCOL, offered);
    }
    response
}

/// The first value of a header; empty when there is none, or no text.
fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether it is a path, `*`, or begins with a scheme, which is all that is asked of an origin.
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
    let taken = tokio::select! {
        () = discard(&mut stream) => true,
        taken = tell(&mut sink, frames, framing) => taken,
    };
    if !taken {
        return;
    }
    let farewell = async {
        let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let _ = sink.send(Message::Close(Some(normal))).await;
        // Reading on to the client's own close: bytes left unread would turn the end into an error
        // for the client.
        discard(&mut stream).await;
        let mut socket = sink.reunite(stream).expect("they are halves of one socket");
        let _ = socket.get_mut().shutdown().await;
    };
    let _ = timeout(CLOSE_TIME_MAX, farewell).await;
}

/// Reads what the client sends, which means nothing, until it leaves or says too much. Pings are answered.
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

/// Sends the frames until there are no more; `false` when the client does not take them.
async fn tell<S>(
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

/// The frame as a message, which has its own length; absent when it is no text and should be.
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
    async fn a_client_that_does_not_read_holds_one_message_for_a_minute() {
        let (near, far) = tokio::io::duplex(BUFFER);
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let frames = futures::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            VecDeque::from([Bytes::from(vec![b'x'; 4 * BUFFER])])
        });
        let begun = tokio::time::Instant::now();
        serve(far, frames, Framing::Json).await;
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(begun.elapsed().as_secs(), MESSAGE_TIME_MAX.as_secs());
        drop(near);
    }

    #[tokio::test(start_paused = true)]
    async fn pings_are_answered_and_whoever_says_too_much_is_bidden_farewell() {
        let (near, far) = tokio::io::duplex(BUFFER);
        let serving = tokio::spawn(serve(far, futures::stream::pending(), Framing::Json));
        let mut client = client(near).await;
        client.send(Message::text("means nothing")).await.unwrap();
        client.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
        let answer = client.next().await.unwrap().unwrap();
        assert_eq!(answer, Message::Pong(Bytes::from_static(b"there?")));
        let long = Message::binary(vec![0; CLIENT_MESSAGE_SIZE_MAX + 1]);
        let (mut sink, mut stream) = client.split();
        let (_, answer) = tokio::join!(sink.send(long), stream.next());
        let Some(Ok(Message::Close(Some(close)))) = answer else { panic!("{answer:?}") };
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
