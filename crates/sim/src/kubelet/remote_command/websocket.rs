//! A command's streams as messages of a WebSocket: the first byte of each is the stream's number.

use anyhow::Context;
use apiserver::connect::Switched;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};

use super::{CLOSE_TIME_MAX, PIECES_WAITING_MAX, Run, Streams, await_upgrade, exit_status};
use crate::kubelet::console::{Console, Output};
use crate::kubelet::websocket_config;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Since version 5: the stream that the second byte names has ended.
const CLOSE: u8 = 255;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// `can_close`: the version has [`CLOSE`].
pub async fn run(
    mut switched: Switched,
    can_close: bool,
    streams: Streams,
    run: Run,
) -> anyhow::Result<()> {
    let io = await_upgrade(&mut switched).await?;
    let config = Some(websocket_config());
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, config).await;
    let (sink, messages) = socket.split();
    let (input, typed) = mpsc::channel(PIECES_WAITING_MAX);
    let (input, typed) = match streams.stdin {
        true => (Some(input), Some(typed)),
        false => (None, None),
    };
    let mut reading = Box::pin(read(messages, input, can_close));
    tokio::select! {
        () = &mut reading => return Ok(()),
        done = serve(sink, typed, streams, run) => done?,
        () = switched.cut() => return Ok(()),
    }
    // Reads up to the client's close frame: unread bytes would reset the connection.
    let _ = timeout(CLOSE_TIME_MAX, reading).await;
    Ok(())
}

/// Passes on the input, until the client disconnects.
async fn read(
    mut messages: SplitStream<Socket>,
    mut input: Option<mpsc::Sender<Bytes>>,
    can_close: bool,
) {
    while let Some(Ok(message)) = messages.next().await {
        let Message::Binary(mut data) = message else { continue };
        if data.is_empty() {
            continue;
        }
        let channel = data.split_to(1)[0];
        match (channel, &input) {
            // The command may have closed its input.
            (STDIN, Some(to)) if !data.is_empty() => drop(to.send(data).await),
            (CLOSE, _) if can_close && data.first() == Some(&STDIN) => input = None,
            // The size of a terminal, and unknown messages.
            _ => {}
        }
    }
}

async fn serve(
    mut sink: SplitSink<Socket, Message>,
    typed: Option<mpsc::Receiver<Bytes>>,
    streams: Streams,
    run: Run,
) -> anyhow::Result<()> {
    // Like kube-apiserver, this signals that the connection is established.
    sink.send(message(STDOUT, &[])).await?;
    let (output, mut written) = mpsc::channel(PIECES_WAITING_MAX);
    let process = run(Console::new(typed, output, streams.tty));
    let forward = async {
        while let Some(piece) = written.recv().await {
            let message = match piece {
                Output::Standard(bytes) if streams.stdout => message(STDOUT, &bytes),
                Output::Errors(bytes) if streams.stderr => message(STDERR, &bytes),
                _ => continue,
            };
            if sink.send(message).await.is_err() {
                written.close();
            }
        }
    };
    let (code, ()) = tokio::join!(process, forward);
    let code = code.ok().context("the client has disconnected")?;
    sink.send(message(ERROR, exit_status(code).to_string().as_bytes())).await?;
    let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    sink.send(Message::Close(Some(normal))).await?;
    Ok(())
}

fn message(channel: u8, data: &[u8]) -> Message {
    let mut bytes = BytesMut::with_capacity(1 + data.len());
    bytes.put_u8(channel);
    bytes.extend_from_slice(data);
    Message::Binary(bytes.freeze())
}
