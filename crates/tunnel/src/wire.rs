//! A WebSocket (RFC 6455) as a plain byte stream: message borders have no meaning, and only binary
//! messages are allowed.
//!
//! Outgoing bytes are copied once, into the frame that carries them. Incoming bytes are not copied:
//! the payload is read into the reader's own buffer. Either side may be behind a load balancer that
//! terminates TLS and sends pings of its own; such pings get a pong and count as a sign of life.

mod frame;
#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::{MESSAGE_BYTES, MESSAGE_MAX_BYTES, PONGS_MAX_BYTES, WRITE_BUFFER_BYTES};
use crate::liveness::Heard;
use frame::{CONTROL_MAX_BYTES, FrameError, FrameHead, FrameKind, Mask};

/// Which side of the WebSocket this is: clients mask what they send, servers do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// What the next bytes from the peer are.
enum Incoming {
    /// The header of a frame, as far as it was received.
    Head(BytesMut),
    /// Payload of a binary message.
    Data { left: u64, mask: Option<Mask> },
    /// A ping, pong or close, as far as it was received.
    Control { kind: FrameKind, mask: Option<Mask>, length: usize, payload: BytesMut },
    /// The peer has closed.
    Closed,
}

/// The byte stream. Ends (reads 0 bytes) when the peer closes the WebSocket.
pub struct Wire<S> {
    io: S,
    role: Role,
    incoming: Incoming,
    /// A message has begun whose last frame was not received yet.
    is_inside_message: bool,
    /// Whole frames that wait to be written.
    outgoing: BytesMut,
    has_sent_close: bool,
    heard: Heard,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// The management side, after the upgrade response has been sent.
    pub fn server(io: S) -> Self {
        Self::new(io, Role::Server)
    }

    /// The agent's side, after the upgrade response has been read.
    pub fn client(io: S) -> Self {
        Self::new(io, Role::Client)
    }

    fn new(io: S, role: Role) -> Self {
        Self {
            io,
            role,
            incoming: Incoming::Head(BytesMut::new()),
            is_inside_message: false,
            outgoing: BytesMut::new(),
            has_sent_close: false,
            heard: Heard::now(),
        }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    /// Reads up to `limit` bytes, at least one.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let before = out.filled().len();
        if out.remaining() <= limit {
            ready!(Pin::new(&mut self.io).poll_read(cx, out))?;
        } else {
            let mut part = ReadBuf::new(out.initialize_unfilled_to(limit));
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            out.advance(read);
        }
        let read = out.filled().len() - before;
        if read == 0 {
            let text = "the connection ended without a close";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, text)));
        }
        self.heard.mark();
        Poll::Ready(Ok(read))
    }

    /// Reads until there are `length` bytes.
    fn poll_complete(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut BytesMut,
        length: usize,
    ) -> Poll<io::Result<()>> {
        let mut space = [0; CONTROL_MAX_BYTES];
        while bytes.len() < length {
            let mut out = ReadBuf::new(&mut space[..length - bytes.len()]);
            let missing = out.remaining();
            ready!(self.poll_fill(cx, &mut out, missing))?;
            bytes.extend_from_slice(out.filled());
        }
        Poll::Ready(Ok(()))
    }

    /// Reads the rest of a header, and returns what follows it.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut BytesMut,
    ) -> Poll<io::Result<Incoming>> {
        ready!(self.poll_complete(cx, head, FrameHead::LENGTH_MIN))?;
        ready!(self.poll_complete(cx, head, FrameHead::length(head)))?;
        let head = FrameHead::parse(head).map_err(to_io)?;
        head.check_mask(self.role == Role::Server).map_err(to_io)?;
        match head.kind {
            FrameKind::Binary | FrameKind::Continuation => {
                if self.is_inside_message != (head.kind == FrameKind::Continuation) {
                    return Poll::Ready(Err(to_io(FrameError::Order)));
                }
                if head.length > MESSAGE_MAX_BYTES as u64 {
                    return Poll::Ready(Err(to_io(FrameError::Length(head.length))));
                }
                self.is_inside_message = !head.is_final;
                Poll::Ready(Ok(Incoming::Data { left: head.length, mask: head.mask }))
            }
            kind => {
                let length = head.control_length().map_err(to_io)?;
                let payload = BytesMut::with_capacity(length);
                Poll::Ready(Ok(Incoming::Control { kind, mask: head.mask, length, payload }))
            }
        }
    }

    /// Replies to a control frame, and returns what follows it.
    fn reply(
        &mut self,
        cx: &mut Context<'_>,
        kind: FrameKind,
        payload: &[u8],
    ) -> io::Result<Incoming> {
        match kind {
            FrameKind::Close => {
                self.queue_close(payload);
                let _ = self.poll_drain(cx)?;
                Ok(Incoming::Closed)
            }
            // A peer that pings and does not read gets no more pongs than fit here.
            FrameKind::Ping if self.outgoing.len() < PONGS_MAX_BYTES => {
                self.queue(FrameKind::Pong, payload.len(), |out| out.put_slice(payload));
                let _ = self.poll_drain(cx)?;
                Ok(Incoming::Head(BytesMut::new()))
            }
            _ => Ok(Incoming::Head(BytesMut::new())),
        }
    }

    /// Appends a frame; `write` adds its payload of `length` bytes.
    fn queue(&mut self, kind: FrameKind, length: usize, write: impl FnOnce(&mut BytesMut)) {
        let mask = (self.role == Role::Client).then(Mask::random);
        self.outgoing.reserve(FrameHead::LENGTH_MAX + length);
        FrameHead { kind, is_final: true, length: length as u64, mask }.write(&mut self.outgoing);
        let begin = self.outgoing.len();
        write(&mut self.outgoing);
        if let Some(mut mask) = mask {
            mask.apply(&mut self.outgoing[begin..]);
        }
    }

    fn queue_close(&mut self, payload: &[u8]) {
        if !std::mem::replace(&mut self.has_sent_close, true) {
            self.queue(FrameKind::Close, payload.len(), |out| out.put_slice(payload));
        }
    }

    /// Writes all that is queued.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.outgoing))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.advance(written);
        }
        // A server holds a thousand of these, most of them idle.
        self.outgoing = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        write: impl FnOnce(usize, &mut BytesMut),
    ) -> Poll<io::Result<usize>> {
        if self.has_sent_close {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if length == 0 {
            return Poll::Ready(Ok(0));
        }
        if self.outgoing.len() >= WRITE_BUFFER_BYTES {
            ready!(self.poll_drain(cx))?;
        }
        let taken = length.min(MESSAGE_BYTES);
        self.queue(FrameKind::Binary, taken, |out| write(taken, out));
        Poll::Ready(Ok(taken))
    }
}

