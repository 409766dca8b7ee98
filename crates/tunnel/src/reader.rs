//! The receiving half of a stream, which looks at its window again when that was made smaller.
//!
//! A receiver may shrink the windows of open streams, below zero if need be. The sender then waits for an update, and
//! `h2` only considers one when bytes that were read are given back. A stream with nothing unread has none to give
//! back: without another look both ends would wait for ever.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

/// Tells the readers of a session that their windows became smaller.
#[derive(Clone, Default)]
pub(crate) struct Shrinking(Arc<watch::Sender<()>>);

impl Shrinking {
    /// To be called once the peer has acknowledged the smaller windows.
    pub(crate) fn announce(&self) {
        self.0.send_replace(());
    }
}

async fn next(mut announced: watch::Receiver<()>) -> watch::Receiver<()> {
    if announced.changed().await.is_err() {
        // The session is over, which the stream tells.
        std::future::pending::<()>().await;
    }
    announced
}

pub(crate) struct Reader {
    receive: RecvStream,
    shrunk: ReusableBoxFuture<'static, watch::Receiver<()>>,
}

impl Reader {
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
            // Gives nothing back, but makes `h2` look. A stream that is gone needs no window.
            let _ = self.release(0);
        }
        Poll::Pending
    }

    pub(crate) async fn data(&mut self) -> Option<Result<Bytes, h2::Error>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Makes room for as many more bytes: this is the backpressure.
    pub(crate) fn release(&mut self, bytes: usize) -> Result<(), h2::Error> {
        self.receive.flow_control().release_capacity(bytes)
    }
}
