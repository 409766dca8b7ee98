//! Reads all bytes that have arrived at a socket. rustls requests only 4 KiB at a time, so a full
//! TLS record would need five system calls.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

#[cfg(test)]
mod tests;

/// Bytes read in one system call when many arrive: a few TLS records of 16 KiB.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// A socket that is read ahead of its reader while more bytes arrive than the reader requests. The
/// buffer is freed once the reader has consumed it, so an idle connection holds no memory.
#[derive(Debug)]
pub struct ReadAhead {
    socket: TcpStream,
    unread: BytesMut,
    /// The last read filled the requested space, so more may have arrived.
    is_behind: bool,
}

impl ReadAhead {
    /// Wraps a socket. It reads nothing yet.
    #[must_use]
    pub fn new(socket: TcpStream) -> Self {
        Self { socket, unread: BytesMut::new(), is_behind: false }
    }
}

impl AsyncRead for ReadAhead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.unread.is_empty() {
            if !this.is_behind {
                let room = out.remaining();
                ready!(Pin::new(&mut this.socket).poll_read(cx, out))?;
                this.is_behind = out.remaining() == 0 && room > 0;
                return Poll::Ready(Ok(()));
            }
            this.unread.reserve(READ_AHEAD_BYTES);
            let read = match poll_read_buf(Pin::new(&mut this.socket), cx, &mut this.unread) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    this.unread = BytesMut::new();
                    this.is_behind = false;
                    return Poll::Pending;
                }
            };
            this.is_behind = read > out.remaining();
        }
        let passed = this.unread.len().min(out.remaining());
        out.put_slice(&this.unread[..passed]);
        this.unread.advance(passed);
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
