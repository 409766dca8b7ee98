//! One byte stream of a session: a `CONNECT` on either side, as [`AsyncRead`] and [`AsyncWrite`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::STREAMS_PER_SESSION_MAX;
use crate::liveness::RoundTrip;
use crate::reader::{Shrinking, WindowReader};
use crate::{traffic, wire};

/// Bytes passed on in one write.
const WRITE_BYTES: usize = 64 * 1024;

/// A byte stream with its own flow control: a reader that does not read stops only its own sender.
///
/// Shutting down the write half is passed on to the other end (half-close). Dropping an unfinished
/// stream resets it, and the other end reads an error.
pub struct Stream {
    reader: StreamReader,
    writer: StreamWriter,
}

/// What both halves of a stream share.
struct StreamState {
    /// Bytes in both directions.
    moved: AtomicU64,
    _slot: Slot,
}

impl StreamState {
    fn count(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counts the bytes that a stream has carried in both directions.
#[derive(Clone)]
pub(crate) struct Moved(Arc<StreamState>);

impl Moved {
    pub(crate) fn get(&self) -> u64 {
        self.0.moved.load(Ordering::Relaxed)
    }
}

/// The receiving half of a [`Stream`].
pub(crate) struct StreamReader {
    receive: WindowReader,
    unread: Bytes,
    /// Bytes of the chunk in `unread` that were read.
    read: usize,
    shared: Arc<StreamState>,
}

/// The sending half of a [`Stream`].
pub(crate) struct StreamWriter {
    send: SendStream<Bytes>,
    is_shut: bool,
    /// Bytes wait to be sent.
    is_stalled: bool,
    shared: Arc<StreamState>,
}

impl Stream {
    pub(crate) fn new(send: SendStream<Bytes>, receive: RecvStream, slot: Slot) -> Self {
        let receive = WindowReader::new(receive, &slot.0.shrinking);
        let shared = Arc::new(StreamState { moved: AtomicU64::new(0), _slot: slot });
        let reader =
            StreamReader { receive, unread: Bytes::new(), read: 0, shared: shared.clone() };
        Self { reader, writer: StreamWriter { send, is_shut: false, is_stalled: false, shared } }
    }

    pub(crate) fn into_split(self) -> (StreamReader, StreamWriter) {
        (self.reader, self.writer)
    }
}

pub(crate) fn to_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().expect("it is an I/O error");
    }
    let kind = match error.reason() {
        Some(Reason::CANCEL | Reason::NO_ERROR) | None => io::ErrorKind::ConnectionReset,
        Some(_) => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, error)
}

impl StreamReader {
    pub(crate) fn moved(&self) -> Moved {
        Moved(self.shared.clone())
    }

    /// The next bytes, or `None` at the end. [`Self::release`] them once they are passed on.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        self.receive.data().await.transpose().map_err(to_io)
    }

    /// Lets the peer send as many more bytes. Not calling it is the backpressure.
    pub(crate) fn release(&mut self, bytes: usize) -> io::Result<()> {
        self.shared.count(bytes);
        traffic::count_received(bytes);
        self.receive.release(bytes).map_err(to_io)
    }
}

impl StreamWriter {
    /// Sends all of `bytes`, within the window that the peer grants.
    pub(crate) async fn send(&mut self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = std::future::poll_fn(|cx| self.poll_room(cx, bytes.len())).await?;
            self.send_part(bytes.split_to(taken))?;
        }
        Ok(())
    }

    /// Waits until some of `length` bytes, and at least one, may be sent.
    fn poll_room(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        if self.is_shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let part = length.min(WRITE_BYTES);
        self.send.reserve_capacity(part);
        // Capacity left from an earlier write is not announced again, so check before waiting.
        while self.send.capacity() == 0 {
            match self.send.poll_capacity(cx) {
                Poll::Pending => {
                    if !std::mem::replace(&mut self.is_stalled, true) {
                        traffic::count_stall();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(to_io(error))),
                Poll::Ready(Some(Ok(_))) => {}
            }
        }
        self.is_stalled = false;
        Poll::Ready(Ok(self.send.capacity().min(part)))
    }

    fn send_part(&mut self, bytes: Bytes) -> io::Result<()> {
        self.shared.count(bytes.len());
        traffic::count_sent(bytes.len());
        self.send.send_data(bytes, false).map_err(to_io)
    }

    /// Ends the stream in this direction (half-close).
    pub(crate) fn shut_down(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_shut, true) {
            return Ok(());
        }
        self.send.send_data(Bytes::new(), true).map_err(to_io)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut self.reader;
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
        this.read += taken;
        if this.unread.is_empty() {
            let read = std::mem::take(&mut this.read);
            this.release(read)?;
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
        let taken = ready!(self.writer.poll_room(cx, bytes.len()))?;
        self.writer.send_part(Bytes::copy_from_slice(&bytes[..taken]))?;
        Poll::Ready(Ok(taken))
    }

    /// Several TLS records make one frame.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = wire::length(slices);
        if length == 0 {
            return Poll::Ready(Ok(0));
        }
        let taken = ready!(self.writer.poll_room(cx, length))?;
        let mut bytes = BytesMut::with_capacity(taken);
        wire::gather(slices, taken, &mut bytes);
        self.writer.send_part(bytes.freeze())?;
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The session's task sends; there is nothing to flush here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.writer.shut_down())
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

    /// A slot, or `None` when [`STREAMS_PER_SESSION_MAX`] are in use.
    pub(crate) fn take(&self) -> Option<Slot> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(self.clone());
        if before >= STREAMS_PER_SESSION_MAX {
            return None;
        }
        // Windows depend on the number of streams; resize them at each doubling.
        if (before + 1).is_power_of_two() {
            self.round_trip.ring();
        }
        Some(slot)
    }
}

/// One slot of an open stream; dropping it frees the slot.
pub(crate) struct Slot(Slots);

impl Drop for Slot {
    fn drop(&mut self) {
        let before = self.0.open.fetch_sub(1, Ordering::Relaxed);
        // The last one wakes the session's task, which may be waiting to end.
        if before == 1 || before.is_power_of_two() {
            self.0.round_trip.ring();
        }
    }
}
