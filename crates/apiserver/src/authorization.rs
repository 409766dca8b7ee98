//! Role-based access control: who may do what, who may grant what, and the roles there are from the
//! start.
//!
//! [`rbac`] decides, from roles and bindings kept in memory by subject. [`resources`] serves the
//! four kinds: their rules ([`validation`]), and that nobody grants what he does not hold
//! ([`escalation`]). [`bootstrap`] is the policy a server starts with, [`aggregation`] the union of
//! roles by label; [`follow`] keeps all of it in step with storage. [`refusal`] is the text of a
//! 403.

pub mod aggregation;
mod bindings;
pub mod bootstrap;
pub mod escalation;
pub mod follow;
pub mod rbac;
pub mod refusal;
pub mod resources;
pub mod validation;

use api_meta::status::Status;

pub use escalation::EscalationGuard;
pub use rbac::{RbacAuthorizer, RbacKind, ResolvedRules, RoleRef, RuleResolver};
pub use refusal::forbidden;
pub use resources::rbac_resources;

use crate::attributes::{Attributes, Authorizer, Decision, UserInfo};
use crate::request::RequestInfo;

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Whether the request is allowed as `verb`, its own or one that it comes to.
///
/// # Errors
/// 403, with the reason of the authorizer.
pub(crate) fn authorize(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    info: &RequestInfo,
    verb: &str,
) -> Result<(), Status> {
    let attributes = Attributes::of_request(user, info, verb);
    match authorizer.authorize(&attributes) {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } | Decision::NoOpinion { reason } => {
            Err(forbidden(&attributes, &reason))
        }
    }
}

#[cfg(test)]
mod tests;
