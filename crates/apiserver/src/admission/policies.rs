//! Admission by expressions: policies, and the bindings that put them in force.
//!
//! [`follow`] keeps the table of bound policies. [`policy`] is what all of them say; [`dispatch`] finds
//! those that a write concerns, and [`params`] the parameters that a binding names. [`validating`]
//! policies judge an object, [`mutating`] ones change it. [`kinds`] are the four kinds as served, whose
//! writers must be able to read what they refer to ([`guard`]); [`type_check`] tells authors what their
//! expressions get wrong about the kinds that they name.
//!
//! A write fails closed: what cannot be found out refuses it unless the policy says `Ignore`.

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

use policy::Policy;

pub const POLICIES: &str = "validatingadmissionpolicies";
pub const BINDINGS: &str = "validatingadmissionpolicybindings";
pub const MUTATING_POLICIES: &str = "mutatingadmissionpolicies";
pub const MUTATING_BINDINGS: &str = "mutatingadmissionpolicybindings";

/// The policies in force, by name, each with its bindings.
pub struct Table {
    validating: Vec<Policy<validating::Rules>>,
    mutating: Vec<Policy<mutating::Rules>>,
}

impl Table {
    /// Whether any policy may change an object.
    pub(crate) fn mutates(&self) -> bool {
        !self.mutating.is_empty()
    }
}
