//! Global roles and their bindings: who may write them.
//!
//! Only administrators give global roles and change what these grant.

use api_meta::status::Status;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;

/// Fields that only describe the object.
const DESCRIPTIVE: [&str; 2] = ["displayName", "description"];

/// The rules of global roles and their bindings.
pub struct GlobalRules {
    pub plural: &'static str,
}

impl Admit for GlobalRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        let message = "only administrators give global roles and change what they give";
        Box::pin(async move { check(review, self.plural, message) })
    }
}

/// Refuses a write that changes what is granted, unless the writer is an administrator.
fn check(review: &Review<'_>, plural: &str, message: &str) -> Result<(), Status> {
    let allowed = !grants::changes_grant(review, &DESCRIPTIVE)
        || grants::is_administrator(review.groups)
        || grants::is_controller(review.groups);
    if allowed {
        return Ok(());
    }
    let message = format!("user \"{}\" may not: {message}", review.user);
    Err(Status::forbidden(api_management::GROUP, plural, review.name, &message))
}
