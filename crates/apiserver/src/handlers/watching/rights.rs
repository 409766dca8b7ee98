//! Whether a watch may continue: it was allowed when it began, and rights change meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::super::HandlerContext;
use crate::attributes::{Attributes, Authorizer, Decision, Revocation};
use crate::impersonation::ImpersonatedBy;

/// Shortest time between two reviews of one watch, so that many role changes cost many watches
/// little. A lost right ends the watch within this time.
const REVIEW_INTERVAL_MIN: Duration = Duration::from_millis(400);

/// The rights that a watch needs to continue.
pub struct Rights {
    authorizer: Arc<dyn Authorizer>,
    /// All of them must be allowed: the watch itself, and the impersonation of its user.
    required: Vec<Attributes>,
    changes: watch::Receiver<u64>,
    reviewed_at: Instant,
    /// A change was seen, and is reviewed at this time.
    review_at: Option<Instant>,
    revocation: Revocation,
}

impl Rights {
    /// The rights of a request that was just allowed.
    pub fn of(context: &HandlerContext<'_>) -> Self {
        let extensions = &context.parts.extensions;
        let mut required =
            vec![Attributes::of_request(context.user, context.info, context.info.verb)];
        if let Some(impersonated) = extensions.get::<ImpersonatedBy>() {
            required.extend(impersonated.required.iter().cloned());
        }
        Self {
            authorizer: context.authorizer.clone(),
            required,
            changes: context.authorizer.changes(),
            reviewed_at: Instant::now(),
            review_at: None,
            revocation: extensions.get::<Revocation>().cloned().unwrap_or_default(),
        }
    }

    /// Whether the rights are still held, without waiting. For a watch that always has something to
    /// send.
    pub fn are_held(&mut self) -> bool {
        if self.revocation.is_revoked() {
            return false;
        }
        let is_changed = self.review_at.is_some() || self.changes.has_changed().unwrap_or(false);
        let is_due = self.reviewed_at.elapsed() >= REVIEW_INTERVAL_MIN;
        !(is_changed && is_due) || self.review()
    }

    /// Waits until a right is lost. Cancel-safe.
    pub async fn wait_until_lost(&mut self) {
        let revocation = self.revocation.clone();
        let reviewed = async {
            loop {
                if self.review_at.is_none() {
                    if self.changes.changed().await.is_err() {
                        // Nothing will ever decide differently.
                        std::future::pending::<()>().await;
                    }
                    let earliest = self.reviewed_at + REVIEW_INTERVAL_MIN;
                    self.review_at = Some(earliest.max(Instant::now()));
                }
                if let Some(review_at) = self.review_at {
                    sleep_until(review_at).await;
                }
                if !self.review() {
                    return;
                }
            }
        };
        tokio::select! {
            () = revocation.revoked() => {}
            () = reviewed => {}
        }
    }

    fn review(&mut self) -> bool {
        self.changes.mark_unchanged();
        self.review_at = None;
        self.reviewed_at = Instant::now();
        let allowed =
            |attributes| matches!(self.authorizer.authorize(attributes), Decision::Allow { .. });
        self.required.iter().all(allowed)
    }
}