/// Bytes of all slices together.
pub(crate) fn length(slices: &[io::IoSlice<'_>]) -> usize {
    slices.iter().map(|slice| slice.len()).sum()
}

/// Appends the first `length` bytes of all slices.
pub(crate) fn gather(slices: &[io::IoSlice<'_>], length: usize, out: &mut BytesMut) {
    let mut left = length;
    for slice in slices {
        let part = slice.len().min(left);
        out.put_slice(&slice[..part]);
        left -= part;
    }
}

fn to_io(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut incoming = std::mem::replace(&mut this.incoming, Incoming::Closed);
            let step = this.poll_step(cx, out, &mut incoming);
            this.incoming = incoming;
            if ready!(step)? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Reads the next bytes. True when the reader has got some, or the end.
    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        incoming: &mut Incoming,
    ) -> Poll<io::Result<bool>> {
        match incoming {
            Incoming::Closed => return Poll::Ready(Ok(true)),
            Incoming::Head(head) => {
                *incoming = ready!(self.poll_head(cx, head))?;
            }
            Incoming::Data { left: 0, .. } => *incoming = Incoming::Head(BytesMut::new()),
            Incoming::Data { left, mask } => {
                let begin = out.filled().len();
                let limit = usize::try_from(*left).unwrap_or(usize::MAX);
                let read = ready!(self.poll_fill(cx, out, limit))?;
                if let Some(mask) = mask {
                    mask.apply(&mut out.filled_mut()[begin..]);
                }
                *left -= read as u64;
                return Poll::Ready(Ok(true));
            }
            Incoming::Control { kind, mask, length, payload } => {
                ready!(self.poll_complete(cx, payload, *length))?;
                if let Some(mask) = mask {
                    mask.apply(payload);
                }
                *incoming = self.reply(cx, *kind, payload)?;
            }
        }
        Poll::Ready(Ok(false))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, bytes.len(), |taken, out| out.put_slice(&bytes[..taken]))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, length(slices), |taken, out| gather(slices, taken, out))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.queue_close(&[]);
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
