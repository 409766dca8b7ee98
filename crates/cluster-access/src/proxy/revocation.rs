//! Access that is revoked while it is used.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::{BoxFuture, select_all};
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use crate::body::{Body, BoxError};

/// All tokens that a request's access depends on: it ends with the first that is cancelled.
#[derive(Clone)]
pub(super) struct Revocation(Vec<CancellationToken>);

impl Revocation {
    pub(super) fn new(tokens: impl IntoIterator<Item = CancellationToken>) -> Self {
        Self(tokens.into_iter().collect())
    }

    pub(super) fn with(&self, token: CancellationToken) -> Self {
        let mut tokens = self.0.clone();
        tokens.push(token);
        Self(tokens)
    }

    /// Ready when the access is revoked.
    pub(super) fn wait_until_revoked(&self) -> BoxFuture<'static, ()> {
        let tokens = self.0.iter().cloned();
        let waits: Vec<_> = tokens.map(|token| Box::pin(token.cancelled_owned())).collect();
        Box::pin(async move {
            select_all(waits).await;
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the access of this request was revoked")]
struct Revoked;

/// A body that ends with an error when the access is revoked, also while no data arrives.
pub(super) struct Revocable {
    body: Body,
    revoked: Option<BoxFuture<'static, ()>>,
}

impl Revocable {
    pub(super) fn new(body: Body, revocation: &Revocation) -> Self {
        Self { body, revoked: Some(revocation.wait_until_revoked()) }
    }
}

impl http_body::Body for Revocable {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(revoked) = &mut self.revoked else { return Poll::Ready(None) };
        if revoked.as_mut().poll(cx).is_ready() {
            self.revoked = None;
            // Frees what the response holds downstream.
            self.body = crate::body::empty();
            return Poll::Ready(Some(Err(Revoked.into())));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.revoked.is_some() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
