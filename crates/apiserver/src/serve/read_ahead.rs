//! Takes from a socket all that has arrived, in place of the 4 KiB at a time that rustls asks for: a full TLS record
//! would take five system calls.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes taken in one system call: some records of 16 KiB. Held only between their arrival and their decryption, so
/// that connections at rest cost nothing.
const READ_AHEAD: usize = 64 * 1024;

pub(super) struct ReadAhead {
    socket: TcpStream,
    unread: BytesMut,
}

impl ReadAhead {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket, unread: BytesMut::new() }
    }
}

impl AsyncRead for ReadAhead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() {
            ready!(this.socket.poll_read_ready(cx))?;
            this.unread.reserve(READ_AHEAD);
            match this.socket.try_read_buf(&mut this.unread) {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    this.unread = BytesMut::new();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let taken = this.unread.len().min(out.remaining());
        out.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        if this.unread.is_empty() {
            this.unread = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadAhead {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
