//! A WebSocket as a plain byte stream: message borders mean nothing, only binary messages are
//! allowed.
//!
//! Either side may be behind a load balancer that ends TLS and pings on its own; such pings are
//! answered and count as a sign of life.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures::{Sink, Stream as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::limits::{MESSAGE_BYTES, MESSAGE_MAX_BYTES, READ_BUFFER_BYTES, WRITE_BUFFER_BYTES};
use crate::liveness::Heard;

/// The byte stream. Ends (reads 0 bytes) when the peer closes the WebSocket.
pub struct Wire<S> {
    socket: WebSocketStream<S>,
    unread: Bytes,
    heard: Heard,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// The management side, after the upgrade answer has been sent.
    pub async fn server(io: S) -> Self {
        Self::new(io, Role::Server).await
    }

    /// The agent's side, after the upgrade answer has been read.
    pub async fn client(io: S) -> Self {
        Self::new(io, Role::Client).await
    }

    async fn new(io: S, role: Role) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_write_buffer_size(WRITE_BUFFER_BYTES + 4 * MESSAGE_BYTES)
            .max_message_size(Some(MESSAGE_MAX_BYTES))
            .max_frame_size(Some(MESSAGE_MAX_BYTES));
        let socket = WebSocketStream::from_raw_socket(io, role, Some(config)).await;
        Self { socket, unread: Bytes::new(), heard: Heard::now() }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        gather: impl FnOnce(usize) -> Bytes,
    ) -> Poll<io::Result<usize>> {
        if length == 0 {
            return Poll::Ready(Ok(0));
        }
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
        let taken = length.min(MESSAGE_BYTES);
        let message = Message::Binary(gather(taken));
        Pin::new(&mut self.socket).start_send(message).map_err(to_io)?;
        Poll::Ready(Ok(taken))
    }
}

fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() {
            let message = match ready!(Pin::new(&mut this.socket).poll_next(cx)) {
                None | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
                Some(Ok(message)) => message,
            };
            this.heard.mark();
            match message {
                Message::Binary(bytes) => this.unread = bytes,
                Message::Close(_) => return Poll::Ready(Ok(())),
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Text(_) | Message::Frame(_) => {
                    let text = "the peer sent a message that is not binary";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
            }
        }
        let taken = this.unread.len().min(out.remaining());
        out.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, bytes.len(), |taken| Bytes::copy_from_slice(&bytes[..taken]))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.poll_send(cx, length, |taken| {
            let mut message = BytesMut::with_capacity(taken);
            for slice in slices {
                let part = slice.len().min(taken - message.len());
                message.extend_from_slice(&slice[..part]);
            }
            message.freeze()
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(to_io)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(to_io)
    }
}
