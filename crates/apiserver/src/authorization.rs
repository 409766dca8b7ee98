//! Role-based access control: who may do what, who may grant what, and the initial roles.
//!
//! [`rbac`] decides from roles and bindings in memory, which are indexed by subject. [`resources`]
//! serves the four kinds: their [`validation`], and that users grant only permissions that they
//! hold ([`escalation`]). [`bootstrap`] is the initial policy of a server, [`aggregation`] the
//! union of roles by label. [`follow`] updates all of it from the storage. [`refusal`] is the text
//! of a 403.

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

/// Authorizes the request as `verb`, which is its own or one that it implies.
///
/// # Errors
/// 403 with the reason of the authorizer.
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
