//! The client's end of a WebSocket: messages, the frames of the change feed, and its close frame.
//!
//! Calls block, like those of [`crate::http`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{SinkExt, StreamExt};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::http::{Client, runtime};

/// Longest wait for an expected frame.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// An open WebSocket.
pub struct Socket {
    stream: WebSocketStream<TlsStream<TcpStream>>,
}

/// A message of the socket.
#[derive(Clone, Debug)]
pub enum Event {
    /// A text frame, as JSON.
    Frame(Value),
    /// The server closed it, with this code and reason.
    Closed(u16, String),
}

/// A response instead of the upgrade: status and body.
pub type Refusal = (u16, Value);

impl Socket {
    /// Requests an upgrade on `path`. The outer error is that of the connection.
    ///
    /// # Errors
    /// The server is unreachable, not trusted, or its response is not HTTP.
    pub fn open(
        client: &Client,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<std::result::Result<Self, Refusal>> {
        let url = format!("wss://{}{}{path}", client.authority(), client.prefix());
        let mut request = url.into_client_request()?;
        let bearer = client.token().map(|token| format!("Bearer {token}"));
        let bearer = bearer.as_deref().map(|value| ("authorization", value));
        for (name, value) in bearer.into_iter().chain(headers.iter().copied()) {
            let name: HeaderName = name.parse()?;
            request.headers_mut().insert(name, HeaderValue::from_str(value)?);
        }
        runtime().block_on(async {
            let stream = client.handshake().await?;
            match tokio_tungstenite::client_async(request, stream).await {
                Ok((stream, _)) => Ok(Ok(Self { stream })),
                Err(tungstenite::Error::Http(response)) => {
                    let body = response.body().as_deref().unwrap_or_default();
                    let body = serde_json::from_slice(body).unwrap_or_default();
                    Ok(Err((response.status().as_u16(), body)))
                }
                Err(error) => Err(error).context("no WebSocket"),
            }
        })
    }

    /// Sends a text.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, text: impl Into<String>) -> Result<()> {
        let message = Message::text(text.into());
        runtime().block_on(async { Ok(self.stream.send(message).await?) })
    }

    /// Waits for the next message, without a limit.
    ///
    /// # Errors
    /// The connection ends without a close frame, or a frame is not text.
    pub async fn next(&mut self) -> Result<Event> {
        loop {
            match self.stream.next().await.context("the connection ended without a close")?? {
                Message::Text(text) => return Ok(Event::Frame(serde_json::from_str(&text)?)),
                Message::Close(Some(close)) => {
                    return Ok(Event::Closed(close.code.into(), close.reason.to_string()));
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => bail!("neither text nor a close with its reason: {other:?}"),
            }
        }
    }

    fn next_within(&mut self, time: Duration) -> Result<Event> {
        runtime().block_on(async {
            let next = tokio::time::timeout(time, self.next()).await;
            next.context("nothing comes out of the socket")?
        })
    }

    /// Reads until `found` returns a value.
    ///
    /// # Errors
    /// It does not in time, or the socket ends; the message has the received frames.
    pub fn until<T>(&mut self, mut found: impl FnMut(&Event) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + FRAME_TIMEOUT;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.next_within(left).with_context(|| format!("came so far: {seen:?}"))?;
            if let Some(value) = found(&event) {
                return Ok(value);
            }
            if let Event::Closed(..) = event {
                bail!("closed: {event:?} after {seen:?}");
            }
            seen.push(event);
        }
    }

    /// The frames that arrive within `time`, without pings.
    ///
    /// # Errors
    /// The socket ends.
    pub fn all_within(&mut self, time: Duration) -> Result<Vec<Value>> {
        let deadline = Instant::now() + time;
        let mut frames = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(frames);
            }
            match self.next_within(left) {
                Ok(Event::Frame(frame)) if frame["name"] == "ping" => {}
                Ok(Event::Frame(frame)) => frames.push(frame),
                Ok(closed @ Event::Closed(..)) => bail!("{closed:?}"),
                Err(error) if error.is::<tokio::time::error::Elapsed>() => return Ok(frames),
                Err(error) => return Err(error),
            }
        }
    }
}
