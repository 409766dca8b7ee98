//! Whether a watch may go on: it was allowed when it began, and rights change meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::super::Context;
use crate::attributes::{Attributes, Authorizer, Decision, Revocation};
use crate::impersonation::ImpersonatedBy;

/// Shortest time between two reviews of one watch, so that many changes of roles cost many watches little. A right that
/// was lost is noticed within this.
const REVIEW_INTERVAL_MIN: Duration = Duration::from_millis(400);

/// What a watch needs to go on.
pub struct Rights {
    authorizer: Arc<dyn Authorizer>,
    /// Every one of them must be allowed: the watch itself, and to impersonate its user.
    required: Vec<Attributes>,
    changes: watch::Receiver<u64>,
    reviewed_at: Instant,
    /// A change has been seen and is to be reviewed then.
    review_at: Option<Instant>,
    revocation: Revocation,
}

impl Rights {
    /// Those of a request that was just allowed.
    pub fn of(context: &Context<'_>) -> Self {
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

    /// Whether they hold, without waiting. For a watch that always has something to send.
    pub fn hold(&mut self) -> bool {
        if self.revocation.is_revoked() {
            return false;
        }
        let is_changed = self.review_at.is_some() || self.changes.has_changed().unwrap_or(false);
        let is_due = self.reviewed_at.elapsed() >= REVIEW_INTERVAL_MIN;
        !(is_changed && is_due) || self.review()
    }

    /// Waits until they are lost. Cancel-safe.
    pub async fn lost(&mut self) {
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
