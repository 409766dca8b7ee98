//! Bodies that hold something until they have been sent, or nobody wants them any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A body and what it holds.
pub struct Ending<B, T> {
    // Dropped in this order: what is held goes when the body has gone.
    body: B,
    held: Option<T>,
}

impl<B, T> Ending<B, T> {
    /// The same body; `held` is dropped at its end.
    pub fn new(body: B, held: T) -> Self {
        Self { body, held: Some(held) }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Ending<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
