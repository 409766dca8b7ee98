//! One byte stream of a session: a `CONNECT` on either side, as [`AsyncRead`] and [`AsyncWrite`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::STREAMS_PER_SESSION_MAX;
use crate::liveness::RoundTrip;
use crate::reader::{Reader, Shrinking};

/// Bytes handed over in one write.
const WRITE_BYTES: usize = 64 * 1024;

/// A byte stream with its own flow control: a reader that stands still stops only its own sender.
///
/// Shutting down the write half is told to the other end (half-close). Dropping a stream that is
/// not through resets it, and the other end reads an error.
pub struct Stream {
    send: SendStream<Bytes>,
    receive: Reader,
    unread: Bytes,
    /// Bytes of the chunk in `unread` that were read.
    read: usize,
    is_shut: bool,
    moved: Arc<AtomicU64>,
    _slot: Slot,
}

impl Stream {
    pub(crate) fn new(send: SendStream<Bytes>, receive: RecvStream, slot: Slot) -> Self {
        let moved = Arc::default();
        let receive = Reader::new(receive, &slot.0.shrinking);
        Self { send, receive, unread: Bytes::new(), read: 0, is_shut: false, moved, _slot: slot }
    }

    /// Counts bytes in both directions.
    pub(crate) fn moved(&self) -> Arc<AtomicU64> {
        self.moved.clone()
    }

    fn count(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

pub(crate) fn to_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().expect("just asked");
    }
    let kind = match error.reason() {
        Some(Reason::CANCEL | Reason::NO_ERROR) | None => io::ErrorKind::ConnectionReset,
        Some(_) => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, error)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() {
            match ready!(this.receive.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
                Some(Ok(bytes)) => this.unread = bytes,
            }
        }
        let taken = this.unread.len().min(out.remaining());
        out.put_slice(&this.unread[..taken]);
        this.unread.advance(taken);
        this.count(taken);
        this.read += taken;
        if this.unread.is_empty() {
            // Only what was read makes room for more: this is the backpressure.
            let read = std::mem::take(&mut this.read);
            this.receive.release(read).map_err(to_io)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.is_shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.send.reserve_capacity(bytes.len().min(WRITE_BYTES));
        // Capacity left from an earlier write is not announced again, so look before waiting.
        while self.send.capacity() == 0 {
            match ready!(self.send.poll_capacity(cx)) {
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
                Some(Ok(_)) => {}
            }
        }
        let taken = self.send.capacity().min(bytes.len()).min(WRITE_BYTES);
        let chunk = Bytes::copy_from_slice(&bytes[..taken]);
        self.send.send_data(chunk, false).map_err(to_io)?;
        self.count(taken);
        Poll::Ready(Ok(taken))
    }

    /// The session's task sends; there is nothing to push from here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            self.is_shut = true;
            self.send.send_data(Bytes::new(), true).map_err(to_io)?;
        }
        Poll::Ready(Ok(()))
    }
}

/// Counts the open streams of a session.
#[derive(Clone, Default)]
pub(crate) struct Slots {
    open: Arc<AtomicUsize>,
    pub(crate) round_trip: RoundTrip,
    pub(crate) shrinking: Shrinking,
}

impl Slots {
    pub(crate) fn new(round_trip: RoundTrip) -> Self {
        Self { open: Arc::default(), round_trip, shrinking: Shrinking::default() }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// None when [`STREAMS_PER_SESSION_MAX`] are taken.
    pub(crate) fn take(&self) -> Option<Slot> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(self.clone());
        if before >= STREAMS_PER_SESSION_MAX {
            return None;
        }
        // Windows follow the number of streams; look at each doubling.
        if (before + 1).is_power_of_two() {
            self.round_trip.ring();
        }
        Some(slot)
    }
}

/// One taken place; given back on drop.
pub(crate) struct Slot(Slots);

impl Drop for Slot {
    fn drop(&mut self) {
        let before = self.0.open.fetch_sub(1, Ordering::Relaxed);
        // The last one out tells the session's task, which may be waiting to end.
        if before == 1 || before.is_power_of_two() {
            self.0.round_trip.ring();
        }
    }
}
