//! `port-forward`: every port of a simulated pod is an echo. An HTTP request is echoed in a
//! response, so that browsers and `curl` show it.
//!
//! Clients open two streams of SPDY for each connection, one for data and one for errors. The SPDY
//! connection is the upgraded one, or goes through a WebSocket.
//!
//! Source: `k8s.io/apimachinery/pkg/util/portforward` of Kubernetes 1.36.

use std::collections::HashMap;

use api_meta::status::Status;
use apiserver::body::respond::Body;
use apiserver::connect::{Connect, Protocol, Switched};
use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http::Response;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use super::container::Container;
use super::remote_command::{STREAM_PROTOCOL, await_upgrade, negotiate_protocol, spawn};
use super::spdy::{self, Stream};
use super::websocket_config;

const V1: &str = "portforward.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// Longest head of a request that is echoed in a response.
const HEAD_SIZE_MAX: usize = 16 * 1024;
const METHODS: [&[u8]; 7] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS "];
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Switches to the client's protocol, and echoes.
///
/// # Errors
/// 400: the client does not request an upgrade, or only to unsupported protocols.
pub fn open(mut connect: Connect, container: Container) -> Result<Response<Body>, Status> {
    match connect.protocol() {
        Some(Protocol::Spdy) => {
            let agreed = negotiate_protocol(&connect.offers(&STREAM_PROTOCOL), &[V1])?;
            let (response, switched) = connect.switch(Protocol::Spdy, (STREAM_PROTOCOL, agreed))?;
            spawn(over_spdy(switched, container));
            Ok(response)
        }
        Some(Protocol::WebSocket) => {
            let agreed = negotiate_protocol(&connect.websocket_protocols(), &[TUNNEL])?;
            let (response, switched) =
                connect.switch(Protocol::WebSocket, (SEC_WEBSOCKET_PROTOCOL, agreed))?;
            spawn(over_websocket(switched, container));
            Ok(response)
        }
        None => Err(Status::bad_request("Upgrade request required")),
    }
}

async fn over_spdy(mut switched: Switched, container: Container) -> anyhow::Result<()> {
    let io = await_upgrade(&mut switched).await?;
    tokio::select! {
        served = serve(io, container) => served,
        () = switched.cut() => Ok(()),
    }
}

async fn over_websocket(mut switched: Switched, container: Container) -> anyhow::Result<()> {
    let io = await_upgrade(&mut switched).await?;
    let config = Some(websocket_config());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, config).await;
    let (near, far) = tokio::io::duplex(2 * spdy::PIECE_SIZE_MAX);
    tokio::select! {
        served = serve(near, container) => served,
        carried = carry(socket, far) => carried,
        () = switched.cut() => Ok(()),
    }
}

/// Carries bytes between the messages of a WebSocket and a stream, until either ends.
async fn carry(
    socket: WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>,
    stream: DuplexStream,
) -> anyhow::Result<()> {
    let (mut sink, mut messages) = socket.split();
    let (mut read, mut write) = tokio::io::split(stream);
    let inwards = async {
        while let Some(message) = messages.next().await {
            if let Message::Binary(bytes) = message? {
                write.write_all(&bytes).await?;
            }
        }
        anyhow::Ok(())
    };
    let outwards = async {
        let mut buffer = BytesMut::with_capacity(spdy::PIECE_SIZE_MAX);
        while read.read_buf(&mut buffer).await? > 0 {
            sink.send(Message::Binary(buffer.split().freeze())).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = inwards => ended,
        ended = outwards => ended,
    }
}

/// Echoes on each pair of streams until the client leaves.
async fn serve(io: impl AsyncRead + AsyncWrite, container: Container) -> anyhow::Result<()> {
    let (opened, mut arriving) = mpsc::channel::<Stream>(1);
    let echoes = async {
        // Streams whose counterpart was not opened yet, by connection.
        let mut waiting: HashMap<String, Stream> = HashMap::new();
        let mut echoes = JoinSet::new();
        while let Some(stream) = arriving.recv().await {
            while echoes.try_join_next().is_some() {}
            if waiting.len() + echoes.len() >= spdy::STREAMS_MAX {
                break;
            }
            let id = stream.header("requestid").to_owned();
            let Some(first) = waiting.remove(&id) else {
                waiting.insert(id, stream);
                continue;
            };
            let is_data = stream.header("streamtype") == "data";
            let (data, error) = if is_data { (stream, first) } else { (first, stream) };
            let container = container.clone();
            echoes.spawn(async move { echo(data, error, &container).await });
        }
    };
    tokio::select! {
        served = spdy::serve(io, opened) => served,
        () = echoes => Ok(()),
    }
}

/// Sends back all received data, to its end.
async fn echo(mut data: Stream, error: Stream, container: &Container) {
    let port = data.header("port").to_owned();
    if port.parse::<u16>().ok().filter(|port| *port > 0).is_none() {
        let words = format!("\"{port}\" is no port");
        let _ = error.outgoing.write(words.into()).await;
    } else if let Some(first) = data.incoming.recv().await {
        // A client that has disconnected needs no response.
        let _ = respond(first, &mut data, &port, container).await;
    }
    data.outgoing.finish().await;
    error.outgoing.finish().await;
}

async fn respond(
    first: Bytes,
    data: &mut Stream,
    port: &str,
    container: &Container,
) -> Result<(), spdy::ClientDisconnected> {
    if METHODS.iter().any(|method| first.starts_with(method)) {
        let mut head = BytesMut::from(&first[..]);
        while find(&head, HEAD_END).is_none() && head.len() < HEAD_SIZE_MAX {
            let Some(more) = data.incoming.recv().await else { break };
            head.extend_from_slice(&more);
        }
        return data.outgoing.write(http_echo(&head, port, container).into()).await;
    }
    data.outgoing.write(first).await?;
    while let Some(piece) = data.incoming.recv().await {
        data.outgoing.write(piece).await?;
    }
    Ok(())
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

fn http_echo(head: &[u8], port: &str, container: &Container) -> String {
    let shown = String::from_utf8_lossy(&head[..find(head, HEAD_END).unwrap_or(head.len())]);
    let Container { namespace, pod, .. } = container;
    let mut body =
        format!("Port {port} of pod {namespace}/{pod} is simulated: an echo. It was sent:\n\n");
    body.extend(shown.lines().flat_map(|line| [line, "\n"]));
    let length = body.len();
    if head.starts_with(b"HEAD ") {
        body.clear();
    }
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n\
         {body}"
    )
}
