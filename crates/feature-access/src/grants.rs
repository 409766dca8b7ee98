//! Bindings of projects, global roles and their bindings: who may write them.
//!
//! Only administrators give global roles and change what these grant. Owners of a cluster also give
//! roles in its projects.

use api_management::ids;
use api_management::role_template::CLUSTER_OWNER;
use api_meta::status::{Cause, Status};
use feature_kit::access::cluster_group;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;
use serde_json::Value;

const PROJECT_ROLE_TEMPLATE_BINDING: &str = "ProjectRoleTemplateBinding";

/// Fields that only describe the object.
const DESCRIPTIVE: [&str; 2] = ["displayName", "description"];

/// The rules of global roles and their bindings.
pub struct GlobalRules {
    pub plural: &'static str,
}

impl Admit for GlobalRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        let message = "only administrators give global roles and change what they give";
        Box::pin(async move { check(review, self.plural, message, &[]) })
    }
}

/// The rules of bindings of projects.
pub struct ProjectBindingRules {
    pub plural: &'static str,
}

impl ProjectBindingRules {
    fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(object) = review.object else { return Ok(()) };
        if !grants::changes_grant(review, &DESCRIPTIVE) {
            return Ok(());
        }
        let project = object["projectName"].as_str().unwrap_or_default();
        let Some((cluster, name)) =
            ids::split(project).filter(|(_, name)| *name == review.namespace)
        else {
            let detail =
                "must be \"<cluster>:<project>\" with the project whose namespace the object is in";
            let cause = Cause::invalid("projectName", &Value::from(project), detail);
            let kind = PROJECT_ROLE_TEMPLATE_BINDING;
            return Err(Status::invalid(api_management::GROUP, kind, review.name, vec![cause]));
        };
        let message = format!(
            "only administrators and owners of cluster \"{cluster}\" give roles in project \"{name}\""
        );
        check(review, self.plural, &message, &[cluster_group(cluster, CLUSTER_OWNER)])
    }
}

impl Admit for ProjectBindingRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { self.check(review) })
    }
}

/// Refuses a write that changes what is granted, unless the writer is an administrator or in one of
/// the groups `enough`.
fn check(
    review: &Review<'_>,
    plural: &str,
    message: &str,
    enough: &[String],
) -> Result<(), Status> {
    let allowed = !grants::changes_grant(review, &DESCRIPTIVE)
        || grants::is_administrator(review.groups)
        || grants::is_controller(review.groups)
        || review.groups.iter().any(|group| enough.contains(group));
    if allowed {
        return Ok(());
    }
    let message = format!("user \"{}\" may not: {message}", review.user);
    Err(Status::forbidden(api_management::GROUP, plural, review.name, &message))
}
