//! The receiving half of a stream, which checks its window again after the window was made smaller.
//!
//! A receiver may shrink the windows of open streams, even below zero. The sender then waits for a
//! window update, and `h2` only considers one when bytes that were read are released. A stream with
//! nothing unread has none to release: without another check both ends would wait forever.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

/// Notifies the readers of a session that their windows became smaller.
#[derive(Clone, Default)]
pub(crate) struct Shrinking(Arc<watch::Sender<()>>);

impl Shrinking {
    /// Must be called once the peer has acknowledged the smaller windows.
    pub(crate) fn announce(&self) {
        self.0.send_replace(());
    }
}

async fn next(mut announced: watch::Receiver<()>) -> watch::Receiver<()> {
    if announced.changed().await.is_err() {
        // The session has ended, which the stream reports.
        std::future::pending::<()>().await;
    }
    announced
}

pub(crate) struct WindowReader {
    receive: RecvStream,
    shrunk: ReusableBoxFuture<'static, watch::Receiver<()>>,
}

impl WindowReader {
    pub(crate) fn new(receive: RecvStream, shrinking: &Shrinking) -> Self {
        Self { receive, shrunk: ReusableBoxFuture::new(next(shrinking.0.subscribe())) }
    }

    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, h2::Error>>> {
        if let Poll::Ready(chunk) = self.receive.poll_data(cx) {
            return Poll::Ready(chunk);
        }
        while let Poll::Ready(announced) = self.shrunk.poll(cx) {
            self.shrunk.set(next(announced));
            // Releases nothing, but makes `h2` check the window. A closed stream needs no window.
            let _ = self.release(0);
        }
        Poll::Pending
    }

    pub(crate) async fn data(&mut self) -> Option<Result<Bytes, h2::Error>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Lets the peer send as many more bytes. Not calling it is the backpressure.
    pub(crate) fn release(&mut self, bytes: usize) -> Result<(), h2::Error> {
        self.receive.flow_control().release_capacity(bytes)
    }
}
