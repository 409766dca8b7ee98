//! Admission by expressions: ValidatingAdmissionPolicies and the bindings that put them in force.
//!
//! [`follow`] keeps the table of bound policies; [`policy`] is one of them, compiled; [`dispatch`]
//! finds those that a write concerns and says what their verdicts mean for it; [`params`] finds the
//! parameters that a binding names. [`kinds`] are the two kinds as served, whose writers must be
//! able to read what they refer to ([`guard`]); [`type_check`] tells authors what their expressions get
//! wrong about the kinds that they name.
//!
//! A write fails closed: what cannot be found out refuses it unless the policy says `Ignore`.

mod dispatch;
pub mod follow;
mod guard;
pub mod kinds;
mod params;
mod policy;
pub mod type_check;
mod validate;

use policy::Policy;

pub const POLICIES: &str = "validatingadmissionpolicies";
pub const BINDINGS: &str = "validatingadmissionpolicybindings";

/// The policies in force, by name, each with its bindings.
#[derive(Default)]
pub struct Table {
    policies: Vec<Policy>,
}
