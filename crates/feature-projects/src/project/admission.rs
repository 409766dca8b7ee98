//! The System project of a cluster cannot be deleted by people: it holds what the cluster needs to
//! run. Quotas and limits have to be valid ([`super::quotas::validation`]).

use std::sync::Arc;

use api_management::{NamespaceAssignment, keys};
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use controller::{Reflector, Whole};
use feature_kit::{Admit, Review, ReviewOperation};
use futures::future::BoxFuture;
use serde_json::Value;

use super::quotas::validation::validate;

/// See the module.
pub struct ProjectRules {
    /// Of all clusters.
    pub assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl ProjectRules {
    fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        check_deletion(review)?;
        let Some(project) = review.object else { return Ok(()) };
        let causes = validate(project, review.old, self.namespaces(project));
        if causes.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(api_management::GROUP, "Project", review.name, causes))
    }

    /// How many namespaces the project has.
    fn namespaces(&self, project: &Value) -> i64 {
        let cluster = project["metadata"]["namespace"].as_str().unwrap_or_default();
        let uid = project["metadata"]["uid"].as_str().unwrap_or_default();
        let mut all = self.assignments.in_namespace(cluster);
        all.retain(|(_, it)| it.spec.assigned.as_ref().is_some_and(|it| it.project_uid == uid));
        i64::try_from(all.len()).unwrap_or(i64::MAX)
    }
}

pub(crate) fn check_deletion(review: &Review<'_>) -> Result<(), Status> {
    let system = review.old.is_some_and(|old| old.label(keys::SYSTEM_PROJECT) == Some("true"));
    let by_a_person = !review.user.starts_with("system:");
    if review.operation != ReviewOperation::Delete || !system || !by_a_person {
        return Ok(());
    }
    Err(Status::not_allowed_because("System Project cannot be deleted"))
}

impl Admit for ProjectRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { self.check(review) })
    }
}
