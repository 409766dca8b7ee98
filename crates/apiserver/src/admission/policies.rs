//! Admission by expressions: policies, and the bindings that activate them.
//!
//! [`follow`] maintains the table of bound policies. [`policy`] is what both kinds of policies have
//! in common. [`dispatch`] finds the policies that a write matches, and [`params`] the parameters
//! that a binding names. [`validating`] policies evaluate an object, [`mutating`] ones change it.
//! [`kinds`] are the four served kinds. Their writers must be able to read what they refer to
//! ([`guard`]). [`type_check`] reports to authors the type errors of their expressions.
//!
//! A write fails closed: an error refuses it unless the policy says `Ignore`.

mod dispatch;
pub mod follow;
mod guard;
pub mod kinds;
mod mutating;
mod params;
mod policy;
pub mod type_check;
mod validate;
mod validating;

use policy::BoundPolicy;

/// The plural of ValidatingAdmissionPolicy.
pub const POLICIES: &str = "validatingadmissionpolicies";
/// The plural of ValidatingAdmissionPolicyBinding.
pub const BINDINGS: &str = "validatingadmissionpolicybindings";
/// The plural of MutatingAdmissionPolicy.
pub const MUTATING_POLICIES: &str = "mutatingadmissionpolicies";
/// The plural of MutatingAdmissionPolicyBinding.
pub const MUTATING_BINDINGS: &str = "mutatingadmissionpolicybindings";

/// The bound policies in the order of their names, each with its bindings.
pub struct PolicyTable {
    validating: Vec<BoundPolicy<validating::ValidatingPolicy>>,
    mutating: Vec<BoundPolicy<mutating::MutatingPolicy>>,
}

impl PolicyTable {
    /// Whether any policy may change an object.
    pub(crate) fn mutates(&self) -> bool {
        !self.mutating.is_empty()
    }
}
