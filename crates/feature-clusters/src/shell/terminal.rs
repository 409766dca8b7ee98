//! The person's end of a shell: channels of `kubectl exec` over a WebSocket, and how it ends.
//!
//! Source of the channels: Kubernetes, `remotecommand` over WebSockets, version 4 and the older
//! form in base64 that Rancher's interface uses.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use rest_view::sockets::SocketIo;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// Channels in binary frames: the first byte is the number of the channel.
const BINARY: &str = "v4.channel.k8s.io";
/// Channels in text frames: the first letter is the number, the rest is base64.
const BASE64: &str = "base64.channel.k8s.io";
/// The subprotocols, in the order in which a client that offers both gets one.
pub(super) const PROTOCOLS: [&str; 2] = [BINARY, BASE64];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Longest message of a person, in bytes: what is pasted at once.
pub(super) const MESSAGE_MAX_BYTES: usize = 1024 * 1024;
/// A person must take a frame within this time, or the shell ends.
const FRAME_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest wait for the person's half of a close.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(500);

/// Why a shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The person closed the socket, or their connection broke.
    Left,
    /// The program in the pod ended.
    Finished,
    /// The text is for the person.
    Failed(String),
    /// The login no longer holds.
    Revoked,
    /// The server stops.
    Stopping,
}

impl Ending {
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
    fn text(&self) -> Option<&str> {
        match self {
            Self::Left | Self::Finished => None,
            Self::Failed(text) => Some(text),
            Self::Revoked => Some("the login no longer holds; log in again"),
            Self::Stopping => Some("the server is stopping; open the shell again in a moment"),
        }
    }
    fn close_code(&self) -> CloseCode {
        match self {
            Self::Left | Self::Finished | Self::Failed(_) => CloseCode::Normal,
            Self::Revoked => CloseCode::Policy,
            Self::Stopping => CloseCode::Away,
        }
    }
}

/// A frame of the person, with the number of its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TerminalFrame {
    Input(Bytes),
    /// The size of the terminal.
    Resize(Bytes),
    /// Nothing for the pod.
    Nothing,
}

impl TerminalFrame {
    fn of(frame: Bytes) -> Self {
        match frame.first() {
            Some(&STDIN) if frame.len() > 1 => Self::Input(frame),
            Some(&RESIZE) => Self::Resize(frame),
            _ => Self::Nothing,
        }
    }
}

/// What a person sends.
pub(super) struct Keyboard {
    stream: SplitStream<WebSocketStream<SocketIo>>,
    is_base64: bool,
}

impl Keyboard {
    /// The next frame. Cancel safe.
    ///
    /// # Errors
    /// The person left.
    pub(super) async fn next(&mut self) -> Result<TerminalFrame, Ending> {
        match self.stream.next().await {
            Some(Ok(Message::Binary(frame))) if !self.is_base64 => Ok(TerminalFrame::of(frame)),
            Some(Ok(Message::Text(text))) if self.is_base64 => {
                Ok(decode(&text).map_or(TerminalFrame::Nothing, TerminalFrame::of))
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Ending::Left),
            Some(Ok(_)) => Ok(TerminalFrame::Nothing),
        }
    }
}

/// What a person reads.
pub(super) struct Screen {
    sink: SplitSink<WebSocketStream<SocketIo>, Message>,
    is_base64: bool,
}

impl Screen {
    /// Sends a frame of the pod as it is.
    ///
    /// # Errors
    /// The person left, or reads too slowly.
    pub(super) async fn show(&mut self, frame: Bytes) -> Result<(), Ending> {
        let message = match self.is_base64 {
            false => Message::Binary(frame),
            true => Message::text(encode(&frame)),
        };
        self.send(message).await
    }
    /// Shows a line of this server.
    ///
    /// # Errors
    /// Those of [`Self::show`].
    pub(super) async fn say(&mut self, line: &str) -> Result<(), Ending> {
        let line = format!("\x1b[2m{}\x1b[0m\r\n", printable(line));
        self.show(frame(STDOUT, line.as_bytes())).await
    }
    /// Lets every proxy on the way see that the socket is used.
    ///
    /// # Errors
    /// Those of [`Self::show`].
    pub(super) async fn ping(&mut self) -> Result<(), Ending> {
        self.send(Message::Ping(Bytes::new())).await
    }
    async fn send(&mut self, message: Message) -> Result<(), Ending> {
        match timeout(FRAME_TIME_MAX, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Ending::Left),
        }
    }
}

/// Takes over an agreed socket.
pub(super) async fn open(io: SocketIo, protocol: &str) -> (Keyboard, Screen) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_MAX_BYTES))
        .max_frame_size(Some(MESSAGE_MAX_BYTES));
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let is_base64 = protocol == BASE64;
    (Keyboard { stream, is_base64 }, Screen { sink, is_base64 })
}

/// Says why the shell ended, and closes the socket.
pub(super) async fn close(mut keyboard: Keyboard, mut screen: Screen, ending: &Ending) {
    let farewell = async {
        if let Some(text) = ending.text() {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "message": text});
            let _ = screen.show(frame(STATUS, status.to_string().as_bytes())).await;
        }
        let frame = CloseFrame { code: ending.close_code(), reason: Default::default() };
        let _ = screen.sink.send(Message::Close(Some(frame))).await;
        // Read until the client closes: unread bytes would make the close an error for the client.
        while keyboard.next().await.is_ok() {}
    };
    let _ = timeout(CLOSE_TIME_MAX, farewell).await;
}

fn frame(channel: u8, content: &[u8]) -> Bytes {
    [&[channel], content].concat().into()
}

/// Without characters that a terminal obeys: reasons come from the cluster.
fn printable(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).collect()
}

fn encode(frame: &[u8]) -> String {
    let (channel, content) = frame.split_first().unwrap_or((&STDOUT, &[]));
    format!("{channel}{}", BASE64_STANDARD.encode(content))
}

fn decode(text: &str) -> Option<Bytes> {
    let channel = text.chars().next()?.to_digit(10)?;
    let content = BASE64_STANDARD.decode(&text[1..]).ok()?;
    Some(frame(u8::try_from(channel).ok()?, &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_form_carries_the_same_channels() {
        assert_eq!(encode(&[1, b'h', b'i']), "1aGk=");
        assert_eq!(decode("0aGk=").unwrap(), Bytes::from_static(b"\0hi"));
        for bad in ["", "x", "0!", "é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_person_sends_input_and_sizes_and_nothing_else() {
        let of = |frame: &'static [u8]| TerminalFrame::of(Bytes::from_static(frame));
        assert_eq!(of(b"\0l"), TerminalFrame::Input(Bytes::from_static(b"\0l")));
        assert_eq!(of(b"\x04{}"), TerminalFrame::Resize(Bytes::from_static(b"\x04{}")));
        for nothing in [b"".as_slice(), b"\0", b"\x01out", b"\x03status"] {
            assert_eq!(of(nothing), TerminalFrame::Nothing, "{nothing:?}");
        }
    }

    #[test]
    fn a_reason_from_the_cluster_cannot_move_the_cursor() {
        assert_eq!(printable("pull \x1b[2Jfailed\r\n"), "pull [2Jfailed");
    }
}
