//! Access that is revoked while it is used.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use api_meta::status::Status;
use bytes::Bytes;
use futures::future::{BoxFuture, select_all};
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use crate::body::{Body, BoxError};
use crate::limits::GRACE_WITHOUT_ROLE;

/// What a request's access depends on: its credential, and roles that may be more than it needs.
///
/// Without its credential a request ends at once, and so does an endless one when a role is lost:
/// what it shows is decided once, when it begins. Another request was allowed as it is, and ends by
/// itself soon; one that does not is ended too.
#[derive(Clone)]
pub(super) struct Revocation {
    credentials: Vec<CancellationToken>,
    roles: Vec<CancellationToken>,
    /// How long the request may run after a role is lost.
    grace: Duration,
}

/// Why a request was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Revoked {
    #[error("the credential of this request was revoked")]
    Credential,
    #[error(
        "the user's roles in the cluster changed while the request ran; send it again to have it \
         decided anew"
    )]
    Roles,
}

impl Revoked {
    pub(super) fn to_status(self) -> Status {
        match self {
            Self::Credential => Status::unauthorized(),
            Self::Roles => Status::new(403, "Forbidden", self.to_string()),
        }
    }
}

impl Revocation {
    pub(super) fn new(
        credential: CancellationToken,
        roles: Vec<CancellationToken>,
        is_endless: bool,
    ) -> Self {
        let grace = if is_endless { Duration::ZERO } else { GRACE_WITHOUT_ROLE };
        Self { credentials: vec![credential], roles, grace }
    }

    /// Ends also with `token`, like with the credential.
    pub(super) fn with(mut self, token: CancellationToken) -> Self {
        self.credentials.push(token);
        self
    }

    /// Ready when the access is revoked.
    pub(super) fn wait_until_revoked(&self) -> BoxFuture<'static, Revoked> {
        let (credential, roles) = (any(&self.credentials), any(&self.roles));
        let grace = self.grace;
        Box::pin(async move {
            let role_lost = async move {
                roles.await;
                if !grace.is_zero() {
                    tokio::time::sleep(grace).await;
                }
            };
            tokio::select! {
                biased;
                () = credential => Revoked::Credential,
                () = role_lost => Revoked::Roles,
            }
        })
    }
}

/// Ready when the first of `tokens` is cancelled.
fn any(tokens: &[CancellationToken]) -> impl Future<Output = ()> + Send + use<> {
    let waits: Vec<_> =
        tokens.iter().map(|token| Box::pin(token.clone().cancelled_owned())).collect();
    async move {
        select_all(waits).await;
    }
}

/// A body that ends with an error when the access is revoked, also while no data arrives.
pub(super) struct Revocable {
    body: Body,
    revoked: Option<BoxFuture<'static, Revoked>>,
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
        if let Poll::Ready(cause) = revoked.as_mut().poll(cx) {
            self.revoked = None;
            // Frees what the response holds downstream.
            self.body = crate::body::empty();
            return Poll::Ready(Some(Err(cause.into())));
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

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_an_endless_request_ends_at_once_with_a_role() {
        for (is_endless, time) in [(true, Duration::ZERO), (false, GRACE_WITHOUT_ROLE)] {
            let (credential, role) = (CancellationToken::new(), CancellationToken::new());
            let revocation = Revocation::new(credential, vec![role.clone()], is_endless);
            let start = Instant::now();
            role.cancel();
            assert_eq!(revocation.wait_until_revoked().await, Revoked::Roles);
            assert_eq!(start.elapsed().as_secs(), time.as_secs(), "{is_endless}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_outlives_its_credential() {
        for is_endless in [true, false] {
            let (credential, role) = (CancellationToken::new(), CancellationToken::new());
            let revocation = Revocation::new(credential.clone(), vec![role.clone()], is_endless);
            credential.cancel();
            role.cancel();
            let start = Instant::now();
            assert_eq!(revocation.wait_until_revoked().await, Revoked::Credential);
            assert!(start.elapsed().is_zero());
        }
    }
}
