//! Checks the heads of HTTP/1 requests before hyper reads them, and rejects what two readers could
//! understand differently: a line that ends with a bare LF, and a length beside
//! `Transfer-Encoding`. A proxy in front of this server that reads such a request differently could
//! be made to send the request of one user as part of the request of another (RFC 9112, sections
//! 2.2 and 6.1).
//!
//! Nothing is copied or delayed. In a rejected head, the invalid byte is replaced by NUL, which
//! HTTP/1 never allows: hyper responds with 400 and closes the connection. Bodies are skipped to
//! find the next head; nothing is checked after a switch of protocols.

mod checker;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::budget::{Budget, Share};
use crate::rejections;
pub use checker::HeadChecker;

/// Bytes that a head may have without counting against the budget: longer ones are rare.
const HEAD_FREE_BYTES: usize = 16 * 1024;
/// Bytes that incomplete longer heads of all connections may have beyond that.
const HEADS_BUFFERED_MAX: usize = 32 * 1024 * 1024;

static HEADS: Budget = Budget::new(HEADS_BUFFERED_MAX);

/// Set once the connection has switched to another protocol. Cheap to clone.
#[derive(Clone, Default)]
pub struct Switched(Arc<AtomicBool>);

impl Switched {
    /// Call this before the response that switches the protocol is sent.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A byte stream from a client, checked on its way to hyper.
pub struct HeadGuard<S> {
    io: S,
    checker: HeadChecker,
    switched: Switched,
    share: Share,
    shared: usize,
}

impl<S> HeadGuard<S> {
    /// Checks `io`, unless TLS negotiated HTTP/2 (`is_http2`).
    pub fn new(io: S, is_http2: bool, switched: Switched) -> Self {
        let checker = if is_http2 { HeadChecker::off() } else { HeadChecker::default() };
        Self { io, checker, switched, share: HEADS.share(), shared: 0 }
    }

    /// Whether the budget has room for the head so far.
    fn has_room(&mut self) -> bool {
        let beyond = self.checker.head_bytes().saturating_sub(HEAD_FREE_BYTES);
        if beyond < self.shared {
            self.share.clear();
            self.shared = 0;
        }
        let more = beyond - self.shared;
        if more > 0 && !self.share.grow(more) {
            return false;
        }
        self.shared = beyond;
        true
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = out.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, out))?;
        if this.switched.0.load(Ordering::Acquire) {
            this.checker = HeadChecker::off();
        }
        let arrived = out.filled_mut().split_at_mut(before).1;
        if arrived.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let first = arrived.len();
        if !this.checker.check(arrived) {
            rejections::HEADS.count();
            tracing::debug!(bytes = first, "rejected a request that is not HTTP/1.1");
        } else if !this.has_room() {
            rejections::HEADS.count();
            return Poll::Ready(Err(io::Error::other("too many long heads of requests at once")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
