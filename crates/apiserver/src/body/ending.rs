//! A body that holds a value until it has been sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A body and the value that it holds, such as a guard of the request.
pub struct GuardedBody<B, T> {
    // Dropped in this order: the held value after the body.
    body: B,
    held: Option<T>,
}

impl<B, T> GuardedBody<B, T> {
    /// Wraps a body. `held` is dropped when the body ends, fails or is dropped.
    pub fn new(body: B, held: T) -> Self {
        Self { body, held: Some(held) }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for GuardedBody<B, T> {
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
