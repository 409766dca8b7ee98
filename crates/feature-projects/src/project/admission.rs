//! The System project of a cluster cannot be deleted by people: it holds what the cluster needs to
//! run. A resource quota has to be valid ([`quota`]).

use api_management::keys;
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use feature_kit::{Admit, Review, ReviewOperation};
use futures::future::BoxFuture;

use super::quota;

/// See the module.
pub struct ProjectRules;

fn check(review: &Review<'_>) -> Result<(), Status> {
    check_deletion(review)?;
    let Some(project) = review.object else { return Ok(()) };
    let causes = quota::validate_quota(project, review.old);
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(api_management::GROUP, "Project", review.name, causes))
}

fn check_deletion(review: &Review<'_>) -> Result<(), Status> {
    let system = review.old.is_some_and(|old| old.label(keys::SYSTEM_PROJECT) == Some("true"));
    let by_a_person = !review.user.starts_with("system:");
    if review.operation != ReviewOperation::Delete || !system || !by_a_person {
        return Ok(());
    }
    Err(Status::not_allowed_because("System Project cannot be deleted"))
}

impl Admit for ProjectRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { check(review) })
    }
}
